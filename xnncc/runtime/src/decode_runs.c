/* decode_runs.c: the alphabet of runs and values. */
#include "decode_runs.h"

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

/* A magnitude above `most`, and a sign. */
void xnnrt_runs_escape(xnnrt_runs *runs, xnnrt_bits *bits) {
    int32_t magnitude = (int32_t)(xnnrt_bits_take_number(bits, RUNS_LONGEST_REST) + runs->most);
    runs->value = xnnrt_bits_take(bits, 1) ? -magnitude : magnitude;
}
