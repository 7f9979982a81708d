/* affinity.h: which cores a thread may use. Does nothing where the system has no such call. */
#ifndef XNNRT_AFFINITY_H
#define XNNRT_AFFINITY_H

#include <stdint.h>

#include "hidden.h"

/* Set bits of a core mask. */
XNNRT_HIDDEN int xnnrt_count_cores(uint64_t mask);

/* The affinity of a thread as it was, for up to 1024 cores. */
typedef struct {
    unsigned long mask[1024 / (8 * sizeof(unsigned long))];
    long bytes; /* of mask that are set; 0 = nothing to restore */
} xnnrt_affinity;

/* Bind the calling thread to the cores of `mask`; 0 = leave it. `before` may be null. */
XNNRT_HIDDEN void xnnrt_bind(uint64_t mask, xnnrt_affinity *before);
XNNRT_HIDDEN void xnnrt_unbind(const xnnrt_affinity *before);

#endif
