/* fake_model.c: see fake_model.h. The slots are weak, as in the objects that TVM emits: the runtime fills them. */
#include "fake_model.h"

#include <string.h>

typedef struct {
    void *sync_handle;
    int32_t num_task;
} env_t;
typedef int (*task_t)(int task, env_t *env, void *data);

__attribute__((weak)) int (*__TVMBackendParallelLaunch)(task_t task, void *data, int num_task);
__attribute__((weak)) void *(*__TVMBackendAllocWorkspace)(int, int, uint64_t bytes, int, int);
__attribute__((weak)) int (*__TVMBackendFreeWorkspace)(int, int, void *memory);

int64_t fake_build_id = 77;

typedef struct {
    const float *x, *w;
    float *a, *b, *y;
    int32_t *tasks;
} tensors;

/* The part of [0, FAKE_N) that a piece works on. */
static void part(int task, const env_t *env, int *first, int *last) {
    int chunk = (FAKE_N + env->num_task - 1) / env->num_task;
    *first = task * chunk < FAKE_N ? task * chunk : FAKE_N;
    *last = *first + chunk < FAKE_N ? *first + chunk : FAKE_N;
}

static int multiply(int task, env_t *env, void *data) {
    tensors *t = data;
    int first, last;
    part(task, env, &first, &last);
    for (int i = first; i < last; i++) {
        t->a[i] = t->x[i] * t->w[i];
    }
    return 0;
}

static int add_through_scratch(int task, env_t *env, void *data) {
    tensors *t = data;
    int first, last;
    part(task, env, &first, &last);
    if (t->x[0] == FAKE_KERNEL_FAILS && task == 0) {
        return -1;
    }
    float *one = __TVMBackendAllocWorkspace(1, 0, 4, 2, 32);
    float *sums = __TVMBackendAllocWorkspace(1, 0, FAKE_N * sizeof(float), 2, 32);
    if (one == NULL || sums == NULL || t->x[0] == FAKE_WANTS_SCRATCH) {
        void *more = __TVMBackendAllocWorkspace(1, 0, 1 << 20, 2, 32);
        return more == NULL ? -1 : 0; /* frees nothing, as a kernel that failed */
    }
    CHECK((uintptr_t)one % 64 == 0 && (uintptr_t)sums % 64 == 0);
    *one = 1.0f;
    for (int i = first; i < last; i++) {
        sums[i] = t->a[i] + *one;
    }
    memcpy(t->b + first, sums + first, (size_t)(last - first) * sizeof(float));
    CHECK(__TVMBackendFreeWorkspace(1, 0, sums) == 0);
    CHECK(__TVMBackendFreeWorkspace(1, 0, one) == 0);
    return 0;
}

typedef struct {
    float *values;
    int count;
} slice;

static int add_one(int task, env_t *env, void *data) {
    slice *s = data;
    for (int i = task; i < s->count; i += env->num_task) {
        s->values[i] += 1.0f;
    }
    return 0;
}

static int add_nested(int task, env_t *env, void *data) {
    tensors *t = data;
    int first, last;
    part(task, env, &first, &last);
    slice s = {t->b + first, last - first};
    if (task == 0) {
        *t->tasks = env->num_task;
    }
    return __TVMBackendParallelLaunch(add_one, &s, task % 2 == 0 ? 0 : 3);
}

static int32_t run_op(tensors *t, int32_t op) {
    switch (op) {
        case 0:
            return __TVMBackendParallelLaunch(multiply, t, 0);
        case 1:
            return __TVMBackendParallelLaunch(add_through_scratch, t, 0);
        case 2:
            return __TVMBackendParallelLaunch(add_nested, t, 0);
        default:
            for (int i = 0; i < FAKE_N; i++) {
                t->y[i] = t->b[i] * 2.0f;
            }
            return 0;
    }
}

int32_t xnn_fake_graph(const void *weights, void *arena, const int64_t *io, int32_t first, int32_t last) {
    if (first == -1) {
        *(int64_t *)arena = fake_build_id;
        return 0;
    }
    if (first == -2) { /* open, when the package asks for prepared memory */
        *(int64_t *)arena = fake_build_id;
        return 0;
    }
    CHECK((uintptr_t)weights % 64 == 0 && (uintptr_t)arena % 64 == 0);
    intptr_t base = (intptr_t)arena;
    tensors t = {
        .x = (const float *)(base + (intptr_t)io[0]),
        .w = weights,
        .a = arena,
        .b = (float *)arena + FAKE_N,
        .y = (float *)(base + (intptr_t)io[1]),
        .tasks = (int32_t *)(base + (intptr_t)io[2]),
    };
    for (int32_t op = first; op < last; op++) {
        if (run_op(&t, op) != 0) {
            return -1;
        }
    }
    return 0;
}
