/* decode_huffman.h: canonical Huffman codes of runs and values, for decoding speed. Section 6.6 of docs/package.md. */
#ifndef XNNRT_DECODE_HUFFMAN_H
#define XNNRT_DECODE_HUFFMAN_H

#include "decode_runs.h"

enum { HUFFMAN_LONGEST = 12 }; /* bits of a code */

typedef struct {
    xnnrt_bits bits;
    xnnrt_runs runs;
    uint16_t table[1 << HUFFMAN_LONGEST]; /* by the next bits: symbol << 4 | length of its code */
} xnnrt_huffman;

/* Read the table of code lengths. Returns 0 when it is none. */
XNNRT_HIDDEN int xnnrt_huffman_start(xnnrt_huffman *huffman, const uint8_t *bytes, size_t size, uint32_t longest,
                                     uint32_t most);

/* Decode the next `columns` integers. Returns 0 when the stream has ended. */
XNNRT_HIDDEN int xnnrt_huffman_row(xnnrt_huffman *huffman, int32_t *line, size_t columns);

#endif
