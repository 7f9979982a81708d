/* child.h: work that may crash, hang or eat memory is done in a child process with limits of its own.
 *
 *     xnn_child child;
 *     if (!xnn_child_start(&child, &limits, folder, -1, body, data)) ...   errno says why
 *     read child.output until it ends, or lose patience
 *     xnn_child_stop(&child);                                              child.end says how it ended
 *
 * The child has a process group and a folder of its own, and of the agent's open files only `keep`; it dies with the
 * process that started it. */
#ifndef XNN_AGENT_CHILD_H
#define XNN_AGENT_CHILD_H

#include "posix.h"

typedef struct {
    uint64_t memory_bytes; /* address space; 0: no limit */
    uint64_t file_bytes;   /* largest file that it may write; 0: no limit */
    uint32_t cpu_seconds;  /* processor time, after which it gets SIGXCPU; 0: no limit */
    uint64_t core_mask;    /* bit i: core i; 0: any core */
} xnn_limits;

typedef struct {
    int is_signal; /* it was ended by signal `code`; otherwise it ended with exit code `code` */
    int code;
    uint32_t cpu_ms; /* processor time up to about its end */
} xnn_end;

typedef struct {
    pid_t id;   /* 0: there is none */
    int output; /* what it writes to file descriptors 1 and 2; -1 after it has closed them. Reads never block */
    xnn_end end;
} xnn_child;

/* What runs in the child; its result is the exit code. */
typedef int (*xnn_body)(void *data);

/* Start a child in `folder`. `keep`: a file descriptor that it keeps (-1: none). Returns 0 when it cannot (errno). */
int xnn_child_start(xnn_child *child, const xnn_limits *limits, const char *folder, int keep, xnn_body body, void *data);

/* Read some of its output: bytes, 0 when there is nothing now, -1 when there will be no more (child->output is -1 then). */
ssize_t xnn_child_read(xnn_child *child, void *data, size_t room);

/* 1 once it has ended: child->end is filled and its process group killed. Never waits. */
int xnn_child_has_ended(xnn_child *child);

/* Processor milliseconds that it has used; 0 when the system does not tell. */
uint32_t xnn_child_cpu_ms(const xnn_child *child);

/* Kill it and its group if it still runs, and let go of everything. child->end is filled. */
void xnn_child_stop(xnn_child *child);

/* Close all file descriptors from 3 on but `keep`. */
void xnn_close_others(int keep);

/* Hold the device for measuring: the lock of folder `folder` as a file descriptor, -1 when another process has it.
 * The lock goes with the descriptor, however the process ends. */
int xnn_hold_device(const char *folder);

/* Remove a folder and all that is in it. */
void xnn_remove_folder(const char *path);

#endif
