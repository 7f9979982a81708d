/* net.h: an open network. */
#ifndef XNNRT_NET_H
#define XNNRT_NET_H

#include "file.h"
#include "package.h"
#include "pool.h"

struct xnnrt_net {
    xnnrt_graph graph;
    xnnrt_package package;
    const uint8_t *weights; /* 64-byte aligned */
    uint8_t *arena;         /* 64-byte aligned: planned buffers, then the scratch of each thread */
    uint8_t *prepared;      /* what the graph made of the weights at open, or null */
    int64_t *io;            /* [tensors of the package + 1]: the last one is prepared */
    uint8_t *state;         /* all states before a run, then all states after it, or the other way round; or null */
    int state_turn;         /* 0 or 1: which half is the one before */
    int running;            /* 1 while a thread is inside xnnrt_run */
    int has_key;
    xnnrt_pool pool;
    /* What close gives back; null where the caller owns it. */
    void *own_weights;
    void *own_arena;
#ifndef XNNRT_NO_FILE
    xnnrt_file file;
#endif
};

#endif
