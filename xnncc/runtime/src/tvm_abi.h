/* tvm_abi.h: what the objects that TVM's LLVM code generator emits expect of a runtime (TVM 0.27, c_backend_api.h).
 *
 * Every such object has weak pointer variables ("slots") of these names and calls through them; the strong definitions
 * are in pool.c and workspace.c. Both files also hold functions that xnnrt_run needs, so a linker that takes only what
 * it needs from an archive never leaves the slots behind. */
#ifndef XNNRT_TVM_ABI_H
#define XNNRT_TVM_ABI_H

#include <stdint.h>

#include "hidden.h"

typedef struct {
    void *sync_handle; /* for barriers, which our kernels do not use: always null */
    int32_t num_task;
} TVMParallelGroupEnv;

/* One piece, [0, num_task), of a parallel loop. Returns 0 or -1. */
typedef int (*xnnrt_task)(int task, TVMParallelGroupEnv *env, void *data);

/* Run all pieces; num_task 0 = as many as the pool likes. Returns 0, or -1 if a piece failed. */
typedef int (*xnnrt_launch_slot)(xnnrt_task task, void *data, int num_task);

/* Scratch, last in first out on each thread. Alloc returns null, Free -1, when it cannot. */
typedef void *(*xnnrt_alloc_slot)(int device_type, int device_id, uint64_t bytes, int dtype_code, int dtype_bits);
typedef int (*xnnrt_free_slot)(int device_type, int device_id, void *memory);

extern XNNRT_HIDDEN xnnrt_launch_slot __TVMBackendParallelLaunch;
extern XNNRT_HIDDEN xnnrt_alloc_slot __TVMBackendAllocWorkspace;
extern XNNRT_HIDDEN xnnrt_free_slot __TVMBackendFreeWorkspace;

#endif
