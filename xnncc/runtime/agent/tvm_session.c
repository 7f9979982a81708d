/* tvm_session.c: see tvm_session.h. */
#include "tvm_session.h"

#include "text.h"
#include "tvm_functions.h"
#include "tvm_kernel.h"

static const char version[] = "0.8.0";

void xnn_tvm_refuse(xnn_tvm_session *session, const char *what, const char *why) {
    xnn_tvm_exception(&session->out, what, why);
}

static void answer_none(xnn_tvm_session *session) { xnn_tvm_answer(&session->out, XNN_TVM_NONE, 0); }

/* Look at the argument's type; 0 after refusing it. */
static int wants(xnn_tvm_session *session, int place, int32_t type) {
    if (place < session->args.count && session->args.is[place].value.type == type) return 1;
    xnn_tvm_refuse(session, "TypeError: ", "an argument of a system call has another type");
    return 0;
}

static int place(xnn_tvm_session *session, xnn_tvm_arg *arg) {
    if (xnn_tvm_place(&session->handles, arg)) return 1;
    xnn_tvm_refuse(session, "ValueError: ", "a tensor has no memory here, or does not lie within it");
    return 0;
}

/* Memory of a tensor, after its byte offset, for `bytes` bytes; NULL after refusing it. */
static uint8_t *memory_of(xnn_tvm_session *session, xnn_tvm_arg *arg, uint64_t bytes) {
    xnn_tvm_thing *thing = xnn_tvm_find(&session->handles, arg->handle);
    uint64_t offset = arg->tensor.byte_offset;
    if (thing == NULL || thing->kind != XNN_TVM_MEMORY || offset > thing->bytes || bytes > thing->bytes - offset) {
        xnn_tvm_refuse(session, "ValueError: ", "a copy goes beyond the memory of its tensor");
        return NULL;
    }
    return (uint8_t *)thing->pointer + offset;
}

static void greet(xnn_tvm_session *session, xnn_cursor *body) {
    uint64_t length = xnn_take64(body);
    const uint8_t *found = length <= body->left ? xnn_take(body, (size_t)length) : NULL;
    if (found == NULL || length != sizeof version - 1 || memcmp(found, version, sizeof version - 1) != 0) {
        xnn_tvm_refuse(session, "RPCError: ", "this agent speaks version 0.8.0 of the protocol (TVM 0.27)");
        session->is_over = 1;
        return;
    }
    xnn_tvm_read_args(&session->args, body);
    if (session->args.count > 0 && session->args.is[0].value.type != XNN_TVM_INT && session->args.is[0].value.type) {
        xnn_tvm_refuse(session, "RPCError: ", "this agent has no other session to construct");
        return;
    }
    answer_none(session);
}

static void call(xnn_tvm_session *session, xnn_cursor *body) {
    xnn_tvm_thing *thing = xnn_tvm_find(&session->handles, xnn_take64(body));
    xnn_tvm_args *args = &session->args;
    const char *wrong;
    int i;
    xnn_tvm_read_args(args, body);
    if (body->is_bad) return;
    if (thing == NULL || thing->kind < XNN_TVM_KERNEL) {
        xnn_tvm_refuse(session, "ValueError: ", "this is no function of this session");
        return;
    }
    if (thing->kind == XNN_TVM_BUILTIN) {
        xnn_tvm_call_function(session, thing->builtin);
        return;
    }
    for (i = 0; i < args->count; i++) {
        if (args->is[i].value.type == XNN_TVM_TENSOR && !place(session, &args->is[i])) return;
    }
    if (thing->kind == XNN_TVM_KERNEL) {
        wrong = xnn_tvm_call(thing->pointer, args->is, args->count);
        xnn_tvm_result(&session->out, XNN_TVM_NONE, 0);
    } else {
        static double seconds[XNN_TVM_MOST_REPEATS];
        wrong = xnn_tvm_time(thing->pointer, &thing->timing, args->is, args->count, seconds);
        xnn_tvm_result_bytes(&session->out, seconds, sizeof seconds[0] * (size_t)thing->timing.repeat);
    }
    if (wrong != NULL) xnn_tvm_refuse(session, wrong, "");
}

static void copy_to(xnn_tvm_session *session, xnn_cursor *body) {
    xnn_tvm_arg *to = &session->args.is[0];
    uint64_t bytes;
    uint8_t *memory;
    xnn_tvm_read_tensor(to, body);
    bytes = xnn_take64(body);
    if (bytes != body->left) body->is_bad = 1;
    if (body->is_bad) return;
    memory = memory_of(session, to, bytes);
    if (memory == NULL) return;
    if (bytes > 0) memcpy(memory, body->next, (size_t)bytes);
    answer_none(session);
}

static void copy_from(xnn_tvm_session *session, xnn_cursor *body) {
    xnn_tvm_arg *from = &session->args.is[0];
    uint64_t bytes;
    uint8_t *memory;
    xnn_tvm_read_tensor(from, body);
    bytes = xnn_take64(body);
    if (bytes > XNN_TVM_MOST_PACKET) body->is_bad = 1;
    if (body->is_bad) return;
    memory = memory_of(session, from, bytes);
    if (memory == NULL) return;
    xnn_tvm_begin(&session->out, XNN_TVM_COPY_ACK);
    xnn_tvm_add(&session->out, memory, (size_t)bytes);
}

static void copy_among(xnn_tvm_session *session) {
    xnn_tvm_arg *from = &session->args.is[0], *to = &session->args.is[1];
    uint64_t bytes, room;
    if (!wants(session, 0, XNN_TVM_TENSOR) || !wants(session, 1, XNN_TVM_TENSOR)) return;
    if (!place(session, from) || !place(session, to)) return;
    if (!xnn_tvm_tensor_bytes(&from->tensor, &bytes) || !xnn_tvm_tensor_bytes(&to->tensor, &room) || bytes != room) {
        xnn_tvm_refuse(session, "ValueError: ", "the two tensors of a copy have other sizes");
        return;
    }
    memmove((uint8_t *)to->tensor.data + to->tensor.byte_offset,
            (const uint8_t *)from->tensor.data + from->tensor.byte_offset, (size_t)bytes);
    answer_none(session);
}

static void allocate(xnn_tvm_session *session, uint64_t bytes, uint64_t alignment, int32_t device) {
    xnn_tvm_thing *thing;
    uint64_t handle;
    void *memory;
    if (device != XNN_TVM_CPU) {
        xnn_tvm_refuse(session, "ValueError: ", "this agent has memory of the CPU alone");
        return;
    }
    if (alignment < 64 || alignment > 65536 || (alignment & (alignment - 1)) != 0) alignment = 64;
    if (bytes > (uint64_t)XNN_TVM_MOST_PACKET * 8 ||
        posix_memalign(&memory, (size_t)alignment, bytes ? (size_t)bytes : 1) != 0) {
        xnn_tvm_refuse(session, "MemoryError: ", "there is not so much memory");
        return;
    }
    handle = xnn_tvm_new(&session->handles, XNN_TVM_MEMORY, &thing);
    if (handle == 0) {
        free(memory);
        xnn_tvm_refuse(session, "MemoryError: ", "a session holds at most 4096 things");
        return;
    }
    thing->pointer = memory;
    thing->bytes = bytes;
    xnn_tvm_answer(&session->out, XNN_TVM_POINTER, handle);
}

static void get_function(xnn_tvm_session *session) {
    xnn_tvm_thing *thing;
    uint64_t handle;
    int number = session->args.count > 0 ? xnn_tvm_function(&session->args.is[0]) : 0;
    if (number == 0) {
        answer_none(session);
        return;
    }
    handle = xnn_tvm_new(&session->handles, XNN_TVM_BUILTIN, &thing);
    if (handle == 0) {
        xnn_tvm_refuse(session, "MemoryError: ", "a session holds at most 4096 things");
        return;
    }
    thing->builtin = number;
    xnn_tvm_answer(&session->out, XNN_TVM_POINTER, handle);
}

static void drop(xnn_tvm_session *session, int place_of_handle, int of_memory) {
    const xnn_tvm_arg *arg = &session->args.is[place_of_handle];
    xnn_tvm_thing *thing = place_of_handle < session->args.count ? xnn_tvm_find(&session->handles, arg->handle) : NULL;
    if (thing == NULL || (thing->kind == XNN_TVM_MEMORY) != of_memory) {
        xnn_tvm_refuse(session, "ValueError: ", "what is freed is not there, or was freed before");
        return;
    }
    xnn_tvm_drop(&session->handles, arg->handle);
    answer_none(session);
}

static int32_t device_type(const xnn_tvm_arg *arg) { return (int32_t)(uint32_t)arg->value.is.bits; }

static void call_system(xnn_tvm_session *session, int32_t code) {
    xnn_tvm_arg *args = session->args.is;
    uint64_t bytes;
    switch (code) {
        case XNN_TVM_GET_FUNCTION:
            get_function(session);
            return;
        case XNN_TVM_FREE_HANDLE:
            drop(session, 0, 0);
            return;
        case XNN_TVM_FREE:
            drop(session, 1, 1);
            return;
        case XNN_TVM_ALLOCATE:
            if (!wants(session, 0, XNN_TVM_DEVICE) || !wants(session, 1, XNN_TVM_INT)) return;
            if (!wants(session, 2, XNN_TVM_INT)) return;
            allocate(session, args[1].value.is.bits, args[2].value.is.bits, device_type(&args[0]));
            return;
        case XNN_TVM_ALLOCATE_SCOPED:
            if (!wants(session, 0, XNN_TVM_TENSOR)) return;
            if (!xnn_tvm_tensor_bytes(&args[0].tensor, &bytes)) bytes = UINT64_MAX;
            allocate(session, bytes, 64, args[0].tensor.device.type);
            return;
        case XNN_TVM_GET_ATTRIBUTE: /* 0: is there such a device? Of a CPU TVM knows nothing else. */
            if (!wants(session, 0, XNN_TVM_DEVICE) || !wants(session, 1, XNN_TVM_INT)) return;
            if (args[1].value.is.bits == 0) {
                xnn_tvm_answer(&session->out, XNN_TVM_INT, device_type(&args[0]) == XNN_TVM_CPU);
                return;
            }
            answer_none(session);
            return;
        case XNN_TVM_COPY_AMONG:
            copy_among(session);
            return;
        case XNN_TVM_SET_DEVICE:
        case XNN_TVM_SYNC:
        case XNN_TVM_NEW_STREAM:
        case XNN_TVM_FREE_STREAM:
        case XNN_TVM_SET_STREAM:
        case XNN_TVM_GET_STREAM: /* a CPU has one stream, and no call returns before it is done */
            answer_none(session);
            return;
        default:
            xnn_tvm_refuse(session, "RPCError: ", "this agent does not know such a packet");
    }
}

void xnn_tvm_session_act(xnn_tvm_session *session, xnn_cursor *packet) {
    int32_t code = (int32_t)xnn_take32(packet);
    if (code == XNN_TVM_SHUTDOWN) {
        session->is_over = 1;
        return;
    }
    if (code == XNN_TVM_INIT) {
        greet(session, packet);
    } else if (code == XNN_TVM_CALL) {
        call(session, packet);
    } else if (code == XNN_TVM_COPY_TO) {
        copy_to(session, packet);
    } else if (code == XNN_TVM_COPY_FROM) {
        copy_from(session, packet);
    } else {
        xnn_tvm_read_args(&session->args, packet);
        if (!packet->is_bad) call_system(session, code);
    }
    if (packet->is_bad) {
        xnn_tvm_refuse(session, "RPCError: ", "a packet is cut, or has counts beyond what this agent takes");
        session->is_over = 1;
    }
    session->is_over |= !xnn_tvm_send(&session->out, &session->wire);
}

/* Make room for a packet; 0 when there is none. */
static int make_room(xnn_tvm_session *session, size_t bytes) {
    uint8_t *larger;
    if (bytes <= session->in_room) return 1;
    larger = realloc(session->in, bytes);
    if (larger == NULL) return 0;
    session->in = larger;
    session->in_room = bytes;
    return 1;
}

void xnn_tvm_session_serve(xnn_tvm_session *session) {
    uint8_t size[8];
    while (!session->is_over) {
        xnn_cursor packet = {0};
        uint64_t bytes;
        if (!xnn_wire_read(&session->wire, size, sizeof size, XNN_TVM_IDLE_MS)) return;
        bytes = (uint64_t)xnn_get32(size + 4) << 32 | xnn_get32(size);
        if (bytes == 0) continue; /* TVM's clients send such to stay in touch */
        if (bytes < 4 || bytes > XNN_TVM_MOST_PACKET || !make_room(session, (size_t)bytes)) {
            xnn_tvm_refuse(session, "RPCError: ", "a packet has at least 4 bytes and at most 256 MiB");
            xnn_tvm_send(&session->out, &session->wire);
            return;
        }
        if (!xnn_wire_read(&session->wire, session->in, (size_t)bytes, XNN_TVM_BODY_MS)) return;
        packet.next = session->in;
        packet.left = (size_t)bytes;
        xnn_tvm_session_act(session, &packet);
    }
}
