/* drive_variants.c PACKAGE: one network for inputs [1, 4], [1, 6] and [1, 2], with state h [2].
 *
 * y = (x[0], .., x[n-1]) + number of the variant + h[0], and h' = h + 1. Each variant has 2 operators, numbered on. */
#include <string.h>

#include "fake_model.h"
#include "xnnrt.h"

static const int64_t widths[] = {4, 6, 2};

/* io: x, h, y, h', prepared. The first operator of a variant computes y, the second h'. */
static int32_t graph(const void *weights, void *arena, const int64_t *io, int32_t first, int32_t last) {
    (void)weights;
    if (first == -1) {
        *(int64_t *)arena = 9;
        return 0;
    }
    char *base = arena;
    memset(arena, 7, 640); /* the arena of the largest variant */
    const float *x = (const float *)(base + io[0]), *h = (const float *)(base + io[1]);
    float *y = (float *)(base + io[2]), *next = (float *)(base + io[3]);
    for (int32_t op = first; op < last; op++) {
        int variant = op / 2;
        for (int i = 0; op % 2 == 0 && i < widths[variant]; i++) {
            y[i] = x[i] + (float)variant + h[0];
        }
        for (int i = 0; op % 2 == 1 && i < 2; i++) {
            next[i] = h[i] + 1.0f;
        }
    }
    return 0;
}

static void check_variant(xnnrt_net *net, int variant, float state) {
    float x[6] = {10, 20, 30, 40, 50, 60}, y[6] = {0};
    const void *inputs[] = {x};
    void *outputs[] = {y};
    xnnrt_tensor t;
    CHECK(xnnrt_op_count(net) == 2 && xnnrt_input_count(net) == 1 && xnnrt_output_count(net) == 1);
    CHECK(xnnrt_input_info(net, 0, &t) == XNNRT_OK && strcmp(t.name, "x") == 0 && t.dims[1] == widths[variant]);
    CHECK(xnnrt_output_info(net, 0, &t) == XNNRT_OK && strcmp(t.name, "y") == 0 && t.dims[0] == widths[variant]);
    CHECK(xnnrt_run(net, inputs, outputs) == XNNRT_OK);
    for (int i = 0; i < 6; i++) {
        CHECK(y[i] == (i < widths[variant] ? x[i] + (float)variant + state : 0.0f));
    }
    CHECK(xnnrt_run_ops(net, inputs, outputs, 0, 3) == XNNRT_BAD_ARGUMENT); /* not into the next one's */
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    xnnrt_net *net;
    CHECK(xnnrt_open_file(&net, graph, argv[1], NULL) == XNNRT_OK);
    CHECK(xnnrt_variant_count(net) == 3 && xnnrt_variant_count(NULL) == 0);
    check_variant(net, 0, 0.0f);
    for (int variant = 2; variant >= 0; variant--) {
        CHECK(xnnrt_use_variant(net, variant) == XNNRT_OK);
        check_variant(net, variant, (float)(3 - variant)); /* the state goes on */
    }
    const int64_t six[] = {1, 6}, five[] = {1, 5}, *shapes[] = {six};
    CHECK(xnnrt_set_shapes(net, shapes) == XNNRT_OK);
    check_variant(net, 1, 4.0f);
    shapes[0] = five;
    CHECK(xnnrt_set_shapes(net, shapes) == XNNRT_NO_VARIANT);
    check_variant(net, 1, 5.0f);
    shapes[0] = NULL; /* any: it stays */
    CHECK(xnnrt_set_shapes(net, shapes) == XNNRT_OK);
    check_variant(net, 1, 6.0f);
    CHECK(xnnrt_use_variant(net, 3) == XNNRT_NO_VARIANT && xnnrt_use_variant(net, -1) == XNNRT_NO_VARIANT);
    CHECK(xnnrt_use_variant(NULL, 0) == XNNRT_BAD_ARGUMENT && xnnrt_set_shapes(net, NULL) == XNNRT_BAD_ARGUMENT);
    xnnrt_close(net);
    return 0;
}
