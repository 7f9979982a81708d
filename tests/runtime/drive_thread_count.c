/* drive_thread_count.c PACKAGE: how many threads come of options.threads 1, 2, 3, 64; of a mask of one core; of 0. */
#include "fake_model.h"
#include "xnnrt.h"

int main(int argc, char **argv) {
    static const xnnrt_options cases[] = {{.threads = 1},  {.threads = 2}, {.threads = 3},
                                          {.threads = 64}, {.core_mask = 2}, {.threads = 0}};
    CHECK(argc == 2);
    for (int i = 0; i < 6; i++) {
        xnnrt_net *net;
        CHECK(xnnrt_open_file(&net, xnn_fake_graph, argv[1], &cases[i]) == XNNRT_OK);
        printf("%d%s", xnnrt_threads(net), i < 5 ? " " : "\n");
        xnnrt_close(net);
    }
    return 0;
}
