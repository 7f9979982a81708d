/* tool_runner.c: the program tools/runner.c as a function of the agent, so that a forked child can be it. */
int xnn_runner_main(int argc, char **argv);
#ifdef XNN_LOADS_NONE
#include "text.h"

int xnn_runner_main(int argc, char **argv) {
    (void)argc;
    xnn_complain(argv[0], "this agent loads no libraries: the job must bring a program");
    return 1;
}
#else
#define main xnn_runner_main
#include "../tools/runner.c"
#endif
