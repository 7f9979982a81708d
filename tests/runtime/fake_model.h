/* fake_model.h: a network written by hand, with kernels that call the runtime as TVM's do.
 *
 *   input x float32 [FAKE_N], weights w float32 [FAKE_N]    a = x * w        parallel
 *   outputs y float32 [FAKE_N], tasks int32 [1]             b = a + 1        parallel, through scratch
 *                                                           b = b + 1        parallel in parallel
 *                                                           y = b * 2        serial; tasks = pieces of the last launch
 */
#ifndef FAKE_MODEL_H
#define FAKE_MODEL_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define FAKE_N 1000
#define FAKE_OPS 4

/* x[0] of these values makes the second operator fail. */
#define FAKE_KERNEL_FAILS (-1000.0f)
#define FAKE_WANTS_SCRATCH (-2000.0f)

/* What the graph answers when it is asked. */
extern int64_t fake_build_id;

int32_t xnn_fake_graph(const void *weights, void *arena, const int64_t *io, int32_t first, int32_t last);

/* Expected y[i] of a weight and an input. */
static inline float fake_expected(float x, float w) { return (x * w + 2.0f) * 2.0f; }

#define CHECK(cond)                                                                \
    do {                                                                           \
        if (!(cond)) {                                                             \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #cond); \
            exit(1);                                                               \
        }                                                                          \
    } while (0)

#endif
