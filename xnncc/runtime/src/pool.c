/* pool.c: fork and join in which the caller works too and waits only for tasks in progress.
 *
 * Claiming. A launch of n tasks writes the job's fields, then publishes ticket = (generation, n). Caller and workers
 * claim one task at a time: read the ticket, read the fields, compare-and-swap the ticket to one task less. The fields
 * change only after every task of the old job was claimed and finished; so when the swap succeeds, a task of that
 * generation was still open, and the fields that were read before it belong to that generation. A worker that wakes late
 * finds no open task, or a newer job that it may as well help with. Nobody holds a lock while claiming, hence a worker
 * that loses its core between two instructions delays nobody unless it is inside a task.
 *
 * Sleeping. Workers look for work for a few tens of microseconds (the gap between two kernels), then sleep on `work`;
 * the caller likewise on `finished`. Each sleeper first announces itself, then looks once more; each waker first
 * publishes, then looks for announcements; both sequentially consistent, so one of the two sees the other. */
#define _DEFAULT_SOURCE
#include "pool.h"

#include <stddef.h>

#ifndef XNNRT_NO_THREADS
#include <unistd.h>
#endif

/* Run tasks [0, num_task) on this thread. */
static int run_serially(xnnrt_thread *self, xnnrt_task task, void *data, int num_task) {
    TVMParallelGroupEnv env = {NULL, num_task};
    int result = 0;
    size_t used = self == NULL ? 0 : self->scratch_used;
    for (int i = 0; i < num_task && result == 0; i++) {
        result = task(i, &env, data);
        if (self != NULL) {
            self->scratch_used = used;
        }
    }
    return result == 0 ? 0 : -1;
}

#ifdef XNNRT_NO_THREADS

int xnnrt_cores(uint64_t core_mask) {
    (void)core_mask;
    return 1;
}

int xnnrt_pool_start(xnnrt_pool *pool) {
    (void)pool;
    return 1;
}

void xnnrt_pool_stop(xnnrt_pool *pool) { (void)pool; }

static int launch(xnnrt_task task, void *data, int num_task) {
    return run_serially(xnnrt_this_thread(), task, data, num_task > 0 ? num_task : 1);
}

#else

/* Pieces per thread when the kernel leaves the number open: uneven pieces, and a core that is slower or taken away for
 * a while, cost at most about a quarter of a thread's share. */
enum { TASKS_PER_THREAD = 4 };

/* Looks for work before a thread sleeps: about 40 microseconds on either kind of core. x86's pause takes 40 to 140
 * cycles, Arm's yield next to nothing. */
#if defined(__x86_64__) || defined(__i386__)
enum { SPINS = 1000 };
#define RELAX() __builtin_ia32_pause()
#elif defined(__aarch64__) || defined(__arm__)
enum { SPINS = 8000 };
#define RELAX() __asm__ __volatile__("yield")
#else
enum { SPINS = 4000 };
#define RELAX() ((void)0)
#endif

int xnnrt_cores(uint64_t core_mask) {
#ifdef XNNRT_CORES /* tests: pretend to have that many */
    long cores = XNNRT_CORES;
#else
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
#endif
    int allowed = core_mask == 0 ? 64 : xnnrt_count_cores(core_mask);
    return cores < 1 ? 1 : cores < allowed ? (int)cores : allowed;
}

static int open_tasks(const xnnrt_pool *pool, int order) {
    return (int)(uint32_t)(order == __ATOMIC_SEQ_CST ? __atomic_load_n(&pool->ticket, __ATOMIC_SEQ_CST)
                                                     : __atomic_load_n(&pool->ticket, __ATOMIC_RELAXED));
}

/* Claim and run tasks until none is open. */
static void work(xnnrt_pool *pool, xnnrt_thread *self) {
    size_t used = self->scratch_used;
    self->in_task = 1;
    for (;;) {
        uint64_t ticket = __atomic_load_n(&pool->ticket, __ATOMIC_ACQUIRE);
        int left = (int)(uint32_t)ticket;
        if (left == 0) {
            break;
        }
        xnnrt_task task = __atomic_load_n(&pool->task, __ATOMIC_RELAXED);
        void *data = __atomic_load_n(&pool->data, __ATOMIC_RELAXED);
        TVMParallelGroupEnv env = {NULL, __atomic_load_n(&pool->num_task, __ATOMIC_RELAXED)};
        if (!__atomic_compare_exchange_n(&pool->ticket, &ticket, ticket - 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            continue;
        }
        int num_task = env.num_task;
        if (task(num_task - left, &env, data) != 0) {
            __atomic_store_n(&pool->failed, 1, __ATOMIC_RELAXED);
        }
        self->scratch_used = used;
        if (__atomic_add_fetch(&pool->done, 1, __ATOMIC_SEQ_CST) == num_task &&
            __atomic_load_n(&pool->caller_sleeps, __ATOMIC_SEQ_CST) != 0) {
            pthread_mutex_lock(&pool->mutex);
            pthread_cond_signal(&pool->finished);
            pthread_mutex_unlock(&pool->mutex);
        }
    }
    self->in_task = 0;
}

/* Wait until there is work; 0 = the pool stops. */
static int wait_for_work(xnnrt_pool *pool) {
    for (int i = 0; i < SPINS && open_tasks(pool, __ATOMIC_RELAXED) == 0; i++) {
        RELAX();
    }
    if (open_tasks(pool, __ATOMIC_RELAXED) != 0) {
        return 1;
    }
    pthread_mutex_lock(&pool->mutex);
    __atomic_add_fetch(&pool->sleepers, 1, __ATOMIC_SEQ_CST);
    while (!pool->stop && open_tasks(pool, __ATOMIC_SEQ_CST) == 0) {
        pthread_cond_wait(&pool->work, &pool->mutex);
    }
    __atomic_sub_fetch(&pool->sleepers, 1, __ATOMIC_SEQ_CST);
    int stop = pool->stop;
    pthread_mutex_unlock(&pool->mutex);
    return !stop;
}

static void *run_worker(void *argument) {
    xnnrt_thread *self = argument;
    if (xnnrt_set_this_thread(self)) { /* without its key a thread cannot run kernels; the others do its share */
        xnnrt_bind(self->pool->core_mask, NULL);
        while (wait_for_work(self->pool)) {
            work(self->pool, self);
        }
    }
    return NULL;
}

/* Wait for the tasks that workers are in the middle of. */
static void wait_for_tasks(xnnrt_pool *pool, int num_task) {
    for (int i = 0; i < SPINS && __atomic_load_n(&pool->done, __ATOMIC_RELAXED) != num_task; i++) {
        RELAX();
    }
    if (__atomic_load_n(&pool->done, __ATOMIC_ACQUIRE) == num_task) {
        return;
    }
    pthread_mutex_lock(&pool->mutex);
    __atomic_store_n(&pool->caller_sleeps, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&pool->done, __ATOMIC_SEQ_CST) != num_task) {
        pthread_cond_wait(&pool->finished, &pool->mutex);
    }
    __atomic_store_n(&pool->caller_sleeps, 0, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&pool->mutex);
}

static void wake_workers(xnnrt_pool *pool, int most) {
    int sleepers = __atomic_load_n(&pool->sleepers, __ATOMIC_SEQ_CST);
    if (sleepers > 0) {
        pthread_mutex_lock(&pool->mutex);
        for (int i = 0; i < sleepers && i < most; i++) {
            pthread_cond_signal(&pool->work);
        }
        pthread_mutex_unlock(&pool->mutex);
    }
}

static int launch(xnnrt_task task, void *data, int num_task) {
    xnnrt_thread *self = xnnrt_this_thread();
    if (self == NULL || self->in_task || self->pool->threads == 1 || num_task == 1) {
        return run_serially(self, task, data, num_task > 0 ? num_task : 1);
    }
    xnnrt_pool *pool = self->pool;
    if (num_task <= 0) {
        num_task = pool->threads * TASKS_PER_THREAD;
    }
    __atomic_store_n(&pool->task, task, __ATOMIC_RELAXED);
    __atomic_store_n(&pool->data, data, __ATOMIC_RELAXED);
    __atomic_store_n(&pool->num_task, num_task, __ATOMIC_RELAXED);
    __atomic_store_n(&pool->failed, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&pool->done, 0, __ATOMIC_RELAXED);
    uint64_t generation = (__atomic_load_n(&pool->ticket, __ATOMIC_RELAXED) >> 32) + 1;
    __atomic_store_n(&pool->ticket, generation << 32 | (uint32_t)num_task, __ATOMIC_SEQ_CST);
    wake_workers(pool, num_task - 1);
    work(pool, self);
    wait_for_tasks(pool, num_task);
    return __atomic_load_n(&pool->failed, __ATOMIC_RELAXED) ? -1 : 0;
}

static void join_workers(xnnrt_pool *pool) {
    pthread_mutex_lock(&pool->mutex);
    pool->stop = 1;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
    for (int i = 1; i <= pool->started; i++) {
        pthread_join(pool->thread[i].handle, NULL);
    }
    pthread_cond_destroy(&pool->finished);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->mutex);
}

int xnnrt_pool_start(xnnrt_pool *pool) {
    if (pthread_mutex_init(&pool->mutex, NULL) != 0) {
        return 0;
    }
    if (pthread_cond_init(&pool->work, NULL) != 0) {
        pthread_mutex_destroy(&pool->mutex);
        return 0;
    }
    if (pthread_cond_init(&pool->finished, NULL) != 0) {
        pthread_cond_destroy(&pool->work);
        pthread_mutex_destroy(&pool->mutex);
        return 0;
    }
    for (int i = 1; i < pool->threads; i++) {
        if (pthread_create(&pool->thread[i].handle, NULL, run_worker, &pool->thread[i]) != 0) {
            join_workers(pool);
            return 0;
        }
        pool->started = i;
    }
    return 1;
}

void xnnrt_pool_stop(xnnrt_pool *pool) { join_workers(pool); }

#endif

xnnrt_launch_slot __TVMBackendParallelLaunch = launch;
