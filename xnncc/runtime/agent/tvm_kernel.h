/* tvm_kernel.h: kernels that TVM generated: loaded, called and timed. */
#ifndef XNN_AGENT_TVM_KERNEL_H
#define XNN_AGENT_TVM_KERNEL_H

#include "text.h"
#include "tvm_handles.h"

enum { XNN_TVM_MOST_REPEATS = 1000, XNN_TVM_MOST_WORDS = 512 };

/* Load a shared library of the session's folder: a handle for xnn_tvm_symbol; NULL, and why, when it is none. */
void *xnn_tvm_load(const char *path, const char **why);

/* The kernel `name` of a library ("main"), or NULL. */
void *xnn_tvm_symbol(void *library, const uint8_t *name, size_t length);

/* Call a kernel; NULL, or what it says went wrong. Tensors must have been placed. */
const char *xnn_tvm_call(void *kernel, const xnn_tvm_arg *args, int count);

/* Call it once to warm up, then time it as TVM's evaluator does: seconds of a call, for each repeat. NULL, or what went
 * wrong. `seconds` has timing->repeat places. */
const char *xnn_tvm_time(void *kernel, const xnn_tvm_timing *timing, const xnn_tvm_arg *args, int count,
                         double *seconds);

#endif
