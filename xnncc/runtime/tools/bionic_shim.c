/* bionic_shim.c: TEST ONLY. The functions of bionic whose ABI differs from glibc's, on top of glibc, so that an Android
 * library can be loaded and run under qemu-user on a machine that has no Android. It is a shim and not bionic: it proves
 * the library's format, its calls and its numbers, and nothing about Android's own linker or C library.
 *
 * Objects that bionic keeps smaller than glibc (mutex 40 or 4 bytes, condition 48 or 4, attributes 56 or 24) are boxed:
 * their first word points to glibc's own. All other functions are forwarded by device/shim.py without passing here. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define REAL __attribute__((visibility("default")))
#define BOX(type, p) (*(type **)(p))

#define BOXED(type, name) \
    REAL int r_pthread_##name##_init(void *p, const void *attributes) { \
        (void)attributes; \
        BOX(type, p) = malloc(sizeof(type)); \
        return pthread_##name##_init(BOX(type, p), NULL); \
    } \
    REAL int r_pthread_##name##_destroy(void *p) { \
        int result = pthread_##name##_destroy(BOX(type, p)); \
        free(BOX(type, p)); \
        BOX(type, p) = NULL; \
        return result; \
    }
BOXED(pthread_mutex_t, mutex)
BOXED(pthread_cond_t, cond)

/* A mutex made by PTHREAD_MUTEX_INITIALIZER is all zero and gets its box here. */
static pthread_mutex_t *mutex_of(void *p) {
    if (BOX(pthread_mutex_t, p) == NULL) r_pthread_mutex_init(p, NULL);
    return BOX(pthread_mutex_t, p);
}
REAL int r_pthread_mutex_lock(void *p) { return pthread_mutex_lock(mutex_of(p)); }
REAL int r_pthread_mutex_trylock(void *p) { return pthread_mutex_trylock(mutex_of(p)); }
REAL int r_pthread_mutex_unlock(void *p) { return pthread_mutex_unlock(mutex_of(p)); }
REAL int r_pthread_cond_wait(void *c, void *m) { return pthread_cond_wait(BOX(pthread_cond_t, c), mutex_of(m)); }
REAL int r_pthread_cond_signal(void *c) { return pthread_cond_signal(BOX(pthread_cond_t, c)); }
REAL int r_pthread_cond_broadcast(void *c) { return pthread_cond_broadcast(BOX(pthread_cond_t, c)); }

REAL int r_pthread_attr_init(void *a) {
    BOX(pthread_attr_t, a) = malloc(sizeof(pthread_attr_t));
    return pthread_attr_init(BOX(pthread_attr_t, a));
}
REAL int r_pthread_attr_destroy(void *a) {
    int result = pthread_attr_destroy(BOX(pthread_attr_t, a));
    free(BOX(pthread_attr_t, a));
    return result;
}
REAL int r_pthread_attr_setstacksize(void *a, size_t bytes) {
    return pthread_attr_setstacksize(BOX(pthread_attr_t, a), bytes);
}
REAL int r_pthread_create(pthread_t *thread, const void *a, void *(*body)(void *), void *data) {
    return pthread_create(thread, a ? BOX(pthread_attr_t, (void *)(uintptr_t)a) : NULL, body, data);
}

REAL long r_sysconf(int name) {
    if (name == 0x61) return sysconf(_SC_NPROCESSORS_ONLN);
    if (name == 0x60) return sysconf(_SC_NPROCESSORS_CONF);
    if (name == 0x27 || name == 0x28) return sysconf(_SC_PAGESIZE);
    return -1;
}
/* RTLD_NOW is 0 on 32-bit bionic. */
REAL void *r_dlopen(const char *path, int mode) {
    (void)mode;
    return dlopen(path, RTLD_NOW);
}
REAL int *r___errno(void) { return __errno_location(); }

REAL void r___libc_init(long *stack, void (*at_exit)(void), int (*main_)(int, char **, char **), const void *structors) {
    int argc = (int)stack[0];
    char **argv = (char **)(stack + 1);
    (void)at_exit;
    (void)structors;
    exit(main_(argc, argv, argv + argc + 1));
}
