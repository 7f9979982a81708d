/* count_a64.c: a QEMU plugin (TCG plugin interface 1) that counts the A64 instructions a program executes, by class.
 *
 *     qemu-aarch64 -plugin ./count_a64.so -d plugin -D LOG PROGRAM
 *
 * Each write() to standard output is a mark: the plugin appends a line of running totals to LOG, one number a class in
 * the order of `classes` below. The runner of this project writes after each operator, so the difference of two lines
 * is an operator. A block of code carries a counter that the translated code itself increments, which makes a count
 * cost little more than the emulation; the counters are not atomic, so it is exact for one thread. Classes come from
 * the instruction word alone ("Arm Architecture Reference Manual", C4.1, top-level encodings).
 *
 * The interface is declared here as far as it is used: Debian's qemu-user ships the plugin loader, not its header. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { ADD_U64 };
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, int op, void *counter, uint64_t amount);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
void qemu_plugin_register_vcpu_syscall_cb(plugin_id, void (*)(plugin_id, unsigned, int64_t, uint64_t, uint64_t,
                                                              uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                                                              uint64_t));
void qemu_plugin_outs(const char *);
__attribute__((visibility("default"))) int qemu_plugin_version = 1;

enum { FMA, OTHER_VECTOR, MOVE, VECTOR_LOAD, VECTOR_STORE, SCALAR_LOAD_STORE, INTEGER, BRANCH, OTHER, CLASSES };
enum { SYSCALL_WRITE = 64 };

struct block {
    uint64_t runs;
    uint16_t count[CLASSES];
    struct block *next;
};
static struct block *blocks;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint32_t bits(uint32_t word, int high, int low) { return word >> low & ((1u << (high - low + 1)) - 1); }

/* Loads and stores: bit 26 says which register file; where bit 22 says "load" depends on the group. */
static int load_or_store(uint32_t word) {
    uint32_t group = bits(word, 29, 27), is_vector = bits(word, 26, 26), is_load = bits(word, 22, 22);
    if (group == 3 && !bits(word, 24, 24)) {
        is_load = 1; /* from a literal pool */
    } else if (group == 7) {
        uint32_t size = bits(word, 31, 30), opc = bits(word, 23, 22);
        is_load = is_vector ? opc & 1 : opc != 0;
        if (!is_vector && size == 3 && opc == 2) return OTHER; /* prefetch */
    }
    if (!is_vector) return SCALAR_LOAD_STORE;
    return is_load ? VECTOR_LOAD : VECTOR_STORE;
}

static int vector(uint32_t word) {
    if (bits(word, 31, 31) || bits(word, 28, 28)) return OTHER_VECTOR; /* scalar floating point and friends */
    if (bits(word, 24, 24)) {                                          /* by element */
        uint32_t opcode = bits(word, 15, 12), is_fma = opcode == 1 || opcode == 5;
        return !bits(word, 10, 10) && !bits(word, 29, 29) && is_fma ? FMA : OTHER_VECTOR;
    }
    if (!bits(word, 21, 21)) return bits(word, 15, 15) && bits(word, 10, 10) ? OTHER_VECTOR : MOVE; /* dup, ins, zip .. */
    return bits(word, 10, 10) && !bits(word, 29, 29) && bits(word, 15, 11) == 25 ? FMA : OTHER_VECTOR;
}

static int class_of(uint32_t word) {
    uint32_t top = bits(word, 28, 25);
    if ((top & 14) == 8 || (top & 7) == 5) return INTEGER;
    if ((top & 14) == 10) return BRANCH;
    if ((top & 5) == 4) return load_or_store(word);
    return (top & 7) == 7 ? vector(word) : OTHER;
}

static void on_translation(plugin_id id, struct qemu_plugin_tb *code) {
    struct block *block = calloc(1, sizeof *block);
    (void)id;
    if (block == NULL) abort();
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(code); i++) {
        uint32_t word;
        memcpy(&word, qemu_plugin_insn_data(qemu_plugin_tb_get_insn(code, i)), sizeof word);
        block->count[class_of(word)]++;
    }
    pthread_mutex_lock(&lock);
    block->next = blocks;
    blocks = block;
    pthread_mutex_unlock(&lock);
    qemu_plugin_register_vcpu_tb_exec_inline(code, ADD_U64, &block->runs, 1);
}

static void on_syscall(plugin_id id, unsigned cpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
                       uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8) {
    (void)id, (void)cpu, (void)a2, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
    if (number != SYSCALL_WRITE || a1 != 1) return;
    uint64_t total[CLASSES] = {0};
    char line[24 * CLASSES + 2] = "";
    int length = 0;
    pthread_mutex_lock(&lock);
    for (struct block *b = blocks; b != NULL; b = b->next)
        for (int c = 0; c < CLASSES; c++) total[c] += b->runs * b->count[c];
    pthread_mutex_unlock(&lock);
    for (int c = 0; c < CLASSES; c++)
        length += snprintf(line + length, sizeof line - (size_t)length, "%" PRIu64 " ", total[c]);
    line[length - 1] = '\n';
    qemu_plugin_outs(line);
}

__attribute__((visibility("default"))) int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv) {
    (void)info, (void)argc, (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_vcpu_syscall_cb(id, on_syscall);
    return 0;
}
