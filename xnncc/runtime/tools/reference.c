/* reference.c: the kernel that tells how fast a device is just now. Operator 0 multiplies two 64 x 64 float32 matrices
 * LAPS times over: the clock decides its time, memory hardly does. It never changes: times of it are compared over
 * months. The arena: A, B, then C = A B. BUILD_ID comes with -D. The signature is that of a generated graph function. */
#include <stdint.h>

enum { SIDE = 64, LAPS = 4 };

int32_t xnn_reference_graph(const void *weights, void *arena, const int64_t *io, int32_t first, int32_t last) {
    const float *a = arena, *b = a + SIDE * SIDE;
    float *c = (float *)arena + 2 * SIDE * SIDE;
    int32_t lap, i, j, k;
    (void)weights, (void)io;
    if (first == -1) {
        *(int64_t *)arena = BUILD_ID;
        return 0;
    }
    if (first != 0 || last != 1) return 0;
    for (lap = 0; lap < LAPS; lap++) {
        for (i = 0; i < SIDE; i++) {
            for (j = 0; j < SIDE; j++) c[i * SIDE + j] = 0.0f;
            for (k = 0; k < SIDE; k++) {
                for (j = 0; j < SIDE; j++) c[i * SIDE + j] += a[i * SIDE + k] * b[k * SIDE + j];
            }
        }
        __asm__ volatile("" : : : "memory"); /* each lap is done */
    }
    return 0;
}
