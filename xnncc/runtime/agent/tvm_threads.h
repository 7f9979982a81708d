/* tvm_threads.h: the runtime's thread pool (src/pool.c) for TVM's kernels. */
#ifndef XNN_AGENT_TVM_THREADS_H
#define XNN_AGENT_TVM_THREADS_H

/* Start as many threads as there are cores, once; 0 when the system has none to give. */
int xnn_tvm_start_threads(void);

/* Between two calls of kernels: free what a failed one left; 1 when one had too little scratch memory. */
int xnn_tvm_recover_threads(void);

/* Fill the slots of a library that TVM generated: `find` looks a symbol up in it, NULL when it has none. */
void xnn_tvm_fill_slots(void *(*find)(void *library, const char *name), void *library);

#endif
