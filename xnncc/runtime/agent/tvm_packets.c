/* tvm_packets.c: see tvm_packets.h. */
#include "tvm_packets.h"

static const uint64_t most_bytes = (uint64_t)1 << 40;

void xnn_tvm_read_tensor(xnn_tvm_arg *arg, xnn_cursor *body) {
    xnn_tvm_tensor *tensor = &arg->tensor;
    uint32_t dtype;
    int i;
    memset(tensor, 0, sizeof *tensor);
    arg->handle = xnn_take64(body);
    tensor->device.type = (int32_t)xnn_take32(body);
    tensor->device.id = (int32_t)xnn_take32(body);
    tensor->ndim = (int32_t)xnn_take32(body);
    dtype = xnn_take32(body);
    tensor->dtype.code = (uint8_t)dtype;
    tensor->dtype.bits = (uint8_t)(dtype >> 8);
    tensor->dtype.lanes = (uint16_t)(dtype >> 16);
    if (tensor->ndim < 0 || tensor->ndim > XNN_TVM_MOST_DIMS) {
        tensor->ndim = 0;
        body->is_bad = 1;
    }
    for (i = 0; i < tensor->ndim; i++) {
        arg->shape[i] = (int64_t)xnn_take64(body);
        if (arg->shape[i] < 0) body->is_bad = 1;
    }
    tensor->shape = arg->shape;
    tensor->byte_offset = xnn_take64(body);
}

static void read_bytes(xnn_tvm_arg *arg, xnn_cursor *body) {
    uint64_t length = xnn_take64(body);
    if (length > body->left) {
        body->is_bad = 1;
        return;
    }
    arg->length = (size_t)length;
    arg->bytes = xnn_take(body, arg->length);
}

/* Objects say once more what they are; how the sender holds them does not matter. */
static void read_object(xnn_tvm_arg *arg, xnn_cursor *body) {
    uint32_t type = xnn_take32(body);
    if (type == XNN_TVM_HEAP_TEXT || type == XNN_TVM_HEAP_BYTES) {
        read_bytes(arg, body);
    } else if (type == XNN_TVM_REMOTE) {
        arg->handle = xnn_take64(body);
    } else {
        body->is_bad = 1;
    }
}

static void read_value(xnn_tvm_arg *arg, xnn_cursor *body) {
    int32_t type = (int32_t)xnn_take32(body);
    memset(&arg->value, 0, sizeof arg->value);
    arg->handle = 0;
    arg->bytes = NULL;
    arg->length = 0;
    arg->value.type = type;
    switch (type) {
        case XNN_TVM_NONE:
            return;
        case XNN_TVM_INT:
        case XNN_TVM_BOOL:
        case XNN_TVM_FLOAT:
        case XNN_TVM_DTYPE:
        case XNN_TVM_DEVICE:
            arg->value.is.bits = xnn_take64(body);
            return;
        case XNN_TVM_POINTER:
        case XNN_TVM_FUNCTION:
        case XNN_TVM_MODULE:
            arg->handle = xnn_take64(body);
            return;
        case XNN_TVM_TENSOR:
            xnn_tvm_read_tensor(arg, body);
            return;
        case XNN_TVM_TEXT:
        case XNN_TVM_BYTES:
            read_bytes(arg, body);
            return;
        default:
            if (type != XNN_TVM_SMALL_TEXT && type != XNN_TVM_SMALL_BYTES && type < XNN_TVM_OBJECTS) {
                body->is_bad = 1;
            } else {
                read_object(arg, body);
            }
    }
}

void xnn_tvm_read_args(xnn_tvm_args *args, xnn_cursor *body) {
    uint32_t count = xnn_take32(body);
    args->count = 0;
    if (count > XNN_TVM_MOST_ARGS) body->is_bad = 1;
    while (!body->is_bad && (uint32_t)args->count < count) read_value(&args->is[args->count++], body);
    if (body->is_bad) args->count = 0;
}

int xnn_tvm_tensor_bytes(const xnn_tvm_tensor *tensor, uint64_t *bytes) {
    uint64_t total = ((uint64_t)tensor->dtype.bits * tensor->dtype.lanes + 7) / 8;
    int i;
    for (i = 0; i < tensor->ndim; i++) {
        uint64_t size = (uint64_t)tensor->shape[i];
        if (size > 0 && total > most_bytes / size) return 0;
        total *= size;
    }
    *bytes = total;
    return 1;
}

int xnn_tvm_is_text(const xnn_tvm_arg *arg) { return arg->bytes != NULL; }

int xnn_tvm_has_zero(const uint8_t *bytes, size_t length) {
    while (length > 0 && bytes[length - 1] != 0) length--;
    return length > 0;
}

int xnn_tvm_same_text(const xnn_tvm_arg *arg, const char *text) {
    return arg->bytes != NULL && arg->length == strlen(text) && memcmp(arg->bytes, text, arg->length) == 0;
}

void xnn_tvm_begin(xnn_tvm_packet *packet, int32_t code) {
    packet->length = 0;
    packet->has_failed = 0;
    xnn_tvm_add64(packet, 0);
    xnn_tvm_add32(packet, (uint32_t)code);
}

void xnn_tvm_add(xnn_tvm_packet *packet, const void *data, size_t bytes) {
    if (packet->has_failed) return;
    if (bytes > packet->room - packet->length) {
        size_t room = 2 * (packet->length + bytes) + 256;
        uint8_t *larger = realloc(packet->start, room);
        if (larger == NULL) {
            packet->has_failed = 1;
            return;
        }
        packet->start = larger;
        packet->room = room;
    }
    if (bytes > 0) memcpy(packet->start + packet->length, data, bytes);
    packet->length += bytes;
}

void xnn_tvm_add32(xnn_tvm_packet *packet, uint32_t number) {
    uint8_t bytes[4];
    xnn_put32(bytes, number);
    xnn_tvm_add(packet, bytes, sizeof bytes);
}

void xnn_tvm_add64(xnn_tvm_packet *packet, uint64_t number) {
    uint8_t bytes[8];
    xnn_put64(bytes, number);
    xnn_tvm_add(packet, bytes, sizeof bytes);
}

int xnn_tvm_send(xnn_tvm_packet *packet, xnn_wire *wire) {
    if (packet->has_failed) return 0;
    xnn_put64(packet->start, packet->length - 8);
    return xnn_wire_write(wire, packet->start, packet->length, XNN_TVM_SEND_MS);
}

void xnn_tvm_exception(xnn_tvm_packet *packet, const char *what, const char *why) {
    size_t first = strlen(what), second = strlen(why);
    xnn_tvm_begin(packet, XNN_TVM_EXCEPTION);
    xnn_tvm_add32(packet, 1);
    xnn_tvm_add32(packet, XNN_TVM_TEXT);
    xnn_tvm_add64(packet, first + second);
    xnn_tvm_add(packet, what, first);
    xnn_tvm_add(packet, why, second);
}

static void add_value(xnn_tvm_packet *packet, int32_t type, uint64_t bits) {
    xnn_tvm_add32(packet, (uint32_t)type);
    if (type != XNN_TVM_NONE) xnn_tvm_add64(packet, bits);
}

void xnn_tvm_answer(xnn_tvm_packet *packet, int32_t type, uint64_t bits) {
    xnn_tvm_begin(packet, XNN_TVM_RETURN);
    xnn_tvm_add32(packet, 1);
    add_value(packet, type, bits);
}

void xnn_tvm_result(xnn_tvm_packet *packet, int32_t type, uint64_t bits) {
    int is_object = type == XNN_TVM_FUNCTION || type == XNN_TVM_MODULE;
    xnn_tvm_begin(packet, XNN_TVM_RETURN);
    xnn_tvm_add32(packet, 2);
    add_value(packet, XNN_TVM_INT, (uint64_t)type);
    add_value(packet, is_object ? XNN_TVM_POINTER : type, bits);
}

void xnn_tvm_result_bytes(xnn_tvm_packet *packet, const void *data, size_t bytes) {
    xnn_tvm_begin(packet, XNN_TVM_RETURN);
    xnn_tvm_add32(packet, 2);
    add_value(packet, XNN_TVM_INT, XNN_TVM_HEAP_BYTES);
    add_value(packet, XNN_TVM_BYTES, bytes);
    xnn_tvm_add(packet, data, bytes);
}
