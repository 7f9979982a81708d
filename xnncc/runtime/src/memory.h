/* memory.h: 64-byte aligned memory, from nothing but malloc and free. */
#ifndef XNNRT_MEMORY_H
#define XNNRT_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "hidden.h"

#define XNNRT_ALIGNMENT ((size_t)64)

/* At least `bytes` bytes, 64-byte aligned, not cleared; null when there are none. Give back with xnnrt_release. */
XNNRT_HIDDEN void *xnnrt_allocate(size_t bytes);
XNNRT_HIDDEN void xnnrt_release(void *memory);

/* `bytes` [0, SIZE_MAX - 63] rounded up to a multiple of 64. */
static inline size_t xnnrt_align(size_t bytes) { return (bytes + XNNRT_ALIGNMENT - 1) & ~(XNNRT_ALIGNMENT - 1); }

static inline int xnnrt_is_aligned(const void *memory, size_t alignment) {
    return ((uintptr_t)memory & (alignment - 1)) == 0;
}

#endif
