/* thread.h: what a thread that runs kernels has of its own. Kernels call back without a context (TVM's slots take none),
 * so it hangs on the thread: on a pthread key, because _Thread_local would pull in emulation code on Android and Apple. */
#ifndef XNNRT_THREAD_H
#define XNNRT_THREAD_H

#include <stddef.h>
#include <stdint.h>

#ifndef XNNRT_NO_THREADS
#include <pthread.h>
#endif

#include "hidden.h"

struct xnnrt_pool;

/* One thread of one pool. Once the pool has started, nobody but that thread touches it. */
typedef struct xnnrt_thread {
    struct xnnrt_pool *pool;
    uint8_t *scratch; /* this thread's part of the arena, 64-byte aligned */
    size_t scratch_bytes;
    size_t scratch_used;
    int in_task;        /* launches from here run serially */
#ifndef XNNRT_NO_THREADS
    pthread_t handle;
#endif
} xnnrt_thread;

/* Keep the key alive: one call for every open net, paired with xnnrt_key_release. Returns 0 when the system has no key. */
XNNRT_HIDDEN int xnnrt_key_retain(void);
XNNRT_HIDDEN void xnnrt_key_release(void);

/* The state of the calling thread; null when it runs no network. */
XNNRT_HIDDEN xnnrt_thread *xnnrt_this_thread(void);

/* Replace it. Returns 0 when the system had no memory for that. */
XNNRT_HIDDEN int xnnrt_set_this_thread(xnnrt_thread *thread);

#endif
