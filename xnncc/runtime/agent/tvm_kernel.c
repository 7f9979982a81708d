/* tvm_kernel.c: see tvm_kernel.h. The kernels' ABI is tvm_ffi/c_api.h's TVMFFISafeCallType. */
#include "tvm_kernel.h"

#include <dlfcn.h>

#include "tvm_threads.h"

typedef int (*entry)(void *self, const xnn_tvm_any *args, int32_t count, xnn_tvm_any *result);

static char complaint[XNN_TVM_MOST_WORDS]; /* of the kernel that was called last */

/* What generated code calls when a check of its arguments fails; looked up by name when a library is loaded. */
#define EXPORTED __attribute__((visibility("default")))
EXPORTED void TVMFFIErrorSetRaisedFromCStrParts(const char *kind, const char **parts, int32_t count);
EXPORTED void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *words);

EXPORTED void TVMFFIErrorSetRaisedFromCStrParts(const char *kind, const char **parts, int32_t count) {
    xnn_text text;
    int32_t i;
    xnn_text_start(&text, complaint, sizeof complaint);
    xnn_text_add_plain(&text, kind, sizeof complaint);
    xnn_text_add(&text, ": ");
    for (i = 0; i < count; i++) {
        if (parts[i] != NULL) xnn_text_add_plain(&text, parts[i], sizeof complaint);
    }
}

EXPORTED void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *words) {
    TVMFFIErrorSetRaisedFromCStrParts(kind, &words, 1);
}

static void *find(void *library, const char *name) { return dlsym(library, name); }

void *xnn_tvm_load(const char *path, const char **why) {
    void *library;
    void **raise;
    *why = "this system has no threads to give";
    if (!xnn_tvm_start_threads()) return NULL;
    library = dlopen(path, RTLD_NOW);
    if (library == NULL) {
        *why = dlerror();
        return NULL;
    }
    xnn_tvm_fill_slots(find, library);
    raise = dlsym(library, "__TVMFFIErrorSetRaisedFromCStrParts"); /* a slot, in libraries that have one */
    if (raise != NULL) {
        void (*function)(const char *, const char **, int32_t) = TVMFFIErrorSetRaisedFromCStrParts;
        memcpy(raise, &function, sizeof function);
    }
    return library;
}

void *xnn_tvm_symbol(void *library, const uint8_t *name, size_t length) {
    static const char prefix[] = "__tvm_ffi_";
    char symbol[256];
    if (length == 0 || length > sizeof symbol - sizeof prefix || xnn_tvm_has_zero(name, length)) return NULL;
    memcpy(symbol, prefix, sizeof prefix - 1);
    memcpy(symbol + sizeof prefix - 1, name, length);
    symbol[sizeof prefix - 1 + length] = 0;
    return dlsym(library, symbol);
}

/* Copy the arguments into the form that kernels take; NULL, or why there is none. */
static const char *pass(const xnn_tvm_arg *args, int count, xnn_tvm_any *passed) {
    int i;
    for (i = 0; i < count; i++) {
        int32_t type = args[i].value.type;
        passed[i] = args[i].value;
        if (type == XNN_TVM_TENSOR) {
            passed[i].is.pointer = (void *)(uintptr_t)&args[i].tensor; /* TVM's type; kernels do not write there */
        } else if (type != XNN_TVM_NONE && type != XNN_TVM_INT && type != XNN_TVM_BOOL && type != XNN_TVM_FLOAT) {
            return "TypeError: this agent passes numbers and tensors to kernels, nothing else";
        }
    }
    return NULL;
}

static const char *run(entry kernel, const xnn_tvm_any *passed, int count) {
    xnn_tvm_any result;
    memset(&result, 0, sizeof result);
    if (kernel(NULL, passed, count, &result) == 0) return NULL;
    if (xnn_tvm_recover_threads()) return "RuntimeError: the kernel wants more scratch memory than a thread has";
    return complaint[0] ? complaint : "RuntimeError: the kernel failed, and does not say why";
}

static entry as_entry(void *kernel) {
    entry function;
    memcpy(&function, &kernel, sizeof function);
    return function;
}

const char *xnn_tvm_call(void *kernel, const xnn_tvm_arg *args, int count) {
    xnn_tvm_any passed[XNN_TVM_MOST_ARGS];
    const char *wrong = pass(args, count, passed);
    complaint[0] = 0;
    return wrong != NULL ? wrong : run(as_entry(kernel), passed, count);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Read what is larger than a phone's caches, so that they hold nothing of the kernel's. */
static void flush(void) {
    enum { FLUSHED = 1 << 23 };
    static const volatile char *flushed;
    size_t i;
    if (flushed == NULL) {
        char *fresh = malloc(FLUSHED);
        if (fresh == NULL) return;
        flushed = memset(fresh, 1, FLUSHED);
    }
    for (i = 0; i < FLUSHED; i += 64) (void)flushed[i];
}

const char *xnn_tvm_time(void *kernel, const xnn_tvm_timing *timing, const xnn_tvm_arg *args, int count,
                         double *seconds) {
    xnn_tvm_any passed[XNN_TVM_MOST_ARGS];
    const double least = (double)timing->min_repeat_ms * 1e-3;
    const char *wrong = pass(args, count, passed);
    int64_t i, number = timing->number;
    entry function = as_entry(kernel);
    complaint[0] = 0;
    if (wrong == NULL) wrong = run(function, passed, count);
    for (i = 0; i < timing->repeat && wrong == NULL; i++) {
        double took = 0;
        int64_t zeros = 0;
        if (timing->flushes) flush();
        do {
            int64_t k;
            double start;
            if (took > 0) { /* as TVM's WrapTimeEvaluator grows it */
                double wanted = least / (took / (double)number) + 1, grown = (double)number * 1.618;
                number = (int64_t)(wanted > grown ? wanted : grown);
            }
            start = now();
            for (k = 0; k < number && wrong == NULL; k++) wrong = run(function, passed, count);
            took = now() - start;
            zeros += took <= 0;
        } while (took < least && zeros < timing->zero_time_limit && number < INT32_MAX && wrong == NULL);
        seconds[i] = took / (double)number;
        if (timing->cooldown_ms > 0 && timing->repeats_to_cooldown > 0 && (i + 1) % timing->repeats_to_cooldown == 0) {
            usleep((unsigned)timing->cooldown_ms * 1000);
        }
    }
    return wrong;
}
