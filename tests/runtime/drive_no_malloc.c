/* drive_no_malloc.c PACKAGE: nothing is allocated after open; and open survives every single allocation failing.
 *
 * Defines malloc and its family over glibc's own, so that allocations inside the C library are seen too. Linked with
 * --wrap=mmap. */
#include <stddef.h>
#include <sys/types.h>

#include "fake_model.h"
#include "xnnrt.h"

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__real_mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset);
void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset);

static long allocations, fail_at = -1;
static int forbidden;

/* Workers allocate nothing either, but may be starting while the caller is past open: count atomically. */
static int refuse(void) {
    if (__atomic_load_n(&forbidden, __ATOMIC_RELAXED)) {
        abort();
    }
    return __atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED) == fail_at;
}

void *malloc(size_t bytes) { return refuse() ? NULL : __libc_malloc(bytes); }

void *calloc(size_t count, size_t bytes) { return refuse() ? NULL : __libc_calloc(count, bytes); }

void *realloc(void *memory, size_t bytes) { return refuse() ? NULL : __libc_realloc(memory, bytes); }

void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
    return refuse() ? (void *)-1 : __real_mmap(address, bytes, protection, flags, file, offset);
}

static void check_runs(xnnrt_net *net) {
    static float x[FAKE_N], y[FAKE_N];
    int32_t tasks;
    const void *inputs[] = {x};
    void *outputs[] = {y, &tasks};
    xnnrt_tensor tensor;
    __atomic_store_n(&forbidden, 1, __ATOMIC_RELAXED);
    for (int run = 0; run < 200; run++) {
        x[0] = run % 20 == 3 ? FAKE_KERNEL_FAILS : run % 20 == 7 ? FAKE_WANTS_SCRATCH : 1.0f;
        xnnrt_status status = xnnrt_run(net, inputs, outputs);
        CHECK((status == XNNRT_OK) == (x[0] == 1.0f));
        CHECK(xnnrt_input_info(net, 0, &tensor) == XNNRT_OK && xnnrt_find_output(net, "y") == 0);
        CHECK(xnnrt_run_ops(net, inputs, outputs, 3, 4) == XNNRT_OK && xnnrt_strerror(status) != NULL);
    }
    __atomic_store_n(&forbidden, 0, __ATOMIC_RELAXED);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    xnnrt_net *net;
    xnnrt_options options = {.threads = 4};
    CHECK(xnnrt_open_file(&net, xnn_fake_graph, argv[1], &options) == XNNRT_OK);
    check_runs(net);
    xnnrt_close(net);
    xnnrt_status status = XNNRT_NO_MEMORY;
    for (fail_at = 0; status != XNNRT_OK; fail_at++) { /* one after the other, until none is left to fail */
        allocations = 0;
        status = xnnrt_open_file(&net, xnn_fake_graph, argv[1], &options);
        CHECK(status == XNNRT_OK || status == XNNRT_NO_MEMORY || status == XNNRT_READ_FAILED ||
              status == XNNRT_THREAD_REFUSED);
        CHECK((status == XNNRT_OK) == (net != NULL));
    }
    CHECK(fail_at > 5); /* file, net, table of tensors, arena, threads */
    xnnrt_close(net);
    puts("ok");
    return 0;
}
