/* decode_runs.c: the alphabet of runs and values. */
#include "decode_runs.h"

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

/* A magnitude above `most`: the length of the remainder in ones and a zero, its bits below the highest, a sign. */
void xnnrt_runs_escape(xnnrt_runs *runs, xnnrt_bits *bits) {
    int length = 0;
    while (length < RUNS_LONGEST_REST && xnnrt_bits_take(bits, 1)) {
        length++;
    }
    int32_t rest = (int32_t)((uint32_t)1 << length | xnnrt_bits_take(bits, length)) + (int32_t)runs->most;
    runs->value = xnnrt_bits_take(bits, 1) ? -rest : rest;
}
