/* open_net.h: a library that xnncc built, loaded and its network opened. With -DXNN_LINKED_GRAPH=SYMBOL the library's
 * objects are linked into the program itself, for devices that load none. */
#ifndef XNN_OPEN_NET_H
#define XNN_OPEN_NET_H

#ifndef XNN_LINKED_GRAPH
#include <dlfcn.h>
#endif

#include "plain_io.h"
#include "xnnrt.h"

static xnnrt_net *net;
static xnnrt_status (*run_ops)(xnnrt_net *, const void *const *, void *const *, int32_t, int32_t);
static const char *(*explain)(xnnrt_status);

#ifdef XNN_LINKED_GRAPH
int32_t XNN_LINKED_GRAPH(const void *weights, void *arena, const int64_t *io, int32_t first, int32_t last);

static inline void load(const char *path) { (void)path; }

static inline void *look_up(const char *name) {
#define XNN_FUNCTION(function) \
    if (strcmp(name, #function) == 0) return (void *)(uintptr_t)function
    XNN_FUNCTION(xnnrt_open_file);
    XNN_FUNCTION(xnnrt_run_ops);
    XNN_FUNCTION(xnnrt_strerror);
    XNN_FUNCTION(xnnrt_arena);
    XNN_FUNCTION(xnnrt_close);
    XNN_FUNCTION(xnnrt_use_variant);
    XNN_FUNCTION(xnnrt_op_count);
#undef XNN_FUNCTION
    return strncmp(name, "xnnrt_", 6) == 0 ? NULL : (void *)(uintptr_t)XNN_LINKED_GRAPH;
}
#else
static void *library;

static inline void load(const char *path) {
    library = dlopen(path, RTLD_NOW);
    if (library == NULL) fail(path, dlerror());
}

static inline void *look_up(const char *name) { return dlsym(library, name); }
#endif

/* The library's functions, looked up by name. */
static inline void *find(const char *name) {
    void *symbol = look_up(name);
    if (symbol == NULL) fail(name, "is not in the library");
    return symbol;
}

static inline void open_net(const char *path, const char *package, const char *graph_symbol, const char *threads) {
    xnnrt_options options = {0, NULL, 0, 0};
    xnnrt_status status;
    xnnrt_status (*open_file)(xnnrt_net **, xnnrt_graph, const char *, const xnnrt_options *);
    xnnrt_graph graph;
    load(path);
    *(void **)&open_file = find("xnnrt_open_file");
    *(void **)&run_ops = find("xnnrt_run_ops");
    *(void **)&explain = find("xnnrt_strerror");
    *(void **)&graph = find(graph_symbol);
    options.threads = (int)parse_number(&threads);
    status = open_file(&net, graph, package, &options);
    if (status != XNNRT_OK) fail("open", explain(status));
}

#endif
