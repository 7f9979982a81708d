/* fuzz_tvm.c: feeds the agent's TVM session with packets that an honest client would not send.
 *
 *     fuzz_tvm SEED PACKETS FOLDER
 *
 * Session, packets, handles and functions are the agent's own files; the wire and the kernels are played here. A packet
 * is one of an honest client, with handles that the agent gave before, and one in 16 has numbers replaced by hurtful
 * ones, bytes changed, or is cut (that often ends the session, and the next begins). The played kernels read and write every byte of their tensors. Prints how many
 * answers of each code came. */
#include <assert.h>
#include <stdio.h>

#include "tvm_kernel.h"
#include "tvm_session.h"

enum { MOST_KNOWN = 16, MOST = 1 << 16, PER_SESSION = 120 };
enum { FUNCTIONS = 8, MEMORY = FUNCTIONS, LIBRARY, KERNEL, KINDS }; /* of handles; a function's is its place below */

static uint64_t state;
static uint8_t packet[MOST];
static size_t bytes, at;
static uint64_t known[KINDS][MOST_KNOWN];
static unsigned known_count[KINDS], left_in_session, expected; /* kind of the handle that the answer may hold */
static uint64_t sent, came[256], calls, packets;
static xnn_tvm_session session;

static uint32_t draw(uint32_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16) % below;
}

/* ---- the kernels ---- */
void *xnn_tvm_load(const char *path, const char **why) {
    *why = "the fuzzer does not like it";
    assert(path[0] == '.' && path[1] == '/' && path[2] != '.' && strchr(path + 2, '/') == NULL);
    return draw(4) ? &calls : NULL;
}

void *xnn_tvm_symbol(void *library, const uint8_t *name, size_t length) {
    assert(library == &calls);
    return length > 0 && name[0] != 'x' ? &calls : NULL;
}

const char *xnn_tvm_call(void *kernel, const xnn_tvm_arg *args, int count) {
    int i;
    assert(kernel == &calls);
    calls++;
    for (i = 0; i < count; i++) {
        uint64_t size, k;
        if (args[i].value.type != XNN_TVM_TENSOR) continue;
        assert(xnn_tvm_tensor_bytes(&args[i].tensor, &size));
        for (k = 0; k < size; k++) ((volatile uint8_t *)args[i].tensor.data)[args[i].tensor.byte_offset + k] ^= 1;
    }
    return draw(4) ? NULL : "the kernel's own complaint";
}

const char *xnn_tvm_time(void *kernel, const xnn_tvm_timing *timing, const xnn_tvm_arg *args, int count,
                         double *seconds) {
    int64_t i;
    assert(timing->repeat >= 1 && timing->number >= 1 && timing->cooldown_ms >= 0 && timing->cooldown_ms <= 60000);
    for (i = 0; i < timing->repeat; i++) seconds[i] = 1e-3;
    return xnn_tvm_call(kernel, args, count);
}

/* ---- an honest client ---- */
static void add(const void *data, size_t count) {
    if (bytes + count > MOST) return;
    memcpy(packet + bytes, data, count);
    bytes += count;
}

static void add32(uint32_t n) { add(&n, 4); }
static void add64(uint64_t n) { add(&n, 8); }

static void add_text(uint32_t type, const char *text) {
    add32(type);
    if (type >= 64 || type == XNN_TVM_SMALL_TEXT) add32(XNN_TVM_HEAP_TEXT);
    add64(strlen(text));
    add(text, strlen(text));
}

static void add_number(uint64_t n) {
    add32(XNN_TVM_INT);
    add64(n);
}

static uint64_t handle(unsigned kind) {
    if (draw(30) == 0) kind = draw(KINDS);
    return known_count[kind] && draw(60) ? known[kind][draw(known_count[kind])] : draw(1 << 18);
}

static void add_tensor(uint64_t size) {
    add64(handle(MEMORY));
    add32(XNN_TVM_CPU);
    add32(0);
    add32(2);
    add32((uint32_t)(draw(3) | 8u << draw(4) << 8 | 1u << 16));
    add64(draw(4) ? 4 : draw(9));
    add64(size);
    add64(draw(4) ? 0 : draw(40));
}

static const char *const functions[] = {
    "tvm.rpc.server.upload", "tvm.rpc.server.download", "tvm.rpc.server.remove", "tvm.rpc.server.load_module",
    "tvm.rpc.server.ModuleGetFunction", "runtime.RPCTimeEvaluator", "tvm.contrib.random.random_fill_for_measure",
    "tvm.rpc.server.unknown",
};
static const char *const files[] = {"a.so", "b/c.so", "../../d.so", "..", "", "/", "."};

static void add_file(void) {
    add_text(draw(2) ? XNN_TVM_TEXT : draw(2) ? XNN_TVM_SMALL_TEXT : XNN_TVM_HEAP_TEXT, files[draw(4) ? 0 : draw(7)]);
}

static void add_kernel_name(void) {
    add32(XNN_TVM_MODULE);
    add64(handle(LIBRARY));
    add_text(XNN_TVM_TEXT, draw(8) ? "main" : "xmain");
}

static void make_call(unsigned which) {
    unsigned i, count = draw(4);
    add32(XNN_TVM_CALL);
    add64(handle(which < FUNCTIONS ? which : KERNEL));
    expected = which == 3 ? LIBRARY : KERNEL;
    if (which < 4) {
        add32(2);
        add_file();
        add_text(XNN_TVM_BYTES, "the content of a library");
    } else if (which == 4) {
        add32(3);
        add_kernel_name();
        add_number(0);
    } else if (which == 5) {
        add32(12);
        add_kernel_name();
        for (i = 0; i < 9; i++) add_number(draw(8) ? draw(5) : (uint64_t)0 - draw(3));
        add_text(XNN_TVM_TEXT, draw(3) ? "" : "cache_flush_cpu_non_first_arg");
    } else {
        add32(which == 6 ? 1 : count);
        for (i = 0; i < (which == 6 ? 1 : count); i++) {
            if (draw(8)) {
                add32(XNN_TVM_TENSOR);
                add_tensor(draw(12));
            } else if (draw(2)) {
                add_number(draw(100));
            } else {
                add32(70 + draw(3)); /* some object */
                add32(XNN_TVM_REMOTE);
                add64(handle(LIBRARY));
            }
        }
    }
}

static void make_packet(void) {
    static const uint8_t opening[] = {8, 8, 8, 8, 8, 8, 8, 8, 9, 9, 9, 3, 4, 5}; /* get all functions, memory, a kernel */
    unsigned step = PER_SESSION - 1 - left_in_session, is_opening = step < sizeof opening;
    unsigned kind = is_opening ? opening[step] : draw(20), copied = draw(64);
    static const uint8_t content[64];
    add64(0);
    expected = MEMORY;
    if (kind < 8) {
        make_call(is_opening ? kind : draw(FUNCTIONS + 6));
    } else if (kind == 8) {
        expected = is_opening ? step : draw(FUNCTIONS);
        add32(XNN_TVM_GET_FUNCTION);
        add32(1);
        add_text(XNN_TVM_TEXT, functions[expected]);
    } else if (kind < 11) {
        add32(XNN_TVM_ALLOCATE);
        add32(4);
        add32(XNN_TVM_DEVICE);
        add32(draw(8) ? XNN_TVM_CPU : 4);
        add32(0);
        add_number(draw(2000));
        add_number(draw(8) ? 64 : draw(200));
        add32(XNN_TVM_DTYPE);
        add64(0x00012002);
    } else if (kind == 11) {
        add32(XNN_TVM_ALLOCATE_SCOPED);
        add32(2);
        add32(XNN_TVM_TENSOR);
        add_tensor(draw(50));
        add32(XNN_TVM_NONE);
    } else if (kind < 14) {
        add32(XNN_TVM_COPY_TO);
        add_tensor(copied);
        add64(copied);
        add(content, copied);
    } else if (kind == 14) {
        add32(XNN_TVM_COPY_FROM);
        add_tensor(copied);
        add64(copied);
    } else if (kind == 15) {
        add32(XNN_TVM_COPY_AMONG);
        add32(3);
        add32(XNN_TVM_TENSOR);
        add_tensor(4);
        add32(XNN_TVM_TENSOR);
        add_tensor(4);
        add32(XNN_TVM_NONE);
    } else if (kind == 16) {
        add32(draw(2) ? XNN_TVM_FREE_HANDLE : XNN_TVM_FREE);
        add32(2);
        add32(XNN_TVM_POINTER);
        add64(handle(draw(KINDS)));
        add32(XNN_TVM_POINTER);
        add64(handle(MEMORY));
    } else if (kind == 17) {
        add32(XNN_TVM_INIT);
        add64(5);
        add(draw(40) ? "0.8.0" : "0.7.0", 5);
        add32(draw(4) ? 0 : 1);
        add_text(XNN_TVM_TEXT, "rpc.Connect");
    } else {
        add32(10 + draw(14));
        add32(2);
        add32(XNN_TVM_DEVICE);
        add64(1);
        add_number(draw(3));
    }
    memcpy(packet, (uint64_t[]){bytes - 8}, 8);
}

static void hurt(void) {
    static const uint64_t numbers[] = {0, 1, 7, 255, 0x7fffffff, 0x80000000u, 0xffffffffu, (uint64_t)1 << 40,
                                       INT64_MAX, (uint64_t)1 << 63, UINT64_MAX, UINT64_MAX - 7, 1 << 28, 48, 49, 17};
    unsigned times = 1 + draw(3);
    while (times--) {
        size_t place = 8 + draw((uint32_t)(bytes - 8));
        uint64_t number = numbers[draw(16)];
        unsigned how = draw(8);
        if (how == 0) {
            packet[place] = (uint8_t)draw(256);
        } else if (how == 1) {
            bytes = place < 12 ? 12 : place;
            memcpy(packet, (uint64_t[]){bytes - 8}, 8);
        } else if (how == 2 && draw(20) == 0) {
            memcpy(packet, &number, 8); /* the packet's own length */
        } else {
            size_t size = how & 1 ? 4 : 8;
            place &= ~(size_t)3; /* nearly all numbers lie so */
            if (place + size <= bytes) memcpy(packet + place, &number, size);
        }
    }
}

/* ---- the wire ---- */
int xnn_wire_read(xnn_wire *wire, void *data, size_t count, uint32_t within_ms) {
    (void)wire, (void)within_ms;
    if (at == bytes) {
        if (left_in_session == 0) return 0;
        left_in_session--;
        packets++;
        at = bytes = 0;
        make_packet();
        if (draw(16) == 0) hurt();
    }
    if (count > bytes - at) {
        at = bytes;
        left_in_session = 0;
        return 0;
    }
    memcpy(data, packet + at, count);
    at += count;
    return 1;
}

int xnn_wire_write(xnn_wire *wire, const void *data, size_t count, uint32_t within_ms) {
    const uint8_t *answer = data;
    uint64_t length;
    uint32_t code;
    (void)wire, (void)within_ms;
    memcpy(&length, answer, 8);
    assert(count == 8 + length && length >= 4);
    memcpy(&code, answer + 8, 4);
    assert(code == XNN_TVM_RETURN || code == XNN_TVM_EXCEPTION || code == XNN_TVM_COPY_ACK);
    came[code]++;
    sent++;
    if (code == XNN_TVM_RETURN && length >= 12 && xnn_get32(answer + count - 12) == XNN_TVM_POINTER) {
        unsigned *have = &known_count[expected];
        memcpy(&known[expected][*have < MOST_KNOWN ? (*have)++ : draw(MOST_KNOWN)], answer + count - 8, 8);
    }
    return draw(500) != 0; /* the client may be gone at any time */
}

static void forget(void) {
    size_t i;
    for (i = 0; i < session.handles.top; i++) {
        if (session.handles.things[i].kind == XNN_TVM_MEMORY) free(session.handles.things[i].pointer);
    }
    free(session.in);
    free(session.out.start);
    memset(&session, 0, sizeof session);
    memset(known_count, 0, sizeof known_count);
    at = bytes = 0;
}

int main(int argc, char **argv) {
    uint64_t wanted;
    assert(argc == 4 && chdir(argv[3]) == 0);
    state = strtoull(argv[1], NULL, 10) * UINT64_C(0x9E3779B97F4A7C15) + 1;
    for (wanted = strtoull(argv[2], NULL, 10); packets < wanted;) {
        left_in_session = PER_SESSION;
        xnn_tvm_session_serve(&session);
        forget();
    }
    printf("packets %llu answers %llu\n", (unsigned long long)packets, (unsigned long long)sent);
    printf("returns %llu exceptions %llu copies %llu kernels %llu\n", (unsigned long long)came[XNN_TVM_RETURN],
           (unsigned long long)came[XNN_TVM_EXCEPTION], (unsigned long long)came[XNN_TVM_COPY_ACK],
           (unsigned long long)calls);
    return 0;
}
