/* drive_threads.c PACKAGE RUNS: two nets of four threads each, run from two threads at once; then one net from two. */
#include <pthread.h>

#include "fake_model.h"
#include "xnnrt.h"

static const char *path;
static int runs;

static void *run_own_net(void *scale) {
    static const int counts[] = {4, 1, 3};
    for (int round = 0; round < 3; round++) {
        xnnrt_net *net;
        xnnrt_options options = {.threads = counts[round]};
        CHECK(xnnrt_open_file(&net, xnn_fake_graph, path, &options) == XNNRT_OK);
        CHECK(xnnrt_threads(net) == counts[round]);
        float *x = malloc(FAKE_N * sizeof *x), *y = malloc(FAKE_N * sizeof *y);
        for (int run = 0; run < runs; run++) {
            int32_t tasks = 0;
            const void *inputs[] = {x};
            void *outputs[] = {y, &tasks};
            for (int i = 0; i < FAKE_N; i++) {
                x[i] = *(float *)scale * (float)(i + run);
            }
            if (run % 16 == 15) {
                x[0] = FAKE_KERNEL_FAILS;
                CHECK(xnnrt_run(net, inputs, outputs) == XNNRT_KERNEL_FAILED);
                continue;
            }
            CHECK(xnnrt_run(net, inputs, outputs) == XNNRT_OK);
            CHECK(tasks == (counts[round] == 1 ? 1 : 4 * counts[round]));
            for (int i = 0; i < FAKE_N; i++) { /* w[i] = i % 7 */
                CHECK(y[i] == fake_expected(x[i], (float)(i % 7)));
            }
        }
        free(x);
        free(y);
        xnnrt_close(net);
    }
    return NULL;
}

static xnnrt_net *shared;
static int served, refused;

static void *run_shared_net(void *unused) {
    float *x = calloc(FAKE_N, sizeof *x), *y = malloc(FAKE_N * sizeof *y);
    int32_t tasks;
    const void *inputs[] = {x};
    void *outputs[] = {y, &tasks};
    for (int run = 0; run < runs; run++) {
        xnnrt_status status = xnnrt_run(shared, inputs, outputs);
        CHECK(status == XNNRT_OK || status == XNNRT_BUSY);
        __atomic_add_fetch(status == XNNRT_OK ? &served : &refused, 1, __ATOMIC_RELAXED);
    }
    free(x);
    free(y);
    return unused;
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    path = argv[1];
    runs = atoi(argv[2]);
    pthread_t threads[2];
    float scales[] = {0.25f, 4.0f};
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_create(&threads[i], NULL, run_own_net, &scales[i]) == 0);
    }
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    xnnrt_options options = {.threads = 4};
    CHECK(xnnrt_open_file(&shared, xnn_fake_graph, path, &options) == XNNRT_OK);
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_create(&threads[i], NULL, run_shared_net, NULL) == 0);
    }
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK(served > 0 && served + refused == 2 * runs);
    xnnrt_close(shared);
    puts("ok");
    return 0;
}
