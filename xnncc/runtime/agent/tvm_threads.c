/* tvm_threads.c: see tvm_threads.h. The runtime's own files, but with thread functions that are looked up: in a glibc
 * before 2.34 they are in a library of their own, and the agent shall start without it. */
#define _DEFAULT_SOURCE
#include "tvm_threads.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

static struct {
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    int (*join)(pthread_t, void **);
    int (*key_create)(pthread_key_t *, void (*)(void *));
    int (*key_delete)(pthread_key_t);
    void *(*get)(pthread_key_t);
    int (*set)(pthread_key_t, const void *);
} found;

#define pthread_create found.create
#define pthread_join found.join
#define pthread_key_create found.key_create
#define pthread_key_delete found.key_delete
#define pthread_getspecific found.get
#define pthread_setspecific found.set

#include "../src/thread.c"
#undef _DEFAULT_SOURCE /* pool.c asks for it again */
#include "../src/pool.c"

#include "../src/workspace.c"

enum { MOST_THREADS = 64 };
static const size_t scratch_bytes = (size_t)1 << 29; /* of all threads; the system gives pages as they are touched */
static xnnrt_pool pool;
static xnnrt_thread threads[MOST_THREADS];

static int look_up(void) {
    static const char *const names[] = {"pthread_create",     "pthread_join",        "pthread_key_create",
                                        "pthread_key_delete", "pthread_getspecific", "pthread_setspecific"};
    void **const places[] = {(void **)&found.create,     (void **)&found.join, (void **)&found.key_create,
                             (void **)&found.key_delete, (void **)&found.get,  (void **)&found.set};
    void *library = dlopen("libpthread.so.0", RTLD_NOW);
    int i;
    if (library == NULL) library = dlopen(NULL, RTLD_NOW); /* bionic has all in libc */
    for (i = 0; i < 6 && library != NULL; i++) {
        *places[i] = dlsym(library, names[i]);
        if (*places[i] == NULL) library = NULL;
    }
    return library != NULL;
}

int xnn_tvm_start_threads(void) {
    void *scratch;
    size_t each;
    int i;
    if (pool.threads > 0) return 1;
    if (!look_up() || !xnnrt_key_retain()) return 0;
    i = xnnrt_cores(0);
    pool.threads = i > MOST_THREADS ? MOST_THREADS : i;
    pool.thread = threads;
    each = scratch_bytes / (size_t)pool.threads / 64 * 64;
    if (posix_memalign(&scratch, 64, each * (size_t)pool.threads) != 0) return pool.threads = 0;
    for (i = 0; i < pool.threads; i++) {
        threads[i].pool = &pool;
        xnnrt_workspace_assign(&threads[i], (uint8_t *)scratch + each * (size_t)i, each);
    }
    if (!xnnrt_pool_start(&pool) || !xnnrt_set_this_thread(&threads[0])) return pool.threads = 0;
    return 1;
}

int xnn_tvm_recover_threads(void) { return xnnrt_workspace_recover(&pool); }

void xnn_tvm_fill_slots(void *(*find)(void *, const char *), void *library) {
    xnnrt_launch_slot *launches = (xnnrt_launch_slot *)find(library, "__TVMBackendParallelLaunch");
    xnnrt_alloc_slot *allocates = (xnnrt_alloc_slot *)find(library, "__TVMBackendAllocWorkspace");
    xnnrt_free_slot *frees = (xnnrt_free_slot *)find(library, "__TVMBackendFreeWorkspace");
    if (launches != NULL) *launches = __TVMBackendParallelLaunch;
    if (allocates != NULL) *allocates = __TVMBackendAllocWorkspace;
    if (frees != NULL) *frees = __TVMBackendFreeWorkspace;
}
