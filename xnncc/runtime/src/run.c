/* run.c: one inference, or a part of one. */
#include "memory.h"
#include "net.h"
#include "require.h"
#include "workspace.h"

/* Where the graph finds tensor `index` of the caller: relative to the arena. Unsigned arithmetic wraps, also for
 * pointers with a tag in their top byte (Android's memory tagging). */
static xnnrt_status place_tensor(xnnrt_net *net, int index, const void *tensor) {
    XNNRT_REQUIRE(tensor != NULL, XNNRT_BAD_ARGUMENT);
    XNNRT_REQUIRE(xnnrt_is_aligned(tensor, xnnrt_element_bytes(&net->package, index)), XNNRT_MISALIGNED);
    net->io[index] = (int64_t)((uint64_t)(uintptr_t)tensor - (uint64_t)(uintptr_t)net->arena);
    return XNNRT_OK;
}

/* The states: one half of their memory is read, the other is written. */
static void place_states(xnnrt_net *net) {
    int count = net->package.state_count, input = net->package.input_count;
    int output = input + count + net->package.output_count;
    size_t before = net->state_turn == 0 ? 0 : net->package.state_bytes, after = net->package.state_bytes - before;
    for (int i = 0; i < count; i++) {
        xnnrt_tensor tensor;
        xnnrt_read_tensor(&net->package, input + i, &tensor);
        uint64_t base = (uint64_t)(uintptr_t)net->state - (uint64_t)(uintptr_t)net->arena;
        net->io[input + i] = (int64_t)(base + before);
        net->io[output + i] = (int64_t)(base + after);
        before += xnnrt_align(tensor.bytes);
        after += xnnrt_align(tensor.bytes);
    }
}

static xnnrt_status place_tensors(xnnrt_net *net, const void *const *inputs, void *const *outputs) {
    int input_count = net->package.input_count, output_count = net->package.output_count;
    int first_output = input_count + net->package.state_count;
    XNNRT_REQUIRE((inputs != NULL || input_count == 0) && (outputs != NULL || output_count == 0), XNNRT_BAD_ARGUMENT);
    for (int i = 0; i < input_count; i++) {
        xnnrt_status status = place_tensor(net, i, inputs[i]);
        XNNRT_REQUIRE(status == XNNRT_OK, status);
    }
    for (int i = 0; i < output_count; i++) {
        xnnrt_status status = place_tensor(net, first_output + i, outputs[i]);
        XNNRT_REQUIRE(status == XNNRT_OK, status);
    }
    place_states(net);
    return XNNRT_OK;
}

static xnnrt_status run_alone(xnnrt_net *net, const void *const *inputs, void *const *outputs, int32_t first,
                              int32_t last) {
    xnnrt_status status = place_tensors(net, inputs, outputs);
    XNNRT_REQUIRE(status == XNNRT_OK, status);
    xnnrt_thread *before = xnnrt_this_thread();
    XNNRT_REQUIRE(xnnrt_set_this_thread(&net->pool.thread[0]), XNNRT_NO_MEMORY);
    xnnrt_affinity affinity;
    xnnrt_bind(net->pool.core_mask, &affinity);
    int32_t before_it = net->package.first_op; /* operators of other variants */
    int32_t result = net->graph(net->weights, net->arena, net->io, before_it + first, before_it + last);
    xnnrt_unbind(&affinity);
    xnnrt_set_this_thread(before);
    if (result == 0) {
        net->state_turn ^= first < last && last == net->package.op_count;
        return XNNRT_OK;
    }
    return xnnrt_workspace_recover(&net->pool) ? XNNRT_SCRATCH_TOO_SMALL : XNNRT_KERNEL_FAILED;
}

xnnrt_status xnnrt_run_ops(xnnrt_net *net, const void *const *inputs, void *const *outputs, int32_t first,
                           int32_t last) {
    XNNRT_REQUIRE(net != NULL, XNNRT_BAD_ARGUMENT);
    XNNRT_REQUIRE(first >= 0 && first <= last && last <= net->package.op_count, XNNRT_BAD_ARGUMENT);
    XNNRT_REQUIRE(__atomic_exchange_n(&net->running, 1, __ATOMIC_ACQUIRE) == 0, XNNRT_BUSY);
    xnnrt_status status = run_alone(net, inputs, outputs, first, last);
    __atomic_store_n(&net->running, 0, __ATOMIC_RELEASE);
    return status;
}

xnnrt_status xnnrt_run(xnnrt_net *net, const void *const *inputs, void *const *outputs) {
    return xnnrt_run_ops(net, inputs, outputs, 0, xnnrt_op_count(net));
}
