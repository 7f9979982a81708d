/* runner.c: load a library that xnncc built, run its network on files, for devices where there is no Python.
 *
 *     runner run   LIBRARY PACKAGE GRAPH THREADS SIZES INPUTS OUTPUTS
 *     runner time  LIBRARY PACKAGE GRAPH THREADS SIZES INPUTS OUTPUTS REPEAT PER_OP
 *     runner trace LIBRARY PACKAGE GRAPH THREADS SIZES INPUTS OUTPUTS REGIONS
 *
 * GRAPH is the graph function's symbol. SIZES are the bytes of each input and output: "602112:4000,16". INPUTS and
 * OUTPUTS are files that hold all tensors, one after the other. `time` prints "run NS" for each of REPEAT inferences, or,
 * with PER_OP 1, "op INDEX NS" for each operator of each. `trace` runs operator by operator and writes the named bytes
 * after each to OUTPUTS; a line of REGIONS is "OP SPACE INDEX OFFSET BYTES", SPACE one of a (arena), i, o.
 * Exit code 0, or 1 with a sentence on stdout. No stdio: the same source runs on glibc and on bionic. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "xnnrt.h"

enum { MAX_TENSORS = 256 };

static void say(const char *text) {
    size_t done = 0, n = strlen(text);
    while (done < n) {
        ssize_t wrote = write(1, text + done, n - done);
        if (wrote <= 0) exit(1);
        done += (size_t)wrote;
    }
}

static void fail(const char *what, const char *why) {
    say(what);
    say(": ");
    say(why);
    say("\n");
    exit(1);
}

static void say_number(uint64_t n, char end) {
    char digits[24], *p = digits + sizeof digits - 2;
    p[0] = end;
    p[1] = 0;
    do *--p = (char)('0' + n % 10);
    while (n /= 10);
    say(p);
}

static uint64_t parse_number(const char **text) {
    uint64_t n = 0;
    while (**text >= '0' && **text <= '9') n = n * 10 + (uint64_t)(*(*text)++ - '0');
    return n;
}

static void *allocate(size_t bytes) {
    void *memory = NULL;
    if (posix_memalign(&memory, 64, bytes ? bytes : 64)) fail("runner", "out of memory");
    return memory;
}

/* Returns the whole file with a zero byte behind it. */
static char *read_file(const char *path, size_t *bytes) {
    int file = open(path, O_RDONLY);
    off_t length = file < 0 ? -1 : lseek(file, 0, SEEK_END);
    char *content;
    size_t done = 0;
    if (length < 0 || lseek(file, 0, SEEK_SET) < 0) fail(path, "cannot be read");
    content = allocate((size_t)length + 1);
    while (done < (size_t)length) {
        ssize_t got = read(file, content + done, (size_t)length - done);
        if (got <= 0) fail(path, "cannot be read");
        done += (size_t)got;
    }
    content[length] = 0;
    close(file);
    *bytes = (size_t)length;
    return content;
}

static void write_bytes(int file, const void *data, size_t bytes) {
    size_t done = 0;
    while (done < bytes) {
        ssize_t wrote = write(file, (const char *)data + done, bytes - done);
        if (wrote <= 0) fail("outputs", "cannot be written");
        done += (size_t)wrote;
    }
}

/* The library's functions, looked up by name. */
static void *library;
static void *find(const char *name) {
    void *symbol = dlsym(library, name);
    if (symbol == NULL) fail(name, "is not in the library");
    return symbol;
}

static xnnrt_net *net;
static xnnrt_status (*run_ops)(xnnrt_net *, const void *const *, void *const *, int32_t, int32_t);
static const char *(*explain)(xnnrt_status);
static const void *inputs[MAX_TENSORS];
static void *outputs[MAX_TENSORS];
static size_t output_bytes[MAX_TENSORS];
static int output_count;
static int32_t op_count;

static void run(int32_t first, int32_t last) {
    xnnrt_status status = run_ops(net, inputs, outputs, first, last);
    if (status != XNNRT_OK) fail("run", explain(status));
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void prepare(const char *sizes, const char *inputs_path) {
    size_t bytes, at = 0;
    const char *content = read_file(inputs_path, &bytes);
    int input_count = 0;
    while (*sizes && *sizes != ':' && input_count < MAX_TENSORS) {
        size_t n = (size_t)parse_number(&sizes);
        void *tensor = allocate(n);
        if (n > bytes - at) fail(inputs_path, "is too short");
        memcpy(tensor, content + at, n);
        inputs[input_count++] = tensor;
        at += n;
        if (*sizes == ',') sizes++;
    }
    while (*sizes && output_count < MAX_TENSORS) {
        sizes++;
        output_bytes[output_count] = (size_t)parse_number(&sizes);
        outputs[output_count] = allocate(output_bytes[output_count]);
        output_count++;
    }
}

static void open_net(char **argv) {
    xnnrt_options options = {0, NULL, 0, 0};
    const char *threads = argv[5];
    xnnrt_status status;
    xnnrt_status (*open_file)(xnnrt_net **, xnnrt_graph, const char *, const xnnrt_options *);
    xnnrt_graph graph;
    library = dlopen(argv[2], RTLD_NOW);
    if (library == NULL) fail(argv[2], dlerror());
    *(void **)&open_file = find("xnnrt_open_file");
    *(void **)&run_ops = find("xnnrt_run_ops");
    *(void **)&explain = find("xnnrt_strerror");
    *(void **)&graph = find(argv[4]);
    options.threads = (int)parse_number(&threads);
    status = open_file(&net, graph, argv[3], &options);
    if (status != XNNRT_OK) fail("open", explain(status));
    op_count = ((int32_t(*)(const xnnrt_net *))find("xnnrt_op_count"))(net);
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
    open_net(argv);
    prepare(argv[6], argv[7]);
    file = open(argv[8], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file < 0) fail(argv[8], "cannot be written");
    if (strcmp(mode, "time") == 0 && argc == 11) {
        const char *repeat = argv[9];
        time_runs(parse_number(&repeat), argv[10][0] == '1');
    } else if (strcmp(mode, "trace") == 0 && argc == 10) {
        trace(argv[9], file);
    } else if (strcmp(mode, "run") == 0 && argc == 9) {
        run(0, op_count);
        for (i = 0; i < output_count; i++) write_bytes(file, outputs[i], output_bytes[i]);
    } else {
        fail(mode, "no such mode, or a wrong number of arguments");
    }
    close(file);
    ((void (*)(xnnrt_net *))find("xnnrt_close"))(net);
    return 0;
}
