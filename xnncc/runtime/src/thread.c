/* thread.c: the state that hangs on a thread, and the key it hangs on. The only variables of the runtime that change. */
#include "thread.h"

#ifdef XNNRT_NO_THREADS

static xnnrt_thread *current;

int xnnrt_key_retain(void) { return 1; }

void xnnrt_key_release(void) {}

xnnrt_thread *xnnrt_this_thread(void) { return current; }

int xnnrt_set_this_thread(xnnrt_thread *thread) {
    current = thread;
    return 1;
}

#else

#include <sched.h>

/* The key lives while nets are open: systems have few (128 on Android), and every model library has a runtime. */
static pthread_key_t key;
static int key_users; /* changed under key_lock, read anywhere */
static int key_lock;  /* held for a few instructions by open and close: a lock that needs no initialiser */

static void lock(void) {
    while (__atomic_exchange_n(&key_lock, 1, __ATOMIC_ACQUIRE) != 0) {
        sched_yield();
    }
}

static void unlock(void) { __atomic_store_n(&key_lock, 0, __ATOMIC_RELEASE); }

int xnnrt_key_retain(void) {
    lock();
    int good = key_users > 0 || pthread_key_create(&key, NULL) == 0;
    if (good) {
        __atomic_store_n(&key_users, key_users + 1, __ATOMIC_RELEASE);
    }
    unlock();
    return good;
}

void xnnrt_key_release(void) {
    lock();
    __atomic_store_n(&key_users, key_users - 1, __ATOMIC_RELEASE);
    if (key_users == 0) {
        pthread_key_delete(key);
    }
    unlock();
}

xnnrt_thread *xnnrt_this_thread(void) {
    return __atomic_load_n(&key_users, __ATOMIC_ACQUIRE) > 0 ? pthread_getspecific(key) : NULL;
}

int xnnrt_set_this_thread(xnnrt_thread *thread) { return pthread_setspecific(key, thread) == 0; }

#endif
