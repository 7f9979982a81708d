/* info.c: questions about an open network. */
#include "net.h"
#include "require.h"

int xnnrt_input_count(const xnnrt_net *net) { return net == NULL ? 0 : net->package.input_count; }

int xnnrt_output_count(const xnnrt_net *net) { return net == NULL ? 0 : net->package.output_count; }

int32_t xnnrt_op_count(const xnnrt_net *net) { return net == NULL ? 0 : net->package.op_count; }

int xnnrt_threads(const xnnrt_net *net) { return net == NULL ? 0 : net->pool.threads; }

const void *xnnrt_arena(const xnnrt_net *net) { return net == NULL ? NULL : net->arena; }

/* Describe tensor first + index, if index is below count. */
static xnnrt_status describe(const xnnrt_net *net, int first, int count, int index, xnnrt_tensor *tensor) {
    XNNRT_REQUIRE(tensor != NULL && index >= 0 && index < count, XNNRT_BAD_ARGUMENT);
    xnnrt_read_tensor(&net->package, first + index, tensor);
    return XNNRT_OK;
}

xnnrt_status xnnrt_input_info(const xnnrt_net *net, int index, xnnrt_tensor *tensor) {
    return describe(net, 0, xnnrt_input_count(net), index, tensor);
}

/* Index of the first output among all tensors: behind the inputs and the states. */
static int first_output(const xnnrt_net *net) { return net == NULL ? 0 : net->package.input_count + net->package.state_count; }

xnnrt_status xnnrt_output_info(const xnnrt_net *net, int index, xnnrt_tensor *tensor) {
    return describe(net, first_output(net), xnnrt_output_count(net), index, tensor);
}

static int find(const xnnrt_net *net, int first, int count, const char *name) {
    xnnrt_tensor tensor;
    for (int i = 0; name != NULL && i < count; i++) {
        xnnrt_read_tensor(&net->package, first + i, &tensor);
        const char *ours = tensor.name, *theirs = name;
        while (*ours != '\0' && *ours == *theirs) {
            ours++, theirs++;
        }
        if (*ours == *theirs) {
            return i;
        }
    }
    return -1;
}

int xnnrt_find_input(const xnnrt_net *net, const char *name) { return find(net, 0, xnnrt_input_count(net), name); }

int xnnrt_find_output(const xnnrt_net *net, const char *name) {
    return find(net, first_output(net), xnnrt_output_count(net), name);
}
