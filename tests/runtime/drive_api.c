/* drive_api.c PACKAGE: every function of xnnrt.h, its good and its bad ends. */
#include <string.h>

#include "fake_model.h"
#include "xnnrt.h"

static float x[FAKE_N], y[FAKE_N], w[FAKE_N];
static int32_t tasks[1];
static const void *inputs[] = {x};
static void *outputs[] = {y, tasks};
static unsigned char *package; /* 64-byte aligned */
static size_t package_bytes;

static void *aligned(size_t bytes) {
    void *memory = NULL;
    CHECK(posix_memalign(&memory, 64, bytes) == 0);
    return memory;
}

static void load(const char *path) {
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL && fseek(file, 0, SEEK_END) == 0);
    package_bytes = (size_t)ftell(file);
    rewind(file);
    package = aligned(package_bytes + 64);
    CHECK(fread(package, 1, package_bytes, file) == package_bytes);
    fclose(file);
    memcpy(w, package + package_bytes - sizeof w, sizeof w); /* the weights are the last section */
}

static void check_run(xnnrt_net *net, float scale) {
    for (int i = 0; i < FAKE_N; i++) {
        x[i] = scale * (float)i;
        y[i] = -1.0f;
    }
    CHECK(xnnrt_run(net, inputs, outputs) == XNNRT_OK);
    for (int i = 0; i < FAKE_N; i++) {
        CHECK(y[i] == fake_expected(x[i], w[i]));
    }
}

static void check_info(const xnnrt_net *net) {
    xnnrt_tensor t;
    CHECK(xnnrt_input_count(net) == 1 && xnnrt_output_count(net) == 2 && xnnrt_op_count(net) == FAKE_OPS);
    CHECK(xnnrt_input_info(net, 0, &t) == XNNRT_OK);
    CHECK(strcmp(t.name, "image/input:0") == 0 && t.dtype == XNNRT_FLOAT32 && t.rank == 2);
    CHECK(t.dims[0] == 1 && t.dims[1] == FAKE_N && t.dims[2] == 0 && t.bytes == sizeof x);
    CHECK(xnnrt_output_info(net, 1, &t) == XNNRT_OK);
    CHECK(strcmp(t.name, "n\xC3\xA4mlich") == 0 && t.dtype == XNNRT_INT32 && t.rank == 0 && t.bytes == 4);
    CHECK(xnnrt_find_input(net, "image/input:0") == 0 && xnnrt_find_input(net, "image") == -1);
    CHECK(xnnrt_find_output(net, "y") == 0 && xnnrt_find_output(net, "n\xC3\xA4mlich") == 1);
    CHECK(xnnrt_find_output(net, "image/input:0") == -1 && xnnrt_find_output(net, "") == -1);
    CHECK(xnnrt_find_input(net, NULL) == -1 && xnnrt_find_input(NULL, "y") == -1);
    CHECK(xnnrt_input_info(net, 1, &t) == XNNRT_BAD_ARGUMENT && xnnrt_input_info(net, -1, &t) == XNNRT_BAD_ARGUMENT);
    CHECK(xnnrt_output_info(net, 2, &t) == XNNRT_BAD_ARGUMENT && xnnrt_output_info(net, 0, NULL) == XNNRT_BAD_ARGUMENT);
    CHECK(xnnrt_input_info(NULL, 0, &t) == XNNRT_BAD_ARGUMENT);
    CHECK(xnnrt_input_count(NULL) == 0 && xnnrt_op_count(NULL) == 0 && xnnrt_threads(NULL) == 0);
    CHECK(xnnrt_arena(NULL) == NULL && xnnrt_arena(net) != NULL);
}

static void check_bad_runs(xnnrt_net *net) {
    const void *no_inputs[] = {NULL}, *odd_inputs[] = {(const char *)x + 1};
    void *no_outputs[] = {y, NULL}, *odd_outputs[] = {y, (char *)tasks + 2};
    CHECK(xnnrt_run(NULL, inputs, outputs) == XNNRT_BAD_ARGUMENT);
    CHECK(xnnrt_run(net, NULL, outputs) == XNNRT_BAD_ARGUMENT && xnnrt_run(net, inputs, NULL) == XNNRT_BAD_ARGUMENT);
    CHECK(xnnrt_run(net, no_inputs, outputs) == XNNRT_BAD_ARGUMENT);
    CHECK(xnnrt_run(net, inputs, no_outputs) == XNNRT_BAD_ARGUMENT);
    CHECK(xnnrt_run(net, odd_inputs, outputs) == XNNRT_MISALIGNED);
    CHECK(xnnrt_run(net, inputs, odd_outputs) == XNNRT_MISALIGNED);
    CHECK(xnnrt_run_ops(net, inputs, outputs, -1, 1) == XNNRT_BAD_ARGUMENT);
    CHECK(xnnrt_run_ops(net, inputs, outputs, 2, 1) == XNNRT_BAD_ARGUMENT);
    CHECK(xnnrt_run_ops(net, inputs, outputs, 0, FAKE_OPS + 1) == XNNRT_BAD_ARGUMENT);
    for (int again = 0; again < 3; again++) { /* a failure leaves nothing behind */
        x[0] = FAKE_KERNEL_FAILS;
        CHECK(xnnrt_run(net, inputs, outputs) == XNNRT_KERNEL_FAILED);
        x[0] = FAKE_WANTS_SCRATCH;
        CHECK(xnnrt_run(net, inputs, outputs) == XNNRT_SCRATCH_TOO_SMALL);
    }
    check_run(net, 0.5f);
}

static void check_steps(xnnrt_net *net) {
    check_run(net, 2.0f);
    x[3] = 11.0f;
    for (int32_t op = 0; op < FAKE_OPS; op++) {
        CHECK(xnnrt_run_ops(net, inputs, outputs, op, op) == XNNRT_OK); /* nothing */
        CHECK(xnnrt_run_ops(net, inputs, outputs, op, op + 1) == XNNRT_OK);
        if (op == 0) { /* a layer dump: tensor a is at the beginning of the arena */
            CHECK(((const float *)xnnrt_arena(net))[3] == 11.0f * w[3]);
        }
    }
    CHECK(y[3] == fake_expected(11.0f, w[3]));
}

static void check_net(const char *path, const xnnrt_options *options) {
    xnnrt_net *net;
    CHECK(xnnrt_open_memory(&net, xnn_fake_graph, package, package_bytes, options) == XNNRT_OK);
    check_info(net);
    check_run(net, 1.0f);
    check_steps(net);
    check_bad_runs(net);
    xnnrt_close(net);
#ifndef XNNRT_NO_FILE
    CHECK(xnnrt_open_file(&net, xnn_fake_graph, path, options) == XNNRT_OK);
    check_info(net);
    check_run(net, 3.0f);
    xnnrt_close(net);
#else
    (void)path;
#endif
}

static void check_bad_opens(const char *path) {
    xnnrt_net *net;
    xnnrt_options options = {0};
    CHECK(xnnrt_open_memory(NULL, xnn_fake_graph, package, package_bytes, NULL) == XNNRT_BAD_ARGUMENT);
    CHECK(xnnrt_open_memory(&net, NULL, package, package_bytes, NULL) == XNNRT_BAD_ARGUMENT && net == NULL);
    CHECK(xnnrt_open_memory(&net, xnn_fake_graph, NULL, package_bytes, NULL) == XNNRT_BAD_ARGUMENT);
    options.threads = -1;
    CHECK(xnnrt_open_memory(&net, xnn_fake_graph, package, package_bytes, &options) == XNNRT_BAD_ARGUMENT);
    options.threads = XNNRT_MAX_THREADS + 1;
    CHECK(xnnrt_open_memory(&net, xnn_fake_graph, package, package_bytes, &options) == XNNRT_BAD_ARGUMENT);
    CHECK(xnnrt_open_memory(&net, xnn_fake_graph, package, package_bytes - 1, NULL) == XNNRT_WRONG_LENGTH);
    CHECK(xnnrt_open_memory(&net, xnn_fake_graph, package + 1, package_bytes - 1, NULL) == XNNRT_NOT_A_PACKAGE);
    package[package_bytes - 1] ^= 1;
    CHECK(xnnrt_open_memory(&net, xnn_fake_graph, package, package_bytes, NULL) == XNNRT_CORRUPT && net == NULL);
    package[package_bytes - 1] ^= 1;
    fake_build_id ^= 1;
    CHECK(xnnrt_open_memory(&net, xnn_fake_graph, package, package_bytes, NULL) == XNNRT_WRONG_LIBRARY && net == NULL);
    fake_build_id ^= 1;
#ifndef XNNRT_NO_FILE
    CHECK(xnnrt_open_file(&net, xnn_fake_graph, "/no/such/package.xnn", NULL) == XNNRT_CANNOT_OPEN && net == NULL);
    CHECK(xnnrt_open_file(&net, xnn_fake_graph, "/dev/null", NULL) == XNNRT_WRONG_LENGTH && net == NULL);
    CHECK(xnnrt_open_file(&net, xnn_fake_graph, "/", NULL) != XNNRT_OK && net == NULL);
    CHECK(xnnrt_open_file(&net, xnn_fake_graph, NULL, NULL) == XNNRT_BAD_ARGUMENT);
    CHECK(xnnrt_open_file(NULL, xnn_fake_graph, path, NULL) == XNNRT_BAD_ARGUMENT);
#else
    (void)path;
#endif
    xnnrt_close(NULL);
}

/* A package at an odd address works: its weights are copied. */
static void check_odd_address(void) {
    xnnrt_net *net;
    memmove(package + 4, package, package_bytes);
    CHECK(xnnrt_open_memory(&net, xnn_fake_graph, package + 4, package_bytes, NULL) == XNNRT_OK);
    check_run(net, 1.5f);
    xnnrt_close(net);
    memmove(package, package + 4, package_bytes);
}

/* Memory of the caller: exactly as much as xnnrt_arena_size says; malloc'ed exactly, so that ASan watches its end. */
static void check_own_arena(int threads) {
    xnnrt_net *net;
    size_t bytes = 0;
    CHECK(xnnrt_arena_size(package, package_bytes, threads, &bytes) == XNNRT_OK);
    CHECK(bytes >= 2 * sizeof x + 4096 && bytes % 64 == 0);
    xnnrt_options options = {.threads = threads, .arena = aligned(bytes), .arena_bytes = bytes};
    CHECK(xnnrt_open_memory(&net, xnn_fake_graph, package, package_bytes, &options) == XNNRT_OK);
    CHECK(xnnrt_arena(net) == options.arena && xnnrt_threads(net) >= 1);
    check_run(net, 1.0f);
    xnnrt_close(net);
    options.arena = (char *)options.arena + 4;
    CHECK(xnnrt_open_memory(&net, xnn_fake_graph, package, package_bytes, &options) == XNNRT_MISALIGNED);
    options.arena = (char *)options.arena - 4;
    CHECK(xnnrt_arena_size(package, package_bytes, 1, &bytes) == XNNRT_OK);
    options.arena_bytes = bytes - 1;
    CHECK(xnnrt_open_memory(&net, xnn_fake_graph, package, package_bytes, &options) == XNNRT_ARENA_TOO_SMALL);
    options.arena_bytes = bytes; /* room for one thread: enough when the number is left open */
    options.threads = 0;
    CHECK(xnnrt_open_memory(&net, xnn_fake_graph, package, package_bytes, &options) == XNNRT_OK);
    CHECK(xnnrt_threads(net) == 1);
    check_run(net, 1.0f);
    xnnrt_close(net);
    free(options.arena);
    CHECK(xnnrt_arena_size(package, package_bytes, -1, &bytes) == XNNRT_BAD_ARGUMENT);
    CHECK(xnnrt_arena_size(package, package_bytes, 1, NULL) == XNNRT_BAD_ARGUMENT);
    CHECK(xnnrt_arena_size(package, 100, 1, &bytes) == XNNRT_WRONG_LENGTH);
}

static void check_words(void) {
    for (int status = 0; status <= XNNRT_NO_VARIANT; status++) {
        CHECK(strlen(xnnrt_strerror((xnnrt_status)status)) >= 2);
        for (int other = 0; other < status; other++) {
            CHECK(strcmp(xnnrt_strerror((xnnrt_status)status), xnnrt_strerror((xnnrt_status)other)) != 0);
        }
    }
    CHECK(strcmp(xnnrt_strerror(XNNRT_OK), "ok") == 0);
    CHECK(strstr(xnnrt_strerror(XNNRT_SCRATCH_TOO_SMALL), "scratch") != NULL);
    CHECK(strcmp(xnnrt_strerror((xnnrt_status)(XNNRT_NO_VARIANT + 1)), "unknown status") == 0);
    CHECK(strcmp(xnnrt_strerror((xnnrt_status)-1), "unknown status") == 0);
    CHECK(xnnrt_abi() == XNNRT_ABI);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    load(argv[1]);
    check_words();
    check_bad_opens(argv[1]);
    check_net(argv[1], NULL);
    for (int threads = 1; threads <= 4; threads++) {
        xnnrt_options options = {.threads = threads, .core_mask = threads == 2 ? 3 : 0};
        check_net(argv[1], &options);
        check_own_arena(threads);
    }
    check_odd_address();
    free(package);
    puts("ok");
    return 0;
}
