/* drive_late_workers.c PACKAGE: the system starts no worker for a long time, or refuses one.
 * Linked with --wrap=pthread_create. */
#include <pthread.h>

#include "fake_model.h"
#include "xnnrt.h"

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static struct {
    void *(*run)(void *);
    void *argument;
} late[8];
static int created, refuse_from = 100;

static void *wait_at_gate(void *slot) {
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    int i = (int)(intptr_t)slot;
    return late[i].run(late[i].argument);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
    if (created >= refuse_from) {
        return 11;
    }
    late[created].run = run;
    late[created].argument = argument;
    return __real_pthread_create(thread, attributes, wait_at_gate, (void *)(intptr_t)created++);
}

static void check_run(xnnrt_net *net) {
    static float x[FAKE_N], y[FAKE_N];
    int32_t tasks;
    const void *inputs[] = {x};
    void *outputs[] = {y, &tasks};
    for (int i = 0; i < FAKE_N; i++) {
        x[i] = (float)i;
    }
    CHECK(xnnrt_run(net, inputs, outputs) == XNNRT_OK);
    for (int i = 0; i < FAKE_N; i++) {
        CHECK(y[i] == fake_expected(x[i], (float)(i % 7)));
    }
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    xnnrt_net *net;
    xnnrt_options options = {.threads = 4};
    pthread_mutex_lock(&gate);
    CHECK(xnnrt_open_file(&net, xnn_fake_graph, argv[1], &options) == XNNRT_OK);
    CHECK(created == 3);
    for (int run = 0; run < 100; run++) { /* hangs, and fails by the test's time limit, if the caller waits for them */
        check_run(net);
    }
    pthread_mutex_unlock(&gate);
    for (int run = 0; run < 100; run++) {
        check_run(net);
    }
    xnnrt_close(net);
    refuse_from = created + 2; /* the third worker is refused: the two that run are joined */
    CHECK(xnnrt_open_file(&net, xnn_fake_graph, argv[1], &options) == XNNRT_THREAD_REFUSED && net == NULL);
    puts("ok");
    return 0;
}
