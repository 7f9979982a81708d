/* runner.c: load a library that xnncc built, run its network on files, for devices where there is no Python.
 *
 *     runner run   LIBRARY PACKAGE GRAPH THREADS SIZES INPUTS OUTPUTS
 *     runner time  LIBRARY PACKAGE GRAPH THREADS SIZES INPUTS OUTPUTS REPEAT PER_OP
 *     runner trace LIBRARY PACKAGE GRAPH THREADS SIZES INPUTS OUTPUTS REGIONS
 *
 * GRAPH is the graph function's symbol. SIZES are the number of the variant and the bytes of each input and output:
 * "0@602112:4000,16". INPUTS and OUTPUTS are files that hold all tensors, one
 * after the other; `run` takes the inputs of several inferences in a row and writes the outputs of each. `time` prints "run NS" for each of REPEAT inferences, or,
 * with PER_OP 1, "op INDEX NS" for each operator of each. `trace` runs operator by operator and writes the named bytes
 * after each to OUTPUTS; a line of REGIONS is "OP SPACE INDEX OFFSET BYTES", SPACE one of a (arena), i, o.
 * Exit code 0, or 1 with a sentence on stdout. No stdio: the same source runs on glibc and on bionic. */
#include "open_net.h"

enum { MAX_TENSORS = 256 };

static xnnrt_status (*use_variant)(xnnrt_net *, int);
static void *inputs[MAX_TENSORS];
static void *outputs[MAX_TENSORS];
static size_t input_bytes[MAX_TENSORS], output_bytes[MAX_TENSORS];
static int input_count, output_count;
static const char *fed; /* what is left of the inputs */
static size_t fed_bytes;
static int32_t op_count;

static void run(int32_t first, int32_t last) {
    xnnrt_status status = run_ops(net, (const void *const *)inputs, outputs, first, last);
    if (status != XNNRT_OK) fail("run", explain(status));
}

/* Take the inputs of the next inference. */
static void feed(void) {
    int i;
    for (i = 0; i < input_count; i++) {
        if (input_bytes[i] > fed_bytes) fail("inputs", "the file is too short");
        memcpy(inputs[i], fed, input_bytes[i]);
        fed += input_bytes[i];
        fed_bytes -= input_bytes[i];
    }
}

static void prepare(const char *sizes, const char *inputs_path) {
    xnnrt_status status;
    *(void **)&use_variant = find("xnnrt_use_variant");
    status = use_variant(net, (int)parse_number(&sizes));
    if (status != XNNRT_OK) fail("variant", explain(status));
    op_count = ((int32_t(*)(const xnnrt_net *))find("xnnrt_op_count"))(net);
    sizes++;
    while (*sizes && *sizes != ':' && input_count < MAX_TENSORS) {
        input_bytes[input_count] = (size_t)parse_number(&sizes);
        inputs[input_count] = allocate(input_bytes[input_count]);
        input_count++;
        if (*sizes == ',') sizes++;
    }
    while (*sizes && output_count < MAX_TENSORS) {
        sizes++;
        output_bytes[output_count] = (size_t)parse_number(&sizes);
        outputs[output_count] = allocate(output_bytes[output_count]);
        output_count++;
    }
    fed = read_file(inputs_path, &fed_bytes);
    feed();
}

static void time_runs(uint64_t repeat, int per_op) {
    run(0, op_count); /* warm: first touch of the memory, start of the workers */
    while (repeat--) {
        uint64_t start = now_ns();
        int32_t i;
        if (!per_op) {
            run(0, op_count);
            say("run ");
            say_number(now_ns() - start, '\n');
            continue;
        }
        for (i = 0; i < op_count; i++) {
            start = now_ns();
            run(i, i + 1);
            start = now_ns() - start;
            say("op ");
            say_number((uint64_t)i, ' ');
            say_number(start, '\n');
        }
    }
}

static void trace(const char *regions_path, int file) {
    size_t bytes;
    const char *line = read_file(regions_path, &bytes);
    const char *arena = ((const void *(*)(const xnnrt_net *))find("xnnrt_arena"))(net);
    int32_t next = 0;
    while (*line) {
        int32_t op = (int32_t)parse_number(&line);
        char space = line[1];
        uint64_t index, offset, length;
        const char *base;
        line += 3;
        index = parse_number(&line);
        line++;
        offset = parse_number(&line);
        line++;
        length = parse_number(&line);
        if (*line == '\n') line++;
        if (op >= next) {
            run(next, op + 1);
            next = op + 1;
        }
        base = space == 'a' ? arena : space == 'i' ? (const char *)inputs[index] : (const char *)outputs[index];
        write_bytes(file, base + offset, (size_t)length);
    }
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    int file, i;
    if (argc < 9) fail("usage", "runner run|time|trace LIBRARY PACKAGE GRAPH THREADS SIZES INPUTS OUTPUTS ...");
    open_net(argv[2], argv[3], argv[4], argv[5]);
    prepare(argv[6], argv[7]);
    file = open(argv[8], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file < 0) fail(argv[8], "cannot be written");
    if (strcmp(mode, "time") == 0 && argc == 11) {
        const char *repeat = argv[9];
        time_runs(parse_number(&repeat), argv[10][0] == '1');
    } else if (strcmp(mode, "trace") == 0 && argc == 10) {
        trace(argv[9], file);
    } else if (strcmp(mode, "run") == 0 && argc == 9) {
        for (;;) {
            run(0, op_count);
            for (i = 0; i < output_count; i++) write_bytes(file, outputs[i], output_bytes[i]);
            if (fed_bytes == 0) break;
            feed();
        }
    } else {
        fail(mode, "no such mode, or a wrong number of arguments");
    }
    close(file);
    ((void (*)(xnnrt_net *))find("xnnrt_close"))(net);
    return 0;
}
