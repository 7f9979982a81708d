/* tvm_functions.c: see tvm_functions.h. */
#include "tvm_functions.h"

#include "text.h"
#include "tvm_kernel.h"

enum { UPLOAD = 1, DOWNLOAD, REMOVE, LOAD, GET_KERNEL, TIME, FILL, MOST_COOLDOWN_MS = 60000 };

static const char *const names[] = {
    "", "tvm.rpc.server.upload", "tvm.rpc.server.download", "tvm.rpc.server.remove", "tvm.rpc.server.load_module",
    "tvm.rpc.server.ModuleGetFunction", "runtime.RPCTimeEvaluator", "tvm.contrib.random.random_fill_for_measure",
};

int xnn_tvm_function(const xnn_tvm_arg *name) {
    int i;
    for (i = UPLOAD; i <= FILL; i++) {
        if (xnn_tvm_same_text(name, names[i])) return i;
    }
    return 0;
}

/* The argument at a place; NULL after refusing a call that has too few. */
static xnn_tvm_arg *argument(xnn_tvm_session *session, int place) {
    if (place < session->args.count) return &session->args.is[place];
    xnn_tvm_refuse(session, "TypeError: ", "the call has too few arguments");
    return NULL;
}

/* Write "./" and the last part of the path that the client gave: files lie in the session's folder and nowhere else. */
static int local_path(xnn_tvm_session *session, char path[258]) {
    const xnn_tvm_arg *given = argument(session, 0);
    const uint8_t *name;
    size_t length = 0;
    if (given == NULL) return 0;
    while (length < given->length && given->bytes[given->length - 1 - length] != '/') length++;
    name = given->bytes + given->length - length;
    if (!xnn_tvm_is_text(given) || length == 0 || length > 255 || xnn_tvm_has_zero(name, length) || name[0] == '.') {
        xnn_tvm_refuse(session, "ValueError: ", "a file's name has 1 to 255 bytes and does not begin with a dot");
        return 0;
    }
    path[0] = '.';
    path[1] = '/';
    memcpy(path + 2, name, length);
    path[2 + length] = 0;
    return 1;
}

static void result_none(xnn_tvm_session *session) { xnn_tvm_result(&session->out, XNN_TVM_NONE, 0); }

static void upload(xnn_tvm_session *session) {
    char path[258];
    const xnn_tvm_arg *data = argument(session, 1);
    size_t done = 0;
    int file;
    if (data == NULL || !local_path(session, path)) return;
    file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    while (file >= 0 && xnn_tvm_is_text(data) && done < data->length) {
        ssize_t wrote = write(file, data->bytes + done, data->length - done);
        if (wrote <= 0) break;
        done += (size_t)wrote;
    }
    if (file >= 0) close(file);
    if (file < 0 || !xnn_tvm_is_text(data) || done < data->length) {
        unlink(path);
        xnn_tvm_refuse(session, "OSError: ", "the file cannot be written: is the disk full?");
        return;
    }
    result_none(session);
}

static void download(xnn_tvm_session *session) {
    char path[258];
    uint8_t *data = NULL;
    size_t length = 0;
    ssize_t got = 0;
    off_t bytes;
    int file;
    if (!local_path(session, path)) return;
    file = open(path, O_RDONLY | O_CLOEXEC);
    bytes = file < 0 ? -1 : lseek(file, 0, SEEK_END);
    if (bytes >= 0 && bytes <= XNN_TVM_MOST_PACKET / 2 && lseek(file, 0, SEEK_SET) == 0) {
        data = malloc((size_t)bytes + 1);
        while (data != NULL && length < (size_t)bytes) {
            got = read(file, data + length, (size_t)bytes - length);
            if (got <= 0) break;
            length += (size_t)got;
        }
    }
    if (file >= 0) close(file);
    if (data == NULL || length != (size_t)bytes) {
        xnn_tvm_refuse(session, "OSError: ", "there is no such file, or it is too large");
    } else {
        xnn_tvm_result_bytes(&session->out, data, length);
    }
    free(data);
}

static void give(xnn_tvm_session *session, int kind, int32_t type, void *pointer, xnn_tvm_thing **thing) {
    uint64_t handle = xnn_tvm_new(&session->handles, kind, thing);
    if (handle == 0) {
        xnn_tvm_refuse(session, "MemoryError: ", "a session holds at most 4096 things");
        return;
    }
    (*thing)->pointer = pointer;
    xnn_tvm_result(&session->out, type, handle);
}

static void load(xnn_tvm_session *session) {
    char path[258];
    const char *why;
    void *library;
    xnn_tvm_thing *thing;
    if (!local_path(session, path)) return;
    library = xnn_tvm_load(path, &why);
    if (library == NULL) {
        xnn_tvm_refuse(session, "RuntimeError: the library cannot be loaded: ", why);
        return;
    }
    give(session, XNN_TVM_LIBRARY, XNN_TVM_MODULE, library, &thing);
}

/* The kernel that the first two arguments name; NULL when there is none, with an answer only if they make no sense. */
static void *kernel_of(xnn_tvm_session *session, int *is_answered) {
    const xnn_tvm_arg *library = argument(session, 0), *name = argument(session, 1);
    const xnn_tvm_thing *thing = library == NULL ? NULL : xnn_tvm_find(&session->handles, library->handle);
    *is_answered = name == NULL || thing == NULL || thing->kind != XNN_TVM_LIBRARY || !xnn_tvm_is_text(name);
    if (!*is_answered) return xnn_tvm_symbol(thing->pointer, name->bytes, name->length);
    if (name != NULL) xnn_tvm_refuse(session, "ValueError: ", "a function is looked up in a library, by its name");
    return NULL;
}

static void get_kernel(xnn_tvm_session *session) {
    xnn_tvm_thing *thing;
    int is_answered;
    void *kernel = kernel_of(session, &is_answered);
    if (is_answered) return;
    if (kernel == NULL) {
        result_none(session);
    } else {
        give(session, XNN_TVM_KERNEL, XNN_TVM_FUNCTION, kernel, &thing);
    }
}

static int64_t number(const xnn_tvm_arg *arg, int64_t least, int64_t most) {
    int64_t found = arg->value.type == XNN_TVM_INT ? arg->value.is.number : least;
    return found < least ? least : found > most ? most : found;
}

/* Arguments: module, name, device type, device id, number, repeat, min_repeat_ms, limit of timings that are zero,
 * milliseconds of a rest, repeats before one, bytes of cache to flush, function to call before each repeat. */
static void make_timer(xnn_tvm_session *session) {
    const xnn_tvm_arg *args = session->args.is, *before = argument(session, 11);
    xnn_tvm_thing *thing = NULL;
    xnn_tvm_timing timing;
    int is_answered;
    void *kernel;
    if (before == NULL) return;
    kernel = kernel_of(session, &is_answered);
    if (is_answered) return;
    if (kernel == NULL) {
        xnn_tvm_refuse(session, "AttributeError: ", "the library has no such function");
        return;
    }
    timing.flushes = xnn_tvm_same_text(before, "cache_flush_cpu_non_first_arg");
    if (!timing.flushes && before->length > 0) {
        xnn_tvm_refuse(session, "ValueError: ", "f_preproc may be '' or 'cache_flush_cpu_non_first_arg'");
        return;
    }
    timing.number = number(&args[4], 1, 1 << 30);
    timing.repeat = number(&args[5], 1, XNN_TVM_MOST_REPEATS);
    timing.min_repeat_ms = number(&args[6], 0, 600000);
    timing.zero_time_limit = number(&args[7], 1, 1 << 20);
    timing.cooldown_ms = number(&args[8], 0, MOST_COOLDOWN_MS);
    timing.repeats_to_cooldown = number(&args[9], 0, XNN_TVM_MOST_REPEATS);
    timing.flushes |= args[10].value.type == XNN_TVM_INT && args[10].value.is.number > 0;
    give(session, XNN_TVM_TIMER, XNN_TVM_FUNCTION, kernel, &thing);
    if (thing != NULL) thing->timing = timing;
}

/* Numbers in [1, 2) for floats, 0 and 1 for integers, which may be indices. */
static void fill_element(uint8_t *at, const xnn_tvm_dtype *dtype, uint32_t random) {
    uint64_t bits = random & 1;
    if (dtype->code == 2) { /* kDLFloat */
        bits = dtype->bits == 64   ? UINT64_C(0x3ff) << 52 | (uint64_t)random << 20
               : dtype->bits == 32 ? 0x3f800000u | random >> 9
                                   : 0x3c00u | random >> 22;
    } else if (dtype->code == 4) { /* kDLBfloat */
        bits = 0x3f80u | random >> 25;
    }
    memcpy(at, &bits, dtype->bits / 8u);
}

static void fill(xnn_tvm_session *session) {
    xnn_tvm_arg *arg = argument(session, 0);
    uint32_t random = 12345;
    uint64_t bytes, i;
    size_t step;
    uint8_t *data;
    if (arg == NULL) return;
    if (arg->value.type != XNN_TVM_TENSOR || !xnn_tvm_place(&session->handles, arg) ||
        !xnn_tvm_tensor_bytes(&arg->tensor, &bytes)) {
        xnn_tvm_refuse(session, "ValueError: ", "a tensor has no memory here, or does not lie within it");
        return;
    }
    data = (uint8_t *)arg->tensor.data + arg->tensor.byte_offset;
    step = arg->tensor.dtype.bits / 8u;
    if (step == 0 || step > 8 || (step & (step - 1)) != 0) {
        memset(data, 1, (size_t)bytes);
    } else {
        for (i = 0; i + step <= bytes; i += step) {
            random = random * 1664525u + 1013904223u;
            fill_element(data + i, &arg->tensor.dtype, random);
        }
    }
    result_none(session);
}

void xnn_tvm_call_function(xnn_tvm_session *session, int which) {
    char path[258];
    switch (which) {
        case UPLOAD:
            upload(session);
            return;
        case DOWNLOAD:
            download(session);
            return;
        case REMOVE:
            /* TVM's runner removes "", too: the whole folder, which goes with the session anyway. */
            if (argument(session, 0) == NULL || (session->args.is[0].length > 0 && !local_path(session, path))) return;
            if (session->args.is[0].length > 0) unlink(path);
            result_none(session);
            return;
        case LOAD:
            load(session);
            return;
        case GET_KERNEL:
            get_kernel(session);
            return;
        case TIME:
            make_timer(session);
            return;
        default:
            fill(session);
    }
}
