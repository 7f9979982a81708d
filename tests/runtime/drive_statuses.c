/* drive_statuses.c < (u32 length, bytes)*: the status of xnnrt_open_memory for each package, a line each.
 * Each package is copied to memory of exactly its size: ASan sees a read beyond it. */
#include <string.h>

#include "fake_model.h"
#include "xnnrt.h"

/* A damaged package may ask for more memory than there is: that is a status, not a crash. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1:max_allocation_size_mb=64"; }

int main(void) {
    static unsigned char arena[1 << 16] __attribute__((aligned(64)));
    uint32_t length;
    while (fread(&length, sizeof length, 1, stdin) == 1) {
        unsigned char *package = malloc(length);
        CHECK(length == 0 || fread(package, length, 1, stdin) == 1);
        if (length >= 32) {
            memcpy(&fake_build_id, package + 24, sizeof fake_build_id);
        }
        xnnrt_net *net;
        xnnrt_options options = {.threads = 1, .arena = arena, .arena_bytes = sizeof arena};
        printf("%d\n", (int)xnnrt_open_memory(&net, xnn_fake_graph, package, length, &options));
        xnnrt_close(net);
        free(package);
    }
    return 0;
}
