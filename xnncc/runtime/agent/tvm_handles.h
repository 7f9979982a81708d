/* tvm_handles.h: what a client may hold of ours. A handle is a place in a table and how often that place was used before,
 * so one that was freed, or never given, is known for what it is. */
#ifndef XNN_AGENT_TVM_HANDLES_H
#define XNN_AGENT_TVM_HANDLES_H

#include "tvm_packets.h"

enum { XNN_TVM_MOST_HANDLES = 4096 };

/* Kinds of things. */
enum { XNN_TVM_NO_THING, XNN_TVM_MEMORY, XNN_TVM_LIBRARY, XNN_TVM_KERNEL, XNN_TVM_TIMER, XNN_TVM_BUILTIN };

/* How a timer times: runtime.RPCTimeEvaluator's arguments. */
typedef struct {
    int64_t number, repeat, min_repeat_ms, zero_time_limit, cooldown_ms, repeats_to_cooldown;
    int flushes;
} xnn_tvm_timing;

typedef struct {
    int kind;
    uint32_t used;  /* how often the place was given away */
    void *pointer;  /* memory, dlopen's handle, or the kernel */
    uint64_t bytes; /* of memory */
    int builtin;
    xnn_tvm_timing timing;
} xnn_tvm_thing;

typedef struct {
    xnn_tvm_thing things[XNN_TVM_MOST_HANDLES];
    size_t top; /* places from here on were never used */
} xnn_tvm_handles;

/* Give a place away; 0 when there is none left. The thing is cleared but for its kind. */
uint64_t xnn_tvm_new(xnn_tvm_handles *handles, int kind, xnn_tvm_thing **thing);

/* What the handle stands for, or NULL. */
xnn_tvm_thing *xnn_tvm_find(xnn_tvm_handles *handles, uint64_t handle);

/* Let go of it; 0 when there is no such thing. Memory is freed; code stays loaded, since something may point into it. */
int xnn_tvm_drop(xnn_tvm_handles *handles, uint64_t handle);

/* Point a tensor to its memory; 0 when it has none, or does not lie within it. */
int xnn_tvm_place(xnn_tvm_handles *handles, xnn_tvm_arg *arg);

#endif
