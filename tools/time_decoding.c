/* time_decoding.c CODED BLOB RUNS: seconds of CPU time that the fastest of RUNS decodings takes; bench_coding.py runs it.
 * CODED is the contents of a coded WGHT section, BLOB what it must decode to. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "decode.h"
#include "memory.h"

static uint8_t *load(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        exit(2);
    }
    *size = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = xnnrt_allocate(*size);
    if (bytes == NULL || fread(bytes, 1, *size, file) != *size) {
        exit(2);
    }
    fclose(file);
    return bytes;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        return 2;
    }
    size_t coded_bytes, blob_bytes;
    uint8_t *coded = load(argv[1], &coded_bytes), *expected = load(argv[2], &blob_bytes);
    uint8_t *blob = xnnrt_allocate(blob_bytes);
    xnnrt_thread thread = {0};
    xnnrt_pool pool = {.thread = &thread, .threads = 1};
    thread.pool = &pool;
    if (blob == NULL || !xnnrt_key_retain() || !xnnrt_set_this_thread(&thread)) {
        return 2;
    }
    memset(blob, 1, blob_bytes); /* touch it: pages are not what is measured */
    double best = 1e9;
    for (int run = atoi(argv[3]); run > 0; run--) {
        xnnrt_decoding decoding;
        double start = now();
        if (xnnrt_decoding_begin(&decoding, coded, coded_bytes, blob_bytes) != XNNRT_OK ||
            xnnrt_decoding_run(&decoding, blob, &pool) != XNNRT_OK) {
            return 1;
        }
        double seconds = now() - start;
        best = seconds < best ? seconds : best;
        xnnrt_decoding_end(&decoding);
    }
    if (memcmp(blob, expected, blob_bytes) != 0) {
        return 1;
    }
    printf("%.9f\n", best);
    return 0;
}
