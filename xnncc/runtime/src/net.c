/* net.c: from a checked package to a network that can run, and back to nothing. */
#include "net.h"

#include <string.h>

#include "decode.h"
#include "memory.h"
#include "require.h"
#include "workspace.h"

/* Bytes of the arena for `threads` threads; 0 when they do not fit a size_t. */
static size_t arena_bytes(const xnnrt_package *package, int threads) {
    size_t scratch = package->thread_scratch_bytes;
    if (scratch > (SIZE_MAX / 2 - package->arena_bytes) / (size_t)threads) {
        return 0;
    }
    return package->arena_bytes + scratch * (size_t)threads;
}

xnnrt_status xnnrt_arena_size(const void *package, size_t bytes, int threads, size_t *arena_size) {
    XNNRT_REQUIRE(package != NULL && arena_size != NULL, XNNRT_BAD_ARGUMENT);
    XNNRT_REQUIRE(threads >= 0 && threads <= XNNRT_MAX_THREADS, XNNRT_BAD_ARGUMENT);
    xnnrt_package checked;
    xnnrt_status status = xnnrt_check_package(&checked, package, bytes, XNNRT_CHECK_ALL_BUT_WEIGHTS);
    XNNRT_REQUIRE(status == XNNRT_OK, status);
    size_t size = arena_bytes(&checked, threads == 0 ? xnnrt_cores(0) : threads);
    XNNRT_REQUIRE(size != 0, XNNRT_TOO_LARGE);
    *arena_size = size;
    return XNNRT_OK;
}

/* Does the library hold the kernels that this package was planned for? */
static int is_same_build(xnnrt_graph graph, int64_t build_id) {
    int64_t answer[2 * XNNRT_ALIGNMENT / sizeof(int64_t)] = {0};
    size_t skip = ((0 - (uintptr_t)answer) & (XNNRT_ALIGNMENT - 1)) / sizeof answer[0];
    return graph(NULL, answer + skip, NULL, -1, 0) == 0 && answer[skip] == build_id;
}

/* Decide the number of threads, find the arena, hand out its parts. */
static xnnrt_status prepare_arena(xnnrt_net *net, const xnnrt_options *options) {
    int cores = xnnrt_cores(options->core_mask);
    int threads = options->threads == 0 || options->threads > cores ? cores : options->threads;
    const xnnrt_package *package = &net->package;
    if (options->arena != NULL) {
        while (options->threads == 0 && threads > 1 && arena_bytes(package, threads) > options->arena_bytes) {
            threads--;
        }
    }
    size_t bytes = arena_bytes(package, threads);
    XNNRT_REQUIRE(bytes != 0, XNNRT_TOO_LARGE);
    if (options->arena != NULL) {
        XNNRT_REQUIRE(bytes <= options->arena_bytes, XNNRT_ARENA_TOO_SMALL);
        XNNRT_REQUIRE(xnnrt_is_aligned(options->arena, XNNRT_ALIGNMENT), XNNRT_MISALIGNED);
        net->arena = options->arena;
    } else {
        net->own_arena = xnnrt_allocate(bytes);
        XNNRT_REQUIRE(net->own_arena != NULL, XNNRT_NO_MEMORY);
        net->arena = net->own_arena;
    }
    net->pool.core_mask = options->core_mask;
    net->pool.thread = xnnrt_allocate(sizeof(xnnrt_thread) * (size_t)threads);
    XNNRT_REQUIRE(net->pool.thread != NULL, XNNRT_NO_MEMORY);
    memset(net->pool.thread, 0, sizeof(xnnrt_thread) * (size_t)threads);
    for (int i = 0; i < threads; i++) {
        net->pool.thread[i].pool = &net->pool;
        xnnrt_workspace_assign(&net->pool.thread[i],
                               net->arena + package->arena_bytes + package->thread_scratch_bytes * (size_t)i,
                               package->thread_scratch_bytes);
    }
    net->pool.threads = threads;
    return XNNRT_OK;
}

/* Tensors that the graph takes: inputs and outputs of the caller, and both sides of every state. */
static size_t tensor_count(const xnnrt_package *package) {
    return (size_t)package->input_count + (size_t)package->output_count + 2 * (size_t)package->state_count;
}

/* Memory of the states, twice: a run reads one half and writes the other. */
static xnnrt_status prepare_state(xnnrt_net *net) {
    if (net->package.state_bytes == 0) {
        return XNNRT_OK;
    }
    net->state = xnnrt_allocate(2 * net->package.state_bytes);
    XNNRT_REQUIRE(net->state != NULL, XNNRT_NO_MEMORY);
    memset(net->state, 0, 2 * net->package.state_bytes);
    return XNNRT_OK;
}

xnnrt_status xnnrt_reset(xnnrt_net *net) {
    XNNRT_REQUIRE(net != NULL, XNNRT_BAD_ARGUMENT);
    XNNRT_REQUIRE(__atomic_exchange_n(&net->running, 1, __ATOMIC_ACQUIRE) == 0, XNNRT_BUSY);
    if (net->state != NULL) {
        memset(net->state, 0, 2 * net->package.state_bytes);
    }
    __atomic_store_n(&net->running, 0, __ATOMIC_RELEASE);
    return XNNRT_OK;
}

/* Decode coded weights, once, straight into the layout that the kernels read. */
static xnnrt_status decode_weights(xnnrt_net *net) {
    const xnnrt_package *package = &net->package;
    if (package->blob_bytes == 0) {
        return XNNRT_OK;
    }
    xnnrt_decoding decoding;
    xnnrt_status status = xnnrt_decoding_begin(&decoding, package->weights, package->weights_bytes, package->blob_bytes);
    if (status == XNNRT_OK) {
        net->own_weights = xnnrt_allocate(package->blob_bytes);
        status = net->own_weights == NULL ? XNNRT_NO_MEMORY
                                          : xnnrt_decoding_run(&decoding, net->own_weights, &net->pool);
        net->weights = net->own_weights;
    }
    xnnrt_decoding_end(&decoding);
    return status;
}

/* Let the graph turn the weights into what the kernels read: once, now, so that the package stays small. */
static xnnrt_status prepare_weights(xnnrt_net *net) {
    if (net->package.prepared_bytes == 0) {
        return XNNRT_OK;
    }
    net->prepared = xnnrt_allocate(net->package.prepared_bytes);
    XNNRT_REQUIRE(net->prepared != NULL, XNNRT_NO_MEMORY);
    net->io[tensor_count(&net->package)] = (int64_t)((uint64_t)(uintptr_t)net->prepared - (uint64_t)(uintptr_t)net->arena);
    int32_t result = net->graph(net->weights, net->prepared, NULL, -2, 0);
    return result == 0 ? XNNRT_OK : XNNRT_KERNEL_FAILED;
}

/* Both, on all threads of the net. */
static xnnrt_status make_weights(xnnrt_net *net) {
    xnnrt_thread *before = xnnrt_this_thread();
    XNNRT_REQUIRE(xnnrt_set_this_thread(&net->pool.thread[0]), XNNRT_NO_MEMORY);
    xnnrt_status status = decode_weights(net);
    status = status == XNNRT_OK ? prepare_weights(net) : status;
    xnnrt_set_this_thread(before);
    return status;
}

/* Everything that open does once the package is in memory. What it has got when it fails is in *net. */
static xnnrt_status prepare(xnnrt_net *net, const void *bytes, size_t size, const xnnrt_options *options) {
    static const xnnrt_options defaults = {0, NULL, 0, 0};
    options = options == NULL ? &defaults : options;
    XNNRT_REQUIRE(options->threads >= 0 && options->threads <= XNNRT_MAX_THREADS, XNNRT_BAD_ARGUMENT);
    xnnrt_status status = xnnrt_check_package(&net->package, bytes, size, XNNRT_CHECK_ALL);
    XNNRT_REQUIRE(status == XNNRT_OK, status);
    XNNRT_REQUIRE(is_same_build(net->graph, net->package.build_id), XNNRT_WRONG_LIBRARY);
    net->weights = net->package.weights;
    if (net->package.blob_bytes == 0 && !xnnrt_is_aligned(net->weights, XNNRT_ALIGNMENT)) {
        net->own_weights = xnnrt_allocate(net->package.weights_bytes);
        XNNRT_REQUIRE(net->own_weights != NULL, XNNRT_NO_MEMORY);
        net->weights = memcpy(net->own_weights, net->weights, net->package.weights_bytes);
    }
    net->io = xnnrt_allocate(sizeof(int64_t) * (tensor_count(&net->package) + 1));
    XNNRT_REQUIRE(net->io != NULL, XNNRT_NO_MEMORY);
    status = prepare_state(net);
    XNNRT_REQUIRE(status == XNNRT_OK, status);
    status = prepare_arena(net, options);
    XNNRT_REQUIRE(status == XNNRT_OK, status);
    net->has_key = xnnrt_key_retain();
    XNNRT_REQUIRE(net->has_key, XNNRT_THREAD_REFUSED);
    if (!xnnrt_pool_start(&net->pool)) {
        net->pool.threads = 0;
        return XNNRT_THREAD_REFUSED;
    }
    return make_weights(net);
}

static xnnrt_net *new_net(xnnrt_graph graph) {
    xnnrt_net *net = xnnrt_allocate(sizeof *net);
    if (net != NULL) {
        memset(net, 0, sizeof *net);
        net->graph = graph;
    }
    return net;
}

xnnrt_status xnnrt_open_memory(xnnrt_net **net, xnnrt_graph graph, const void *package, size_t bytes,
                               const xnnrt_options *options) {
    XNNRT_REQUIRE(net != NULL, XNNRT_BAD_ARGUMENT);
    *net = NULL;
    XNNRT_REQUIRE(graph != NULL && package != NULL, XNNRT_BAD_ARGUMENT);
    xnnrt_net *opened = new_net(graph);
    XNNRT_REQUIRE(opened != NULL, XNNRT_NO_MEMORY);
    xnnrt_status status = prepare(opened, package, bytes, options);
    if (status != XNNRT_OK) {
        xnnrt_close(opened);
        return status;
    }
    *net = opened;
    return XNNRT_OK;
}

#ifndef XNNRT_NO_FILE
xnnrt_status xnnrt_open_file(xnnrt_net **net, xnnrt_graph graph, const char *path, const xnnrt_options *options) {
    XNNRT_REQUIRE(net != NULL, XNNRT_BAD_ARGUMENT);
    *net = NULL;
    XNNRT_REQUIRE(graph != NULL && path != NULL, XNNRT_BAD_ARGUMENT);
    xnnrt_file file = {NULL, 0};
    xnnrt_status status = xnnrt_file_read(&file, path);
    XNNRT_REQUIRE(status == XNNRT_OK, status);
    status = xnnrt_open_memory(net, graph, file.bytes, file.size, options);
    if (status != XNNRT_OK) {
        xnnrt_file_forget(&file);
        return status;
    }
    (*net)->file = file;
    return XNNRT_OK;
}
#endif

void xnnrt_close(xnnrt_net *net) {
    if (net == NULL) {
        return;
    }
    if (net->has_key) {
        if (net->pool.threads > 0) {
            xnnrt_pool_stop(&net->pool);
        }
        xnnrt_key_release();
    }
#ifndef XNNRT_NO_FILE
    if (net->file.bytes != NULL) {
        xnnrt_file_forget(&net->file);
    }
#endif
    xnnrt_release(net->pool.thread);
    xnnrt_release(net->io);
    xnnrt_release(net->own_arena);
    xnnrt_release(net->own_weights);
    xnnrt_release(net->prepared);
    xnnrt_release(net->state);
    xnnrt_release(net);
}
