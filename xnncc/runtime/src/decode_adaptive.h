/* decode_adaptive.h: one-pass adaptive Huffman code of runs and values. Section 6.6 of docs/package.md. */
#ifndef XNNRT_DECODE_ADAPTIVE_H
#define XNNRT_DECODE_ADAPTIVE_H

#include "decode_runs.h"

enum { ADAPTIVE_NODES = 2 * RUNS_MOST_SYMBOLS + 1 };

/* The tree, its nodes by falling weight: 0 is the root, siblings stand side by side, the last node is the leaf of all
 * symbols that were not seen yet. */
typedef struct {
    xnnrt_runs runs;
    uint32_t nodes;
    int symbol_bits;
    uint32_t weight[ADAPTIVE_NODES];
    uint16_t parent[ADAPTIVE_NODES];
    uint16_t child[ADAPTIVE_NODES];  /* the first of two; 0 = a leaf */
    uint16_t symbol[ADAPTIVE_NODES]; /* of a leaf */
    uint8_t is_seen[RUNS_MOST_SYMBOLS];
} xnnrt_adaptive;

/* Begin with an empty tree; `runs` is there. */
XNNRT_HIDDEN void xnnrt_adaptive_start(xnnrt_adaptive *adaptive);

#endif
