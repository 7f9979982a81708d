/* open_net.h: a library that xnncc built, loaded and its network opened. */
#ifndef XNN_OPEN_NET_H
#define XNN_OPEN_NET_H

#include <dlfcn.h>

#include "plain_io.h"
#include "xnnrt.h"

static void *library;
static xnnrt_net *net;
static xnnrt_status (*run_ops)(xnnrt_net *, const void *const *, void *const *, int32_t, int32_t);
static const char *(*explain)(xnnrt_status);

/* The library's functions, looked up by name. */
static inline void *find(const char *name) {
    void *symbol = dlsym(library, name);
    if (symbol == NULL) fail(name, "is not in the library");
    return symbol;
}

static inline void open_net(const char *path, const char *package, const char *graph_symbol, const char *threads) {
    xnnrt_options options = {0, NULL, 0, 0};
    xnnrt_status status;
    xnnrt_status (*open_file)(xnnrt_net **, xnnrt_graph, const char *, const xnnrt_options *);
    xnnrt_graph graph;
    library = dlopen(path, RTLD_NOW);
    if (library == NULL) fail(path, dlerror());
    *(void **)&open_file = find("xnnrt_open_file");
    *(void **)&run_ops = find("xnnrt_run_ops");
    *(void **)&explain = find("xnnrt_strerror");
    *(void **)&graph = find(graph_symbol);
    options.threads = (int)parse_number(&threads);
    status = open_file(&net, graph, package, &options);
    if (status != XNNRT_OK) fail("open", explain(status));
}

#endif
