/* decode_range.h: the context range coder, decoding only. Section 6.5 of docs/package.md has the model. */
#ifndef XNNRT_DECODE_RANGE_H
#define XNNRT_DECODE_RANGE_H

#include <stddef.h>
#include <stdint.h>

#include "hidden.h"

/* Numbers of the model: pack/coding/range_model.py changes together with them. */
enum { RANGE_UNARY = 14, RANGE_LONGEST = 24, RANGE_LEVELS = 24, RANGE_SIGNS = 9, RANGE_MEANS = 15 * 256 + 1 };
enum { RANGE_LOW_BINS = 16, RANGE_LOW_LEARNT = 2, RANGE_MOST_SHIFT = 16 };
enum { RANGE_COLUMN_RATE = 6, RANGE_ROW_RATE = 7, RANGE_BASE_RATE = 4, RANGE_FIRST_RATE = 3 };
enum { RANGE_CAPPED = 15, RANGE_INHERITED = 4, RANGE_SEEN_MOST = 255 };
enum { RANGE_FAST = 6, RANGE_SLOW = 9 }; /* rates of a counter that has learnt */
enum { RANGE_PLAIN = 1, RANGE_STEADY = 2, RANGE_MODES = 4 }; /* flags of a mode: without contexts; learns slowly */
enum { RANGE_LEAST = 32, RANGE_MOST = 65504 };

/* The probability of a 0, twice: of the latest dozens of bits (16 bits) and of the latest hundreds (22 bits). */
typedef struct {
    uint32_t slow;
    uint16_t fast;
    uint8_t seen;
} xnnrt_counter;

typedef struct {
    xnnrt_counter zero[RANGE_LEVELS][RANGE_LEVELS]; /* by column, by row */
    xnnrt_counter sign[RANGE_SIGNS];
    xnnrt_counter magnitude[RANGE_LEVELS][2][RANGE_UNARY];
    xnnrt_counter length[RANGE_LONGEST];
    xnnrt_counter top[RANGE_LONGEST + 1];
    xnnrt_counter low[RANGE_LOW_BINS][RANGE_MOST_SHIFT + 1]; /* two bits below a magnitude, then more behind ones */
    xnnrt_counter all_zero;
    xnnrt_counter all_sign;
    xnnrt_counter all_magnitude[2][RANGE_UNARY];
    uint8_t rate[2][RANGE_SEEN_MOST + 1]; /* of the slow and the fast probability, by bits seen */
    uint8_t level[RANGE_MEANS];        /* by mean magnitude, times 256 */
} xnnrt_range_model;

typedef struct {
    uint64_t range;
    uint64_t value;
    const uint8_t *at;
    const uint8_t *end;
    size_t past; /* bytes taken beyond the end: zeros */
} xnnrt_range_bits;

typedef struct {
    xnnrt_range_bits bits;
    uint32_t mask;  /* 0 = without contexts, else all ones */
    uint32_t shift; /* low bits of a magnitude that are coded apart */
    int steady;     /* 1 = the mode is */
    int32_t base;   /* mean magnitude of the tensor's rows, times 4096; 0 unless steady */
    xnnrt_range_model model;
} xnnrt_range;

/* What a row leaves to the next one in each column: the mean magnitude, times 4096 and shifted left by two bits, and the
 * sign of the value above: 0, 1 = positive, 2 = negative. */
typedef uint32_t xnnrt_column;

XNNRT_HIDDEN void xnnrt_range_model_init(xnnrt_range_model *model, int steady);
XNNRT_HIDDEN void xnnrt_range_start(xnnrt_range *range, const uint8_t *bytes, size_t size, uint32_t mode,
                                    uint32_t shift);

/* Decode row number `row` of a tensor into line[columns]. `column` is all zero before row 0. Returns 0 when the stream
 * has ended. */
XNNRT_HIDDEN int xnnrt_range_row(xnnrt_range *range, int32_t *line, xnnrt_column *column, size_t columns, size_t row);

#endif
