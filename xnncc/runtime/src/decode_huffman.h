/* decode_huffman.h: canonical Huffman codes of runs and values, for decoding speed. Section 6.6 of docs/package.md. */
#ifndef XNNRT_DECODE_HUFFMAN_H
#define XNNRT_DECODE_HUFFMAN_H

#include "decode_runs.h"

enum { HUFFMAN_LONGEST = 12 }; /* bits of a code */

typedef struct {
    xnnrt_runs runs;
    uint16_t table[1 << HUFFMAN_LONGEST]; /* by the next bits: symbol << 4 | length of its code */
} xnnrt_huffman;

/* Read the table of code lengths; `runs` is there. Returns 0 when it is none. */
XNNRT_HIDDEN int xnnrt_huffman_start(xnnrt_huffman *huffman);

#endif
