/* A library of candidates whose speed and faults are known: operator k computes y = 2 x + 1 on 64 floats, (k + 1) * LAPS
   times over. Bit k of CRASH, HANG or WRONG: it crashes, never ends, or is off by one half. BUILD_ID comes with -D, too. */
#include <stdint.h>
#define COUNT 64

int32_t xnn_known_graph(const void *weights, void *arena, const int64_t *io, int32_t first, int32_t last) {
    const float *x = arena;
    float *y = (float *)arena + COUNT;
    int32_t op;
    (void)weights, (void)io;
    if (first == -1) {
        *(int64_t *)arena = BUILD_ID;
        return 0;
    }
    for (op = first; op < last; op++) {
        int32_t lap, i;
        for (lap = 0; lap < (op + 1) * LAPS; lap++) {
            for (i = 0; i < COUNT; i++) y[i] = x[i] * 2.0f + 1.0f;
            __asm__ volatile("" : : : "memory"); /* each lap is done */
        }
        if (WRONG >> op & 1) y[0] += 0.5f;
        if (CRASH >> op & 1) *(volatile int *)(intptr_t)8 = 1;
        while (HANG >> op & 1) __asm__ volatile("" : : : "memory");
    }
    return 0;
}
