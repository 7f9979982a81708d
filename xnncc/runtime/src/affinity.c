/* affinity.c: thread affinity through the raw system call: bionic has no wrapper for other threads' masks before API 21
 * and the mask types of C libraries differ, the call does not. Failures are ignored: affinity is a hint. */
#define _DEFAULT_SOURCE
#include "affinity.h"

#include <stddef.h>

#if defined(__linux__) && !defined(XNNRT_NO_THREADS)
#if defined(__aarch64__)
enum { CALL_SET = 122, CALL_GET = 123 };
#define HAVE_AFFINITY
#elif defined(__arm__)
enum { CALL_SET = 241, CALL_GET = 242 };
#define HAVE_AFFINITY
#elif defined(__x86_64__) && defined(__LP64__)
enum { CALL_SET = 203, CALL_GET = 204 };
#define HAVE_AFFINITY
#endif
#endif

int xnnrt_count_cores(uint64_t mask) {
    int cores = 0;
    for (; mask != 0; mask &= mask - 1) {
        cores++;
    }
    return cores;
}

#ifdef HAVE_AFFINITY

#include <unistd.h>

void xnnrt_bind(uint64_t mask, xnnrt_affinity *before) {
    if (before != NULL) {
        /* The call returns the bytes it wrote. */
        before->bytes = mask == 0 ? 0 : syscall(CALL_GET, 0, sizeof before->mask, before->mask);
    }
    if (mask != 0) {
        syscall(CALL_SET, 0, sizeof mask, &mask);
    }
}

void xnnrt_unbind(const xnnrt_affinity *before) {
    if (before->bytes > 0) {
        syscall(CALL_SET, 0, before->bytes, before->mask);
    }
}

#else

void xnnrt_bind(uint64_t mask, xnnrt_affinity *before) { (void)mask, (void)before; }

void xnnrt_unbind(const xnnrt_affinity *before) { (void)before; }

#endif
