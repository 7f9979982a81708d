/* Declarations behind every header of this folder: glibc (x86-64, AArch64), bionic (AArch64, ARMv7) and Darwin (arm64).
   Only what the xnncc runtime and its tools use. ABI sources: bionic libc/include (bits/pthread_types.h, sys/types.h),
   the Linux generic syscall ABI, Apple's public xnu and libpthread headers, the System V psABIs as glibc follows them. */
#ifndef XNN_LIBC_H
#define XNN_LIBC_H
#include <stddef.h>
#include <stdint.h>

typedef long ssize_t;
typedef unsigned int mode_t;
typedef int pid_t;
#if defined(__APPLE__)
typedef long long off_t;
#else
typedef long off_t; /* 32 bits on ARMv7 bionic: files up to 2 GiB */
#endif
typedef long time_t;
struct timespec { time_t tv_sec; long tv_nsec; };

/* stdlib.h, string.h */
void *malloc(size_t);
void *calloc(size_t, size_t);
void *realloc(void *, size_t);
void free(void *);
int posix_memalign(void **, size_t, size_t);
void abort(void) __attribute__((noreturn));
void exit(int) __attribute__((noreturn));
void *memcpy(void *, const void *, size_t);
void *memmove(void *, const void *, size_t);
void *memset(void *, int, size_t);
int memcmp(const void *, const void *, size_t);
size_t strlen(const char *);
int strcmp(const char *, const char *);
int strncmp(const char *, const char *, size_t);

/* fcntl.h, unistd.h, sys/mman.h */
int open(const char *, int, ...);
int close(int);
ssize_t read(int, void *, size_t);
ssize_t write(int, const void *, size_t);
off_t lseek(int, off_t, int);
long sysconf(int);
#if !defined(__APPLE__)
long syscall(long, ...);
#endif
int usleep(unsigned int);
void *mmap(void *, size_t, int, int, int, off_t);
int munmap(void *, size_t);
int madvise(void *, size_t, int);
#define SEEK_SET 0
#define SEEK_CUR 1
#define SEEK_END 2
#define O_RDONLY 0
#define O_WRONLY 1
#define PROT_READ 1
#define PROT_WRITE 2
#define MAP_SHARED 1
#define MAP_PRIVATE 2
#define MAP_FAILED ((void *)-1)
#define MADV_WILLNEED 3
#if defined(__APPLE__)
#define O_CREAT 0x0200
#define O_TRUNC 0x0400
#define O_CLOEXEC 0x01000000
#define MAP_ANONYMOUS 0x1000
#define _SC_PAGESIZE 29
#define _SC_NPROCESSORS_CONF 57
#define _SC_NPROCESSORS_ONLN 58
#else
#define O_CREAT 0100
#define O_TRUNC 01000
#define O_CLOEXEC 02000000
#define MAP_ANONYMOUS 0x20
#if defined(__ANDROID__)
#define _SC_PAGESIZE 0x0027
#define _SC_NPROCESSORS_CONF 0x0060
#define _SC_NPROCESSORS_ONLN 0x0061
#else
#define _SC_PAGESIZE 30
#define _SC_NPROCESSORS_CONF 83
#define _SC_NPROCESSORS_ONLN 84
#endif
#endif
#define _SC_PAGE_SIZE _SC_PAGESIZE

/* errno.h */
#if defined(__APPLE__)
int *__error(void);
#define errno (*__error())
#define EAGAIN 35
#elif defined(__ANDROID__)
int *__errno(void);
#define errno (*__errno())
#define EAGAIN 11
#else
int *__errno_location(void);
#define errno (*__errno_location())
#define EAGAIN 11
#endif
#define ENOENT 2
#define EINTR 4
#define ENOMEM 12
#define EACCES 13
#define EBUSY 16
#define EINVAL 22

/* time.h */
typedef int clockid_t;
int clock_gettime(clockid_t, struct timespec *);
#if defined(__APPLE__)
#define CLOCK_MONOTONIC 6
#else
#define CLOCK_MONOTONIC 1
#endif

/* sched.h */
int sched_yield(void);

/* pthread.h: only sizes, alignment and static initialisers matter, the members are the C library's business */
#if defined(__APPLE__)
typedef struct xnn_pthread *pthread_t;
typedef struct { long sig; char opaque[56]; } pthread_mutex_t;
typedef struct { long sig; char opaque[40]; } pthread_cond_t;
typedef struct { long sig; char opaque[56]; } pthread_attr_t;
typedef struct { long sig; char opaque[8]; } pthread_once_t;
typedef unsigned long pthread_key_t;
#define PTHREAD_ONCE_INIT {0x30B1BCBA, {0}}
#define PTHREAD_MUTEX_INITIALIZER {0x32AAABA7, {0}}
#define PTHREAD_COND_INITIALIZER {0x3CB0B1BB, {0}}
#elif defined(__ANDROID__) && defined(__LP64__)
typedef long pthread_t;
typedef struct { int32_t opaque[10]; } pthread_mutex_t;
typedef struct { int32_t opaque[12]; } pthread_cond_t;
typedef struct { uint64_t opaque[7]; } pthread_attr_t;
typedef int pthread_once_t;
typedef int pthread_key_t;
#elif defined(__ANDROID__)
typedef long pthread_t;
typedef struct { int32_t opaque[1]; } pthread_mutex_t;
typedef struct { int32_t opaque[1]; } pthread_cond_t;
typedef struct { uint32_t opaque[6]; } pthread_attr_t;
typedef int pthread_once_t;
typedef int pthread_key_t;
#else
typedef unsigned long pthread_t;
#if defined(__aarch64__)
typedef union { char opaque[48]; long align; } pthread_mutex_t;
typedef union { char opaque[64]; long align; } pthread_attr_t;
#elif defined(__arm__) /* for the emulator's shim only */
typedef union { char opaque[24]; long align; } pthread_mutex_t;
typedef union { char opaque[36]; long align; } pthread_attr_t;
#else
typedef union { char opaque[40]; long align; } pthread_mutex_t;
typedef union { char opaque[56]; long align; } pthread_attr_t;
#endif
typedef union { char opaque[48]; long long align; } pthread_cond_t;
typedef int pthread_once_t;
typedef unsigned int pthread_key_t;
#endif
#if !defined(__APPLE__)
#define PTHREAD_ONCE_INIT 0
#define PTHREAD_MUTEX_INITIALIZER {{0}}
#define PTHREAD_COND_INITIALIZER {{0}}
#endif
int pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int pthread_join(pthread_t, void **);
pthread_t pthread_self(void);
int pthread_attr_init(pthread_attr_t *);
int pthread_attr_destroy(pthread_attr_t *);
int pthread_attr_setstacksize(pthread_attr_t *, size_t);
int pthread_mutex_init(pthread_mutex_t *, const void *);
int pthread_mutex_destroy(pthread_mutex_t *);
int pthread_mutex_lock(pthread_mutex_t *);
int pthread_mutex_trylock(pthread_mutex_t *);
int pthread_mutex_unlock(pthread_mutex_t *);
int pthread_cond_init(pthread_cond_t *, const void *);
int pthread_cond_destroy(pthread_cond_t *);
int pthread_cond_wait(pthread_cond_t *, pthread_mutex_t *);
int pthread_cond_signal(pthread_cond_t *);
int pthread_cond_broadcast(pthread_cond_t *);
int pthread_key_create(pthread_key_t *, void (*)(void *));
int pthread_key_delete(pthread_key_t);
void *pthread_getspecific(pthread_key_t);
int pthread_setspecific(pthread_key_t, const void *);
int pthread_once(pthread_once_t *, void (*)(void));

/* dlfcn.h */
void *dlopen(const char *, int);
void *dlsym(void *, const char *);
char *dlerror(void);
int dlclose(void *);
#if defined(__ANDROID__) && !defined(__LP64__)
#define RTLD_NOW 0
#else
#define RTLD_NOW 2
#endif
#endif
