/* job.h: a measurement, or a whole network's run, in a child process. */
#ifndef XNN_AGENT_JOB_H
#define XNN_AGENT_JOB_H

#include "child.h"
#include "session.h"

enum { XNN_MEASURE = 1, XNN_RUN = 2, XNN_TIME = 3, XNN_TRACE = 4 };  /* kinds */
enum { XNN_ENDED = 0, XNN_SIGNALLED = 1, XNN_STILL = 2, XNN_TOO_LONG = 3, XNN_TOO_MUCH = 4, XNN_CANCELLED = 5 };

enum { XNN_LIBRARY, XNN_PACKAGE, XNN_JOBS, XNN_INPUTS, XNN_REGIONS, XNN_PROGRAM, XNN_ROLES };

typedef struct {
    uint8_t kind;
    uint16_t threads;
    xnn_limits limits;
    uint64_t output_bytes;                        /* most that it may say on stdout */
    uint32_t wall_ms, line_wall_ms, line_cpu_ms;  /* the whole job; between two words of it */
    char files[XNN_ROLES][XNN_PATH];              /* paths, "" where the job has none */
    char arguments[XNN_MOST_ARGUMENTS][XNN_MOST_ARGUMENT + 1];
    unsigned argument_count;
} xnn_job;

/* Read the body of a JOB frame and look its files up: 0, or one of XNN_E_* and a sentence. */
int xnn_read_job(xnn_job *job, xnn_cursor *body, xnn_store *store, const char **why);

/* Do the job of a JOB frame: FACTS, OUTPUT ..., FACTS, FILE ..., DONE; or ERROR. */
void xnn_do_job(xnn_session *session, xnn_cursor *body);

/* tools/measure.c and tools/runner.c as functions: their main(). */
int xnn_measure_main(int argc, char **argv);
int xnn_runner_main(int argc, char **argv);

#endif
