/* drive_coded.c PACKAGE BLOB THREADS: coded weights are what the file BLOB holds, to the bit, as often as it is opened. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_model.h"
#include "xnnrt.h"

static unsigned char expected[1 << 20];
static size_t expected_bytes;

static int32_t graph(const void *weights, void *arena, const int64_t *io, int32_t first, int32_t last) {
    (void)io, (void)last;
    if (first == -1) {
        *(int64_t *)arena = 5;
        return 0;
    }
    CHECK((uintptr_t)weights % 64 == 0);
    CHECK(memcmp(weights, expected, expected_bytes) == 0);
    if (first == -2) { /* kernels at open read decoded weights too */
        *(char *)arena = 1;
    }
    return 0;
}

static size_t load(const char *path, unsigned char *bytes, size_t most) {
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL);
    size_t size = fread(bytes, 1, most, file);
    CHECK(size < most);
    fclose(file);
    return size;
}

int main(int argc, char **argv) {
    static unsigned char package[1 << 20];
    CHECK(argc == 4);
    expected_bytes = load(argv[2], expected, sizeof expected);
    size_t size = load(argv[1], package, sizeof package - 1);
    xnnrt_options options = {.threads = atoi(argv[3])};
    for (int i = 0; i < 20; i++) {
        xnnrt_net *net;
        CHECK(xnnrt_open_memory(&net, graph, package + i % 2, size, &options) ==
              (i % 2 == 0 ? XNNRT_OK : XNNRT_NOT_A_PACKAGE));
        if (i % 2 == 0) {
            CHECK(xnnrt_run(net, NULL, NULL) == XNNRT_OK);
        }
        xnnrt_close(net);
    }
    xnnrt_net *net; /* at an odd address: it is decoded, not copied */
    memmove(package + 1, package, size);
    CHECK(xnnrt_open_memory(&net, graph, package + 1, size, &options) == XNNRT_OK);
    xnnrt_close(net);
    puts("ok");
    return 0;
}
