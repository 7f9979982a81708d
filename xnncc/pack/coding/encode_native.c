/* encode_native.c: what native.py compiles, beside the runtime's decoders: the range encoder, and whole streams at once.
 *
 * The encoder mirrors range_coder.py and runtime/src/decode_range.c; tests hold the three against each other. */
#include <stdlib.h>
#include <string.h>

#include "decode_stream.h"

#define EXPORT __attribute__((visibility("default")))

typedef struct {
    uint64_t low, range;
    uint8_t *out; /* malloc; null when there was none */
    size_t size, capacity;
    xnnrt_range_model model;
} encoder;

static void shift(encoder *e, int bytes) {
    if (e->capacity - e->size < 8) {
        e->capacity = 2 * e->capacity + 64;
        uint8_t *more = realloc(e->out, e->capacity);
        if (more == NULL) {
            abort(); /* an encoder is no place to go on without memory */
        }
        e->out = more;
    }
    for (int i = 0; i < bytes; i++) {
        e->out[e->size++] = (uint8_t)(e->low >> (56 - 8 * i));
    }
    e->low = bytes == 8 ? 0 : e->low << 8 * bytes;
}

static void add(encoder *e, uint64_t amount) {
    e->low += amount;
    if (e->low < amount) { /* a carry runs back through the output */
        size_t i = e->size;
        while (++e->out[--i] == 0) {
        }
    }
}

static void narrow(encoder *e, uint64_t bound, int bit) {
    if (bit) {
        add(e, bound);
        e->range -= bound;
    } else {
        e->range = bound;
    }
    if (e->range >> 32 == 0) {
        shift(e, 4);
        e->range <<= 32;
    }
}

static void observe(encoder *e, xnnrt_counter *counter, int bit) {
    int slow = e->model.rate[0][counter->seen], fast = e->model.rate[1][counter->seen];
    int32_t truth = bit ? RANGE_LEAST : RANGE_MOST;
    counter->fast = (uint16_t)(counter->fast + ((truth - counter->fast) >> fast));
    counter->slow = (uint32_t)((int32_t)counter->slow + ((truth * 64 - (int32_t)counter->slow) >> slow));
    counter->seen = (uint8_t)(counter->seen + (counter->seen < RANGE_SEEN_MOST));
}

static uint32_t probability(const xnnrt_counter *counter) {
    return (((uint32_t)counter->fast << 6) + counter->slow) >> 7;
}

static int put(encoder *e, xnnrt_counter *counter, xnnrt_counter *parent, int bit) {
    if (parent != NULL && counter->seen == 0 && parent->seen != 0) {
        uint32_t p = probability(parent);
        counter->slow = p << 6;
        counter->fast = (uint16_t)p;
        counter->seen = parent->seen < RANGE_INHERITED ? parent->seen : RANGE_INHERITED;
    }
    narrow(e, (e->range >> 16) * probability(counter), bit);
    if (parent != NULL && counter->seen < RANGE_SEEN_MOST) {
        observe(e, parent, bit);
    }
    observe(e, counter, bit);
    return bit;
}

static void put_tail(encoder *e, xnnrt_counter *counters, int count, int learnt, int chained, uint32_t value) {
    uint32_t tail = 1;
    for (int i = count - 1; i >= 0; i--) {
        int bit = value >> i & 1;
        if (i >= count - learnt) {
            put(e, &counters[tail - 1], NULL, bit);
        } else if (chained && (tail & (tail + 1)) == 0) {
            put(e, &counters[count - i], NULL, bit);
        } else {
            narrow(e, e->range >> 1, bit);
        }
        tail = tail << 1 | (uint32_t)bit;
    }
}

static void put_magnitude(encoder *e, uint32_t size, uint32_t level, int sign) {
    for (uint32_t j = 0; j < RANGE_UNARY; j++) {
        if (!put(e, &e->model.magnitude[level][sign][j], &e->model.all_magnitude[sign][j], size > j + 1)) {
            return;
        }
    }
    uint32_t rest = size - RANGE_UNARY;
    int length = 0;
    while (length < RANGE_LONGEST && put(e, &e->model.length[length], NULL, rest >> (length + 1) != 0)) {
        length++;
    }
    put_tail(e, &e->model.top[length], length, 1, 0, rest);
}

static void put_low(encoder *e, const int32_t *values, size_t columns, int shift, int steady) {
    for (size_t c = 0; c < columns; c++) {
        uint32_t size = (uint32_t)(values[c] < 0 ? -values[c] : values[c]), high = size >> shift;
        uint32_t bin = high < RANGE_LOW_BINS ? high : RANGE_LOW_BINS - 1;
        put_tail(e, e->model.low[bin], shift, RANGE_LOW_LEARNT, steady, size);
        if (high == 0 && size != 0) {
            narrow(e, e->range >> 1, values[c] < 0);
        }
    }
}

static int rate_of(size_t n, int least, int most) {
    while (least < most && n >> least != 0) {
        least++;
    }
    return least;
}

static void put_tensor(encoder *e, const int32_t *values, size_t rows, size_t columns, uint32_t mode, int shift,
                       uint32_t *column) {
    const uint32_t mask = mode & RANGE_PLAIN ? 0 : ~(uint32_t)0;
    const int steady = mode >= RANGE_STEADY;
    int32_t base = 0;
    memset(column, 0, columns * sizeof *column);
    for (size_t r = 0; r < rows; r++) {
        const int column_rate = rate_of(r + 1, steady ? RANGE_FIRST_RATE : 0, RANGE_COLUMN_RATE + steady);
        int32_t row_mean = base;
        uint32_t left = 0;
        for (size_t c = 0; c < columns; c++) {
            int32_t value = values[c], size = (value < 0 ? -value : value) >> shift;
            int32_t mean = r == 0 && steady ? row_mean : (int32_t)(column[c] >> 2);
            int32_t both = steady ? mean + row_mean - base : (mean + row_mean) >> 1;
            uint32_t by_column = e->model.level[mean >> 4] & mask, by_row = e->model.level[row_mean >> 4] & mask;
            uint32_t before = left;
            left = 0;
            if (put(e, &e->model.zero[by_column][by_row], &e->model.all_zero, size != 0)) {
                put(e, &e->model.sign[(3 * before + (column[c] & 3)) & mask], &e->model.all_sign, value < 0);
                both = both < 0 ? 0 : both > RANGE_CAPPED << 12 ? RANGE_CAPPED << 12 : both;
                put_magnitude(e, (uint32_t)size, e->model.level[both >> 4] & mask, value < 0);
                size = (size < RANGE_CAPPED ? size : RANGE_CAPPED) << 12;
                left = 1 + (uint32_t)(value < 0);
            }
            column[c] = (uint32_t)(mean + ((size - mean) >> column_rate)) << 2 | left;
            row_mean += (size - row_mean) >> rate_of(c + 1, base != 0 ? RANGE_FIRST_RATE : 0, RANGE_ROW_RATE);
        }
        base = steady ? base + ((row_mean - base) >> (base != 0 ? RANGE_BASE_RATE : 0)) : 0;
        if (shift != 0) {
            put_low(e, values, columns, shift, steady);
        }
        values += columns;
    }
}

/* As many bytes of the interval as tell it from its neighbours: those of its number with the most zeros at its end. */
static void finish(encoder *e) {
    uint64_t ones = ~(uint64_t)0; /* the zeros wanted */
    while (((0 - e->low) & ones) >= e->range) {
        ones >>= 1;
    }
    add(e, (0 - e->low) & ones);
    size_t before = e->size;
    shift(e, 8);
    while (e->size > before && e->out[e->size - 1] == 0) {
        e->size--;
    }
}

/* Code `count` tensors, one after the other in `values`, into one stream at *out (give it back with
 * xnncc_free). mode: flags of decode_range.h. ends[i]: bytes after tensor i. Returns the length. */
EXPORT size_t xnncc_encode_range(const int32_t *values, size_t count, const uint64_t *rows, const uint64_t *columns,
                                 uint32_t mode, uint32_t shift, uint8_t **out, uint64_t *ends) {
    encoder *e = calloc(1, sizeof *e);
    uint64_t widest = 1;
    for (size_t i = 0; i < count; i++) {
        widest = columns[i] > widest ? columns[i] : widest;
    }
    uint32_t *column = malloc(widest * sizeof *column);
    if (e == NULL || column == NULL) {
        abort();
    }
    e->range = UINT64_MAX;
    xnnrt_range_model_init(&e->model, mode >= RANGE_STEADY);
    for (size_t i = 0; i < count; i++) {
        put_tensor(e, values, rows[i], columns[i], mode, (int)shift, column);
        values += rows[i] * columns[i];
        ends[i] = e->size;
    }
    finish(e);
    size_t size = e->size;
    *out = e->out;
    free(column);
    free(e);
    return size;
}

EXPORT void xnncc_free(uint8_t *out) { free(out); }

/* Decode one stream of `count` tensors into `values`. Returns 1, or 0 when the stream is damaged or there is no memory. */
EXPORT int xnncc_decode(uint32_t coder, uint32_t first, uint32_t second, const uint8_t *bytes, size_t size, size_t count,
                        const uint64_t *rows, const uint64_t *columns, int32_t *values) {
    uint64_t widest = 1;
    for (size_t i = 0; i < count; i++) {
        widest = columns[i] > widest ? columns[i] : widest;
    }
    xnnrt_stream *stream = malloc(sizeof *stream);
    xnnrt_column *column = malloc(widest * sizeof *column);
    int good = stream != NULL && column != NULL && xnnrt_stream_start(stream, coder, first, second, bytes, size);
    for (size_t i = 0; i < count && good; i++) {
        memset(column, 0, columns[i] * sizeof *column);
        for (size_t r = 0; r < rows[i] && good; r++) {
            good = xnnrt_stream_row(stream, values, column, columns[i], r);
            values += columns[i];
        }
    }
    free(column);
    free(stream);
    return good;
}
