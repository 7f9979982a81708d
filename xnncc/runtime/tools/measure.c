/* measure.c: time many kernels of one library on a device, each against the first of its group.
 *
 *     measure LIBRARY PACKAGE GRAPH THREADS JOBS OUTPUTS ROUNDS FLUSH_BYTES
 *
 * Operator i of the package is one candidate; all operands lie in the arena. JOBS has a line "g FLOATS OFFSET BYTES DUMP"
 * for each group of candidates that compute the same: the arena's first FLOATS float32 get the numbers of fill(), the
 * output is BYTES bytes at OFFSET, DUMP 1 appends what the first candidate wrote to OUTPUTS; below it a line "c OP" for
 * each candidate. Lines on stdout:
 *     run OP          it is about to run for the first time: what happens from here on is its doing
 *     error OP PPB    largest difference to the first candidate's output, in 1e-9 of that output's largest value
 *     ns OP NS        one run with cold caches
 *     end             of the group
 * After WARM_ROUNDS a candidate SLOWER_PERCENT behind the best of its group is not timed again. Rounds are interleaved:
 * what else the machine does hits all candidates alike. Between two runs FLUSH_BYTES are read, because in a network
 * weights come from beyond the second cache.
 * Exit code 0, or 1 with a sentence on stdout. */
#include "open_net.h"

enum { MOST_CANDIDATES = 4096, WARM_ROUNDS = 3, SLOWER_PERCENT = 25 };
#define NOT_A_NUMBER UINT64_C(1000000000000)

static float *arena;

static void run(int32_t op) {
    static const void *none_in[1];
    static void *none_out[1];
    xnnrt_status status = run_ops(net, none_in, none_out, op, op + 1);
    if (status != XNNRT_OK) fail("run", explain(status));
}

/* Numbers in [-1, 1) that depend on their place alone: xnncc/device/bench.py has the same formula. */
static void fill(size_t count) {
    size_t i;
    for (i = 0; i < count; i++) {
        uint32_t x = (uint32_t)i * UINT32_C(2654435761);
        x ^= x >> 16;
        arena[i] = (float)(int32_t)(x >> 8) * (1.0f / 8388608.0f) - 1.0f;
    }
}

static uint64_t error_ppb(const float *found, const float *wanted, size_t count) {
    float most = 0.0f, off = 0.0f;
    size_t i;
    for (i = 0; i < count; i++) {
        float size = wanted[i] < 0 ? -wanted[i] : wanted[i], difference = found[i] - wanted[i];
        if (!(found[i] - found[i] == 0.0f)) return NOT_A_NUMBER; /* also infinity */
        difference = difference < 0 ? -difference : difference;
        most = size > most ? size : most;
        off = difference > off ? difference : off;
    }
    if (off == 0.0f) return 0;
    return most == 0.0f || off / most > 1000.0f ? NOT_A_NUMBER : (uint64_t)(off / most * 1e9f);
}

static const char *flushed;
static size_t flush_bytes;
static volatile unsigned kept; /* so that the reads stay */

static void flush(void) {
    unsigned sum = 0;
    size_t i;
    for (i = 0; i < flush_bytes; i += 64) sum += (unsigned char)flushed[i];
    kept = sum;
}

static void say_pair(const char *what, uint64_t op, uint64_t number) {
    say(what);
    say_number(op, ' ');
    say_number(number, '\n');
}

static void time_candidates(const int32_t *ops, size_t count, uint64_t rounds) {
    static uint64_t best[MOST_CANDIDATES];
    uint64_t round, fastest = UINT64_MAX;
    size_t i;
    for (i = 0; i < count; i++) best[i] = UINT64_MAX;
    for (round = 0; round < rounds; round++) {
        for (i = 0; i < count; i++) {
            uint64_t start;
            if (i > 0 && round >= WARM_ROUNDS && best[i] / 100 > fastest / (100 - SLOWER_PERCENT)) continue;
            flush();
            start = now_ns();
            run(ops[i]);
            start = now_ns() - start;
            say_pair("ns ", (uint64_t)ops[i], start);
            best[i] = start < best[i] ? start : best[i];
            fastest = start < fastest ? start : fastest;
        }
    }
}

static void check_candidates(const int32_t *ops, size_t count, size_t offset, size_t bytes, float *wanted) {
    char *output = (char *)arena + offset;
    size_t i;
    for (i = 0; i < count; i++) {
        memset(output, 255, bytes); /* NaN: what a candidate leaves unwritten shows */
        say("run ");
        say_number((uint64_t)ops[i], '\n');
        run(ops[i]);
        if (i == 0) memcpy(wanted, output, bytes);
        say_pair("error ", (uint64_t)ops[i], error_ppb((const float *)output, wanted, bytes / 4));
    }
}

static uint64_t field(const char **line) {
    if (**line == ' ') (*line)++;
    return parse_number(line);
}

int main(int argc, char **argv) {
    static int32_t ops[MOST_CANDIDATES];
    const char *line, *rounds, *bytes_text;
    size_t length;
    int file;
    if (argc != 9) fail("usage", "measure LIBRARY PACKAGE GRAPH THREADS JOBS OUTPUTS ROUNDS FLUSH_BYTES");
    open_net(argv[1], argv[2], argv[3], argv[4]);
    arena = (float *)(uintptr_t)((const void *(*)(const xnnrt_net *))find("xnnrt_arena"))(net); /* ours to write */
    line = read_file(argv[5], &length);
    file = open(argv[6], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file < 0) fail(argv[6], "cannot be written");
    rounds = argv[7];
    bytes_text = argv[8];
    flush_bytes = (size_t)parse_number(&bytes_text);
    flushed = memset(allocate(flush_bytes), 1, flush_bytes);
    uint64_t round_count = parse_number(&rounds);
    while (*line == 'g') {
        size_t count = 0, floats, offset, bytes;
        uint64_t dump;
        float *wanted;
        line++;
        floats = (size_t)field(&line);
        offset = (size_t)field(&line);
        bytes = (size_t)field(&line);
        dump = field(&line);
        line += *line == '\n';
        while (*line == 'c') {
            line++;
            if (count == MOST_CANDIDATES) fail(argv[5], "too many candidates in a group");
            ops[count++] = (int32_t)field(&line);
            line += *line == '\n';
        }
        wanted = allocate(bytes);
        fill(floats);
        check_candidates(ops, count, offset, bytes, wanted);
        if (dump) write_bytes(file, wanted, bytes);
        time_candidates(ops, count, round_count);
        free(wanted);
        say("end\n");
    }
    close(file);
    ((void (*)(xnnrt_net *))find("xnnrt_close"))(net);
    return 0;
}
