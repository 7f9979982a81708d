/* decode_range.c: binary range decoder with the mean magnitudes of columns and rows as contexts.
 *
 * The model is described in pack/coding/range_model.py, the coder in pack/coding/range_coder.py; all of it is integer
 * arithmetic, so that every machine decodes the same. Right shifts of negative numbers are arithmetic, as in every
 * compiler that this runtime is built with. */
#include "decode_range.h"

#include <string.h>

/* What runs for every weight is inlined even where size counts (a runtime is built with -Os), what a counter that has
 * learnt no longer needs is kept out of the way: 1.2 times as fast at 10 % density, and smaller (gcc 12, x86-64). */
#define HOT __attribute__((always_inline))
#define COLD __attribute__((noinline))

enum { BYTES_LEFT_OUT = 8 }; /* zeros that an encoder cuts off, and that are read ahead */

void xnnrt_range_model_init(xnnrt_range_model *model, int steady) {
    xnnrt_counter *counters = model->zero[0]; /* all members up to `rate` are counters */
    static const xnnrt_counter even = {(uint32_t)1 << 21, (uint16_t)1 << 15, 0};
    for (size_t i = 0; i < offsetof(xnnrt_range_model, rate) / sizeof *counters; i++) {
        counters[i] = even;
    }
    for (uint32_t mean = 0; mean < RANGE_MEANS; mean++) { /* two levels for each factor of two */
        uint32_t top = mean < 2 ? 0 : 31 - (uint32_t)__builtin_clz(mean);
        model->level[mean] = (uint8_t)(mean < 2 ? mean : 2 * top + (mean >> (top - 1) & 1));
    }
    for (uint32_t seen = 0; seen <= RANGE_SEEN_MOST; seen++) { /* one more from 1, 3, 6, 12, 24, ... on */
        int rate = (model->level[seen] + 3) / 2;
        model->rate[0][seen] = (uint8_t)rate;
        model->rate[1][seen] = (uint8_t)(rate < RANGE_FAST || steady ? rate : RANGE_FAST);
    }
}

/* The next four bytes, the first one highest; zeros beyond the end. */
static COLD uint32_t last_word(xnnrt_range_bits *bits) {
    uint32_t word = 0;
    for (int i = 0; i < 4; i++) {
        int is_past = bits->at == bits->end;
        word = word << 8 | (is_past ? 0u : *bits->at);
        bits->at += !is_past;
        bits->past += (size_t)is_past;
    }
    return word;
}

static inline HOT uint32_t next_word(xnnrt_range_bits *bits) {
    if (bits->end - bits->at >= 4) {
        const uint8_t *p = bits->at;
        bits->at += 4;
        return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    }
    return last_word(bits);
}

void xnnrt_range_start(xnnrt_range *range, const uint8_t *bytes, size_t size, uint32_t mode,
                       uint32_t shift) {
    range->steady = mode >= RANGE_STEADY;
    xnnrt_range_model_init(&range->model, range->steady);
    range->mask = (mode & RANGE_PLAIN) - 1;
    range->shift = shift;
    range->bits = (xnnrt_range_bits){UINT64_MAX, 0, bytes, bytes + size, 0};
    range->bits.value = (uint64_t)last_word(&range->bits) << 32;
    range->bits.value |= last_word(&range->bits);
}

static inline HOT void renormalise(xnnrt_range_bits *bits) {
    if (bits->range >> 32 == 0) {
        bits->range <<= 32;
        bits->value = bits->value << 32 | next_word(bits);
    }
}

static inline uint32_t probability(const xnnrt_counter *counter) {
    return (((uint32_t)counter->fast << 6) + counter->slow) >> 7;
}

static inline HOT void observe_at(xnnrt_counter *counter, uint32_t bit, int fast, int slow) {
    const int32_t truth = bit ? RANGE_LEAST : RANGE_MOST;
    counter->fast = (uint16_t)(counter->fast + ((truth - counter->fast) >> fast));
    counter->slow = (uint32_t)((int32_t)counter->slow + ((truth * 64 - (int32_t)counter->slow) >> slow));
}

/* Of any counter. */
static void observe(xnnrt_counter *counter, uint32_t bit, const uint8_t *rates) {
    const uint8_t *rate = &rates[counter->seen];
    observe_at(counter, bit, rate[RANGE_SEEN_MOST + 1], rate[0]);
    counter->seen = (uint8_t)(counter->seen + (counter->seen < RANGE_SEEN_MOST));
}

/* The next bit: 0 below `bound`. Two ways through, so that what follows a likely bit need not wait for the interval. */
static inline HOT uint32_t decode(xnnrt_range_bits *bits, uint64_t bound) {
    if (bits->value < bound) {
        bits->range = bound;
        renormalise(bits);
        return 0;
    }
    bits->value -= bound;
    bits->range -= bound;
    renormalise(bits);
    return 1;
}

static COLD uint32_t decode_bit(xnnrt_range_bits *bits, uint64_t bound) { return decode(bits, bound); }

/* Of even probability. */
static uint32_t decode_even(xnnrt_range_bits *bits) { return decode_bit(bits, bits->range >> 1); }

/* The next bit, and what `counter` learns of it. While it learns, so does its parent, unless that is null; a counter that is
 * seen for the first time begins where its parent stands. */
static COLD uint32_t decode_any(xnnrt_range_bits *bits, xnnrt_counter *counter, xnnrt_counter *parent,
                                const uint8_t *rates) {
    if (counter->seen == RANGE_SEEN_MOST) {
        parent = NULL;
    } else if (parent != NULL && counter->seen == 0 && parent->seen != 0) {
        uint32_t p = probability(parent);
        *counter = (xnnrt_counter){p << 6, (uint16_t)p, parent->seen};
        counter->seen = parent->seen < RANGE_INHERITED ? parent->seen : RANGE_INHERITED;
    }
    uint32_t bit = decode_bit(bits, (bits->range >> 16) * probability(counter));
    observe(counter, bit, rates);
    if (parent != NULL) {
        observe(parent, bit, rates);
    }
    return bit;
}

/* The same, without a call for a counter that has learnt. */
static inline HOT uint32_t decode_often(xnnrt_range_bits *bits, xnnrt_counter *counter, xnnrt_counter *parent,
                                        const uint8_t *rates, int fast) {
    if (counter->seen != RANGE_SEEN_MOST) {
        return decode_any(bits, counter, parent, rates);
    }
    uint32_t bit = decode(bits, (bits->range >> 16) * probability(counter));
    observe_at(counter, bit, fast, RANGE_SLOW);
    return bit;
}

/* `count` bits behind a 1, the highest first; the first `learnt` of them have counters, by the bits above, and with
 * `chained` so has one behind nothing but ones. */
static COLD uint32_t decode_tail(xnnrt_range_bits *bits, xnnrt_counter *counters, uint32_t count, uint32_t learnt,
                                 int chained, const uint8_t *rates) {
    uint32_t tail = 1;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t bit;
        if (i < learnt) {
            bit = decode_any(bits, &counters[tail - 1], NULL, rates);
        } else if (chained && (tail & (tail + 1)) == 0) {
            bit = decode_any(bits, &counters[i + 1], NULL, rates);
        } else {
            bit = decode_even(bits);
        }
        tail = tail << 1 | bit;
    }
    return tail;
}

/* A magnitude above RANGE_UNARY, less that. */
static COLD uint32_t decode_rest(xnnrt_range_bits *bits, xnnrt_range_model *model) {
    uint32_t length = 0;
    while (length < RANGE_LONGEST && decode_any(bits, &model->length[length], NULL, model->rate[0])) {
        length++;
    }
    return decode_tail(bits, &model->top[length], length, 1, 0, model->rate[0]);
}

static inline int32_t decode_magnitude(xnnrt_range_bits *bits, xnnrt_range_model *model, uint32_t level, uint32_t sign) {
    xnnrt_counter *counter = model->magnitude[level][sign], *parent = model->all_magnitude[sign];
    for (int j = 0; j < RANGE_UNARY; j++) {
        if (!decode_any(bits, &counter[j], &parent[j], model->rate[0])) {
            return j + 1;
        }
    }
    return RANGE_UNARY + (int32_t)decode_rest(bits, model);
}

/* The low bits of a row, of which `line` has the values without them; where that is 0 the sign is still to come. */
static COLD void decode_low(xnnrt_range_bits *bits, xnnrt_range *range, int32_t *line, size_t columns) {
    const uint32_t shift = range->shift;
    for (size_t c = 0; c < columns; c++) {
        uint32_t sign = line[c] < 0, size = (uint32_t)(sign ? -line[c] : line[c]);
        xnnrt_counter *counters = range->model.low[size < RANGE_LOW_BINS ? size : RANGE_LOW_BINS - 1];
        uint32_t tail = decode_tail(bits, counters, shift, RANGE_LOW_LEARNT, range->steady, range->model.rate[0]);
        int32_t value = (int32_t)((size << shift) + tail) - ((int32_t)1 << shift);
        sign = size == 0 && value != 0 ? decode_even(bits) : sign;
        line[c] = sign ? -value : value;
    }
}

int xnnrt_range_row(xnnrt_range *range, int32_t *line, xnnrt_column *column, size_t columns, size_t row) {
    xnnrt_range_bits bits = range->bits; /* in registers */
    xnnrt_range_model *model = &range->model;
    const uint32_t mask = range->mask;
    const int steady = range->steady, fast = model->rate[1][RANGE_SEEN_MOST];
    int column_rate = steady ? RANGE_FIRST_RATE : 0;
    while (column_rate < RANGE_COLUMN_RATE + steady && (row + 1) >> column_rate != 0) {
        column_rate++;
    }
    const int32_t base = row != 0 ? range->base : 0;
    int32_t row_mean = base;
    uint32_t left = 0;
    int row_rate = base != 0 ? RANGE_FIRST_RATE : 0;
    for (size_t c = 0; c < columns; c++) {
        int32_t mean = row == 0 && steady ? row_mean : (int32_t)(column[c] >> 2), value = 0, size = 0;
        uint32_t by_column = model->level[mean >> 4] & mask, by_row = model->level[row_mean >> 4] & mask;
        uint32_t before = left, sign = 0;
        row_rate += row_rate < RANGE_ROW_RATE && (c + 1) >> row_rate != 0;
        left = 0;
        if (decode_often(&bits, &model->zero[by_column][by_row], &model->all_zero, model->rate[0], fast)) {
            xnnrt_counter *counter = &model->sign[(3 * before + (column[c] & 3)) & mask];
            int32_t both = steady ? mean + row_mean - base : (mean + row_mean) >> 1;
            both = both < 0 ? 0 : both > RANGE_CAPPED << 12 ? RANGE_CAPPED << 12 : both;
            sign = decode_any(&bits, counter, &model->all_sign, model->rate[0]);
            size = decode_magnitude(&bits, model, model->level[both >> 4] & mask, sign);
            value = sign ? -size : size;
            size = (size < RANGE_CAPPED ? size : RANGE_CAPPED) << 12;
            left = 1 + sign;
        }
        line[c] = value;
        column[c] = (uint32_t)(mean + ((size - mean) >> column_rate)) << 2 | left;
        row_mean += (size - row_mean) >> row_rate;
    }
    range->base = steady ? base + ((row_mean - base) >> (base != 0 ? RANGE_BASE_RATE : 0)) : 0;
    if (range->shift != 0) {
        decode_low(&bits, range, line, columns);
    }
    range->bits = bits;
    return bits.past <= BYTES_LEFT_OUT;
}
