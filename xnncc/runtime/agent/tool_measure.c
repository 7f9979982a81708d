/* tool_measure.c: the program tools/measure.c as a function of the agent, so that a forked child can be it. */
int xnn_measure_main(int argc, char **argv);
#ifdef XNN_LOADS_NONE
#include "text.h"

int xnn_measure_main(int argc, char **argv) {
    (void)argc;
    xnn_complain(argv[0], "this agent loads no libraries: the job must bring a program");
    return 1;
}
#else
#define main xnn_measure_main
#include "../tools/measure.c"
#endif
