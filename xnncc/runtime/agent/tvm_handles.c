/* tvm_handles.c: see tvm_handles.h. */
#include "tvm_handles.h"

uint64_t xnn_tvm_new(xnn_tvm_handles *handles, int kind, xnn_tvm_thing **thing) {
    size_t i;
    uint32_t used;
    for (i = 0; i < handles->top && handles->things[i].kind != XNN_TVM_NO_THING; i++) continue;
    if (i == XNN_TVM_MOST_HANDLES) return 0;
    if (i == handles->top) handles->top++;
    *thing = &handles->things[i];
    used = (*thing)->used + 1;
    memset(*thing, 0, sizeof **thing);
    (*thing)->kind = kind;
    (*thing)->used = used;
    return (uint64_t)used << 16 | (i + 1);
}

xnn_tvm_thing *xnn_tvm_find(xnn_tvm_handles *handles, uint64_t handle) {
    size_t place = (size_t)(handle & 0xffff);
    xnn_tvm_thing *thing;
    if (place == 0 || place > handles->top) return NULL;
    thing = &handles->things[place - 1];
    return thing->kind != XNN_TVM_NO_THING && handle >> 16 == thing->used ? thing : NULL;
}

int xnn_tvm_drop(xnn_tvm_handles *handles, uint64_t handle) {
    xnn_tvm_thing *thing = xnn_tvm_find(handles, handle);
    if (thing == NULL) return 0;
    if (thing->kind == XNN_TVM_MEMORY) free(thing->pointer);
    thing->kind = XNN_TVM_NO_THING;
    thing->pointer = NULL;
    return 1;
}

int xnn_tvm_place(xnn_tvm_handles *handles, xnn_tvm_arg *arg) {
    xnn_tvm_thing *memory = xnn_tvm_find(handles, arg->handle);
    uint64_t bytes;
    if (memory == NULL || memory->kind != XNN_TVM_MEMORY || !xnn_tvm_tensor_bytes(&arg->tensor, &bytes)) return 0;
    if (arg->tensor.byte_offset > memory->bytes || bytes > memory->bytes - arg->tensor.byte_offset) return 0;
    arg->tensor.data = memory->pointer;
    return 1;
}
