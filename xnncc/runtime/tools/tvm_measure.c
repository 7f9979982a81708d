/* tvm_measure.c: tools/measure.c as a function that TVM's RPC servers can call, stock ones and ours.
 *
 *     xnn_measure(words: uint8 tensor, said: uint8 tensor, silent_ms: int, cpu_ms: int) -> nothing
 *
 * words: measure's arguments, each with a zero byte behind it. It runs in a child process, so that a kernel that crashes
 * or hangs leaves server and session alone; said: u32 bytes, then so many bytes of what it said on stdout, then how it
 * ended, a line: "exit N", "signal N", "silent" (said nothing for silent_ms) or "busy" (computed for cpu_ms without a
 * word). What does not fit is left out. The ABI is that of tvm_ffi/c_api.h; no function of TVM is called. */
#include "../agent/child.h"
#include "../agent/text.h"
#include "../agent/tvm_packets.h"

int xnn_measure_main(int argc, char **argv);

enum { MOST_WORDS = 16, LOOK_MS = 5, ENDING = 64 };

typedef struct {
    char *words[MOST_WORDS];
    int count;
} task;

static int work(void *data) {
    task *one = data;
    return xnn_measure_main(one->count, one->words);
}

static uint64_t clock_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static uint8_t *data_of(const xnn_tvm_any *arg, size_t *bytes) {
    const xnn_tvm_tensor *tensor = arg->is.pointer;
    *bytes = tensor->ndim == 1 ? (size_t)tensor->shape[0] : 0;
    return (uint8_t *)tensor->data + tensor->byte_offset;
}

/* Let the child work, and keep what it says; how it ended. */
static const char *watch(xnn_child *child, xnn_text *said, int64_t silent_ms, int64_t cpu_ms) {
    uint64_t heard = clock_ms();
    uint32_t used = 0;
    for (;;) {
        char piece[4097];
        int has_ended = xnn_child_has_ended(child);
        ssize_t got = xnn_child_read(child, piece, sizeof piece - 1);
        if (got > 0) {
            piece[got] = 0;
            xnn_text_add(said, piece);
            heard = clock_ms();
            used = xnn_child_cpu_ms(child);
        } else if (has_ended) {
            return child->end.is_signal ? "signal " : "exit ";
        } else if (clock_ms() - heard > (uint64_t)silent_ms) {
            return "silent";
        } else if ((int64_t)xnn_child_cpu_ms(child) - used > cpu_ms) {
            return "busy";
        } else {
            usleep(LOOK_MS * 1000);
        }
    }
}

__attribute__((visibility("default"))) int __tvm_ffi_xnn_measure(void *self, const xnn_tvm_any *args, int32_t count,
                                                                 xnn_tvm_any *result);

int __tvm_ffi_xnn_measure(void *self, const xnn_tvm_any *args, int32_t count, xnn_tvm_any *result) {
    static task one;
    const char *ending;
    size_t bytes, room, i;
    xnn_limits limits;
    xnn_child child;
    xnn_text said;
    uint8_t *words, *out;
    (void)self, (void)result;
    if (count != 4 || args[0].type != XNN_TVM_TENSOR || args[1].type != XNN_TVM_TENSOR) return -1;
    words = data_of(&args[0], &bytes);
    out = data_of(&args[1], &room);
    if (bytes == 0 || words[bytes - 1] != 0 || room < 4 * ENDING || room > UINT32_MAX) return -1;
    one.count = 0;
    one.words[one.count++] = (char *)words;
    for (i = 0; i + 1 < bytes && one.count < MOST_WORDS - 1; i++) {
        if (words[i] == 0) one.words[one.count++] = (char *)words + i + 1;
    }
    one.words[one.count] = NULL;
    memset(&limits, 0, sizeof limits); /* those of the session hold in its children */
    if (!xnn_child_start(&child, &limits, ".", -1, work, &one)) return -1;
    xnn_text_start(&said, (char *)out + 4, room - 4 - ENDING);
    ending = watch(&child, &said, args[2].is.number, args[3].is.number);
    xnn_child_stop(&child);
    said.room = room - 4;
    xnn_text_add(&said, ending);
    if (ending[strlen(ending) - 1] == ' ') xnn_text_add_number(&said, (uint64_t)child.end.code);
    xnn_text_add(&said, "\n");
    for (i = 0; i < 4; i++) out[i] = (uint8_t)(said.length >> 8 * i);
    return 0;
}
