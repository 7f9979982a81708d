/* drive_states.c PACKAGE: states between runs. Input x, states a [3] and b []; y = a + x, a' = a + x, b' = b + 1. */
#include <string.h>

#include "fake_model.h"
#include "xnnrt.h"

static int fails;

/* io: x, a, b, y, a', b', prepared. Operator 0 computes y and a', operator 1 computes b'. */
static int32_t graph(const void *weights, void *arena, const int64_t *io, int32_t first, int32_t last) {
    (void)weights;
    if (first == -1) {
        *(int64_t *)arena = 5;
        return 0;
    }
    char *base = arena;
    const float *x = (const float *)(base + io[0]), *a = (const float *)(base + io[1]);
    const int32_t *b = (const int32_t *)(base + io[2]);
    float *y = (float *)(base + io[3]), *next = (float *)(base + io[4]);
    for (int i = 0; first == 0 && last > 0 && i < 3; i++) {
        next[i] = y[i] = a[i] + x[i];
    }
    if (last == 2 && first < 2) {
        *(int32_t *)(base + io[5]) = *b + 1;
        y[0] += 100.0f * (float)*b; /* shows b */
    }
    return fails ? -1 : 0;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    xnnrt_net *net;
    CHECK(xnnrt_open_file(&net, graph, argv[1], NULL) == XNNRT_OK);
    CHECK(xnnrt_input_count(net) == 1 && xnnrt_output_count(net) == 1);
    xnnrt_tensor t;
    CHECK(xnnrt_output_info(net, 0, &t) == XNNRT_OK && strcmp(t.name, "y") == 0);
    CHECK(xnnrt_find_input(net, "a") == -1 && xnnrt_find_output(net, "a'") == -1 && xnnrt_find_output(net, "y") == 0);
    float x[3] = {1, 2, 3}, y[3];
    const void *inputs[] = {x};
    void *outputs[] = {y};
    for (int round = 0; round < 2; round++) {
        for (int run = 0; run < 5; run++) {
            CHECK(xnnrt_run(net, inputs, outputs) == XNNRT_OK);
            CHECK(y[0] == (float)(run + 1) + 100.0f * (float)run && y[2] == 3.0f * (float)(run + 1));
        }
        CHECK(xnnrt_reset(net) == XNNRT_OK);
    }
    CHECK(xnnrt_run_ops(net, inputs, outputs, 0, 1) == XNNRT_OK); /* the states move on with the last operator only */
    CHECK(xnnrt_run_ops(net, inputs, outputs, 0, 1) == XNNRT_OK);
    CHECK(xnnrt_run_ops(net, inputs, outputs, 1, 2) == XNNRT_OK && y[2] == 3.0f);
    CHECK(xnnrt_run_ops(net, inputs, outputs, 2, 2) == XNNRT_OK);
    fails = 1;
    CHECK(xnnrt_run(net, inputs, outputs) == XNNRT_KERNEL_FAILED); /* leaves them as they were */
    fails = 0;
    CHECK(xnnrt_run(net, inputs, outputs) == XNNRT_OK && y[0] == 102.0f && y[2] == 6.0f);
    CHECK(xnnrt_reset(NULL) == XNNRT_BAD_ARGUMENT);
    xnnrt_close(net);
    return 0;
}
