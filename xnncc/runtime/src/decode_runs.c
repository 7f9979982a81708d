/* decode_runs.c: the alphabet of runs and values. */
#include "decode_runs.h"

#include <string.h>

uint32_t xnnrt_bits_take(xnnrt_bits *bits, int count) {
    xnnrt_bits_fill(bits);
    uint32_t value = (uint32_t)(bits->word & (((uint64_t)1 << count) - 1));
    xnnrt_bits_skip(bits, count);
    return value;
}

uint32_t xnnrt_bits_take_number(xnnrt_bits *bits, int longest) {
    int length = 0;
    while (length < longest && xnnrt_bits_take(bits, 1)) {
        length++;
    }
    return (uint32_t)1 << length | xnnrt_bits_take(bits, length);
}

int xnnrt_runs_init(xnnrt_runs *runs, uint32_t longest, uint32_t most) {
    const uint32_t values = 2 * most + 1;
    runs->symbols = longest * values + 1;
    if (longest == 0 || runs->symbols > RUNS_MOST_SYMBOLS) {
        return 0;
    }
    for (uint32_t i = 0; i < runs->symbols - 1; i++) { /* 1, -1, 2, -2, ..., escape */
        int32_t magnitude = (int32_t)(i % values / 2 + 1);
        runs->run[i] = (uint8_t)(i / values);
        runs->after[i] = (int16_t)(i % values == values - 1 ? RUNS_ESCAPE : i % values % 2 ? -magnitude : magnitude);
    }
    runs->run[runs->symbols - 1] = (uint8_t)longest;
    runs->after[runs->symbols - 1] = 0;
    runs->most = most;
    runs->zeros = 0;
    runs->value = 0;
    return 1;
}

/* A value above `most`: its magnitude less that, and a sign. */
static int32_t take_escaped(xnnrt_runs *runs) {
    int32_t magnitude = (int32_t)(xnnrt_bits_take_number(&runs->bits, RUNS_LONGEST_REST) + runs->most);
    return xnnrt_bits_take(&runs->bits, 1) ? -magnitude : magnitude;
}

int xnnrt_runs_row(xnnrt_runs *runs, int32_t *line, size_t columns) {
    memset(line, 0, columns * sizeof *line);
    for (size_t c = 0;;) {
        if (runs->zeros >= columns - c) {
            runs->zeros -= columns - c;
            return xnnrt_bits_are_there(&runs->bits);
        }
        c += runs->zeros;
        runs->zeros = 0;
        if (runs->value != 0) {
            line[c++] = runs->value;
            runs->value = 0;
            continue;
        }
        uint32_t symbol = runs->next(runs);
        if (symbol == RUNS_MOST_SYMBOLS) {
            return 0;
        }
        runs->zeros = runs->run[symbol];
        runs->value = runs->after[symbol] == RUNS_ESCAPE ? take_escaped(runs) : runs->after[symbol];
    }
}
