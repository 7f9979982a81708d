/* decode_runs.h: what both Huffman coders share: bits, and symbols that stand for a run of zeros and the value after it.
 * Section 6.6 of docs/package.md. */
#ifndef XNNRT_DECODE_RUNS_H
#define XNNRT_DECODE_RUNS_H

#include <stddef.h>
#include <stdint.h>

#include "hidden.h"

enum { RUNS_MOST_SYMBOLS = 1024, RUNS_LONGEST_REST = 24, RUNS_ESCAPE = INT16_MIN };

/* Bits from the lowest of the first byte on. */
typedef struct {
    uint64_t word;
    int count; /* bits in word */
    const uint8_t *at;
    const uint8_t *end;
    size_t past; /* zero bytes read beyond the end */
} xnnrt_bits;

/* The next symbol of a coder, or RUNS_MOST_SYMBOLS when its stream is damaged. */
typedef struct xnnrt_runs xnnrt_runs;
typedef uint32_t (*xnnrt_next_symbol)(xnnrt_runs *coder);

/* What a coder of runs begins with. */
struct xnnrt_runs {
    xnnrt_bits bits;
    xnnrt_next_symbol next;
    size_t zeros;  /* still to come, then */
    int32_t value; /* unless it is 0 */
    uint32_t symbols;
    uint32_t most; /* magnitude with a symbol of its own */
    uint8_t run[RUNS_MOST_SYMBOLS];
    int16_t after[RUNS_MOST_SYMBOLS]; /* 0 = no value, RUNS_ESCAPE = a larger one, spelled out */
};

static inline void xnnrt_bits_fill(xnnrt_bits *bits) {
    while (bits->count <= 56) {
        if (bits->at != bits->end) {
            bits->word |= (uint64_t)*bits->at++ << bits->count;
        } else {
            bits->past++;
        }
        bits->count += 8;
    }
}

static inline void xnnrt_bits_skip(xnnrt_bits *bits, int count) {
    bits->word >>= count;
    bits->count -= count;
}

/* `count` [0, 32] bits. */
XNNRT_HIDDEN uint32_t xnnrt_bits_take(xnnrt_bits *bits, int count);

/* A number of at least 1: the bits below its highest counted in ones and a zero, at most `longest`, then these bits. */
XNNRT_HIDDEN uint32_t xnnrt_bits_take_number(xnnrt_bits *bits, int longest);

/* Whether the stream is still inside its bytes: up to eight are read ahead. */
static inline int xnnrt_bits_are_there(const xnnrt_bits *bits) { return bits->past * 8 <= (size_t)bits->count; }

/* Runs up to `longest` zeros, values up to `most`, whose `bits` are set. Returns 0 when that makes no alphabet. */
XNNRT_HIDDEN int xnnrt_runs_init(xnnrt_runs *runs, uint32_t longest, uint32_t most);

/* Decode the next `columns` integers. Returns 0 when the stream has ended or is damaged. */
XNNRT_HIDDEN int xnnrt_runs_row(xnnrt_runs *runs, int32_t *line, size_t columns);

#endif
