/* tvm_packets.h: the packets of TVM's RPC protocol 0.8.0 (TVM 0.27, src/runtime/rpc/rpc_reference.h), little-endian:
 *
 *     u64 bytes, i32 code, body
 *     body of most: i32 count, then for each value i32 type and what the type has
 *
 * Every count is bounded before anything is read by it; what does not fit leaves the cursor bad. */
#ifndef XNN_AGENT_TVM_PACKETS_H
#define XNN_AGENT_TVM_PACKETS_H

#include "posix.h"

#include "frames.h"
#include "wire.h"

enum {
    XNN_TVM_MOST_PACKET = 1 << 28, /* bytes: an upload, or a tensor that is copied */
    XNN_TVM_MOST_ARGS = 48,
    XNN_TVM_MOST_DIMS = 16,
    XNN_TVM_SEND_MS = 20000,
    XNN_TVM_BODY_MS = 60000
};

enum {
    XNN_TVM_SHUTDOWN = 1,
    XNN_TVM_INIT = 2,
    XNN_TVM_CALL = 3,
    XNN_TVM_RETURN = 4,
    XNN_TVM_EXCEPTION = 5,
    XNN_TVM_COPY_FROM = 6,
    XNN_TVM_COPY_TO = 7,
    XNN_TVM_COPY_ACK = 8,
    XNN_TVM_GET_FUNCTION = 9,
    XNN_TVM_FREE_HANDLE = 10,
    XNN_TVM_SET_DEVICE = 11,
    XNN_TVM_GET_ATTRIBUTE = 12,
    XNN_TVM_ALLOCATE = 13,
    XNN_TVM_FREE = 14,
    XNN_TVM_SYNC = 15,
    XNN_TVM_COPY_AMONG = 16,
    XNN_TVM_ALLOCATE_SCOPED = 17,
    XNN_TVM_NEW_STREAM = 18,
    XNN_TVM_FREE_STREAM = 19,
    XNN_TVM_SET_STREAM = 20,
    XNN_TVM_GET_STREAM = 21
};

/* Types of values (tvm_ffi/c_api.h). */
enum {
    XNN_TVM_NONE = 0,
    XNN_TVM_INT = 1,
    XNN_TVM_BOOL = 2,
    XNN_TVM_FLOAT = 3,
    XNN_TVM_POINTER = 4,
    XNN_TVM_DTYPE = 5,
    XNN_TVM_DEVICE = 6,
    XNN_TVM_TENSOR = 7,
    XNN_TVM_TEXT = 8,
    XNN_TVM_BYTES = 9,
    XNN_TVM_SMALL_TEXT = 11,
    XNN_TVM_SMALL_BYTES = 12,
    XNN_TVM_OBJECTS = 64, /* from here on */
    XNN_TVM_HEAP_TEXT = 65,
    XNN_TVM_HEAP_BYTES = 66,
    XNN_TVM_FUNCTION = 68,
    XNN_TVM_MODULE = 73,
    XNN_TVM_REMOTE = 115 /* an object of ours that the client holds */
};

enum { XNN_TVM_CPU = 1 };

typedef struct {
    uint8_t code, bits;
    uint16_t lanes;
} xnn_tvm_dtype;

typedef struct {
    int32_t type, id;
} xnn_tvm_device;

/* DLTensor, as kernels take it. As it is read `data` is null, and `handle` of the argument says whose memory it is. */
typedef struct {
    void *data;
    xnn_tvm_device device;
    int32_t ndim;
    xnn_tvm_dtype dtype;
    int64_t *shape;
    int64_t *strides; /* null: contiguous */
    uint64_t byte_offset;
} xnn_tvm_tensor;

/* TVMFFIAny, as kernels take it. */
typedef struct {
    int32_t type;
    uint32_t zero;
    union {
        int64_t number;
        double real;
        void *pointer;
        uint64_t bits;
    } is;
} xnn_tvm_any;

typedef struct {
    xnn_tvm_any value;
    uint64_t handle; /* of a pointer, function, module, object; of a tensor's memory */
    xnn_tvm_tensor tensor;
    int64_t shape[XNN_TVM_MOST_DIMS];
    const uint8_t *bytes; /* of texts and bytes: in the packet, without a zero behind them */
    size_t length;
} xnn_tvm_arg;

typedef struct {
    int count;
    xnn_tvm_arg is[XNN_TVM_MOST_ARGS];
} xnn_tvm_args;

/* Read a list of values. */
void xnn_tvm_read_args(xnn_tvm_args *args, xnn_cursor *body);

/* Read a tensor without its data. */
void xnn_tvm_read_tensor(xnn_tvm_arg *arg, xnn_cursor *body);

/* Bytes of a tensor's data; 0 for one that is larger than any memory. */
int xnn_tvm_tensor_bytes(const xnn_tvm_tensor *tensor, uint64_t *bytes);

/* 1 when the argument is that text, or bytes. */
int xnn_tvm_is_text(const xnn_tvm_arg *arg);
int xnn_tvm_has_zero(const uint8_t *bytes, size_t length); /* as no name has */
int xnn_tvm_same_text(const xnn_tvm_arg *arg, const char *text);

/* A packet that is put together, and then sent in one piece: in two, each reply would cost 40 ms. */
typedef struct {
    uint8_t *start; /* 8 bytes for the length, then the packet */
    size_t room, length;
    int has_failed; /* no memory */
} xnn_tvm_packet;

void xnn_tvm_begin(xnn_tvm_packet *packet, int32_t code);
void xnn_tvm_add(xnn_tvm_packet *packet, const void *data, size_t bytes);
void xnn_tvm_add32(xnn_tvm_packet *packet, uint32_t number);
void xnn_tvm_add64(xnn_tvm_packet *packet, uint64_t number);
/* 0 when the other side is gone, or there was no memory. */
int xnn_tvm_send(xnn_tvm_packet *packet, xnn_wire *wire);

/* Whole packets: an exception; what a syscall answers (one value); what a call answers (its type, then the value). */
void xnn_tvm_exception(xnn_tvm_packet *packet, const char *what, const char *why);
void xnn_tvm_answer(xnn_tvm_packet *packet, int32_t type, uint64_t bits);
void xnn_tvm_result(xnn_tvm_packet *packet, int32_t type, uint64_t bits);
void xnn_tvm_result_bytes(xnn_tvm_packet *packet, const void *data, size_t bytes);

#endif
