/* pool.h: the threads of one net, behind TVM's parallel launch. */
#ifndef XNNRT_POOL_H
#define XNNRT_POOL_H

#include "affinity.h"
#include "thread.h"
#include "tvm_abi.h"

/* Cores of this machine that are online, at least 1; at most as many as `core_mask` has bits unless it is 0. */
XNNRT_HIDDEN int xnnrt_cores(uint64_t core_mask);

/* All zero but `thread`, `threads` and `core_mask` before xnnrt_pool_start. */
typedef struct xnnrt_pool {
    xnnrt_thread *thread; /* [threads]; 0 is the thread that calls xnnrt_run */
    int threads;
    uint64_t core_mask;
    int scratch_failed; /* an allocation did not fit; set by any thread, cleared between runs */
#ifndef XNNRT_NO_THREADS
    int started; /* workers running */
    /* The job. Written by the caller while no task of it is left to claim; see "Claiming" in pool.c. */
    xnnrt_task task;
    void *data;
    int num_task;
    int failed;
    /* Shared counters, on cache lines of their own. */
    uint64_t padding_before[7];
    uint64_t ticket; /* generation << 32 | tasks not yet claimed */
    uint64_t padding_between[7];
    int done;          /* tasks finished */
    int caller_sleeps; /* 1 while the caller waits on `finished` */
    int sleepers;      /* workers that wait on `work` */
    int stop;
    pthread_mutex_t mutex; /* guards sleeping only, never the claiming of work */
    pthread_cond_t work;
    pthread_cond_t finished;
#endif
} xnnrt_pool;

/* Start threads - 1 workers. Returns 0 when the system refuses one; none is left running then. */
XNNRT_HIDDEN int xnnrt_pool_start(xnnrt_pool *pool);

/* Join all workers of a started pool. */
XNNRT_HIDDEN void xnnrt_pool_stop(xnnrt_pool *pool);

#endif
