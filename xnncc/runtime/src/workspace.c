/* workspace.c: a bump allocator per thread. Kernels free in reverse order (TVM guarantees it), and each piece of a
 * parallel loop starts with what its thread had free before (pool.c), so a failed kernel leaks nothing. */
#include "workspace.h"

#include "memory.h"
#include "tvm_abi.h"

void xnnrt_workspace_assign(xnnrt_thread *thread, uint8_t *memory, size_t bytes) {
    thread->scratch = memory;
    thread->scratch_bytes = bytes;
    thread->scratch_used = 0;
}

int xnnrt_workspace_recover(xnnrt_pool *pool) {
    pool->thread[0].scratch_used = 0; /* a worker has nothing allocated between two tasks */
    return __atomic_exchange_n(&pool->scratch_failed, 0, __ATOMIC_RELAXED);
}

/* 64-byte aligned; every allocation takes a multiple of 64 bytes, as the planner counts them. */
static void *allocate(int device_type, int device_id, uint64_t bytes, int dtype_code, int dtype_bits) {
    (void)device_type, (void)device_id, (void)dtype_code, (void)dtype_bits;
    xnnrt_thread *self = xnnrt_this_thread();
    if (self == NULL) {
        return NULL;
    }
    size_t left = self->scratch_bytes - self->scratch_used;
    if (bytes > left) { /* left is a multiple of 64: what fits, fits rounded up */
        __atomic_store_n(&self->pool->scratch_failed, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    uint8_t *memory = self->scratch + self->scratch_used;
    self->scratch_used += xnnrt_align((size_t)bytes);
    return memory;
}

static int release(int device_type, int device_id, void *memory) {
    (void)device_type, (void)device_id;
    xnnrt_thread *self = xnnrt_this_thread();
    if (self == NULL) {
        return -1;
    }
    uintptr_t offset = (uintptr_t)memory - (uintptr_t)self->scratch;
    if (offset > self->scratch_used || offset % XNNRT_ALIGNMENT != 0) {
        return -1;
    }
    self->scratch_used = (size_t)offset;
    return 0;
}

xnnrt_alloc_slot __TVMBackendAllocWorkspace = allocate;
xnnrt_free_slot __TVMBackendFreeWorkspace = release;
