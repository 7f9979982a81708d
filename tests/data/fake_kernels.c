/* Kernels that write down how they were called: which one, and where each argument lies. */
#include <stdint.h>

int64_t calls, kernels[64], arguments[64][4], failing = -1;

static int32_t note(int64_t kernel, void *a, void *b, void *c, void *d) {
    kernels[calls] = kernel;
    arguments[calls][0] = (int64_t)(intptr_t)a;
    arguments[calls][1] = (int64_t)(intptr_t)b;
    arguments[calls][2] = (int64_t)(intptr_t)c;
    arguments[calls][3] = (int64_t)(intptr_t)d;
    calls++;
    return kernel == failing ? -1 : 0;
}

int32_t xnn_net_two(void *a, void *b) { return note(0, a, b, 0, 0); }
int32_t xnn_net_three(void *a, void *b, void *c) { return note(1, a, b, c, 0); }
int32_t xnn_net_four(void *a, void *b, void *c, void *d) { return note(2, a, b, c, d); }
int32_t xnn_net_opening(void *a, void *b) { return note(3, a, b, 0, 0); }
