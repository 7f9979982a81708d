/* tvm_rpc.c: see tvm_rpc.h. This process takes connections, registers with the tracker and watches; what a client sends
 * after its first words is read by a child process, a new one for each client, which may crash or hang as it likes. */
#include "child.h"
#include "store.h"
#include "tvm_rpc.h"
#include "tvm_session.h"
#include "tvm_tracker.h"

enum {
    HELLO = 0xff271,
    WRONG_KEY = 0xff273,
    LEAST_KEY = 16,
    MOST_CLIENT_KEY = 1024,
    HELLO_MS = 5000,
    LOOK_MS = 200,
    PACE_MS = 5,
    BUSY_MS = 30000,       /* the device may be held by a client of our own protocol */
    MOST_SESSION_MS = 3600000,
    MOURN_MS = 10000,
    MOST_MOURNED = 256 /* packets that are answered for a child that is no more */
};

static const uint64_t memory_bytes = (uint64_t)4 << 30;
static const uint64_t file_bytes = (uint64_t)512 << 20;
static const char loopback[] = "127.0.0.1";

static xnn_tvm_session session;

int xnn_tvm_check(const struct tvm_options *options) {
    xnn_tvm_tracker tracker;
    const char *next;
    size_t length = strlen(options->key);
    for (next = options->key; *next; next++) {
        if (*next <= ' ' || *next > '~' || *next == ':' || *next == '"' || *next == '\\') length = 0;
    }
    if (length < LEAST_KEY || length > XNN_TVM_MOST_KEY) {
        xnn_complain("--key",
                     "TVM's protocol authenticates nobody but by this key: it has 16 to 128 printable characters, "
                     "none of them a space, a colon, a quote or a backslash, and nobody guesses it");
        return 0;
    }
    if (options->tracker != NULL && !xnn_tvm_tracker_start(&tracker, options->tracker, options->key, 0)) {
        xnn_complain(options->tracker, "a tracker is given as A.B.C.D:PORT");
        return 0;
    }
    return 1;
}

/* Read " -timeout=SECONDS" from the end of a client's words, and cut it off; the time in ms. */
static uint64_t take_timeout(char *words) {
    static const char mark[] = " -timeout=";
    const char *next, *found = xnn_find_text(words, mark);
    uint64_t seconds = 0;
    if (found == NULL) return MOST_SESSION_MS;
    words[found - words] = 0;
    for (next = found + sizeof mark - 1; *next >= '0' && *next <= '9' && seconds < MOST_SESSION_MS; next++) {
        seconds = seconds * 10 + (uint64_t)(*next - '0'); /* a fraction is left out */
    }
    seconds = seconds == 0 ? 1 : seconds;
    return seconds * 1000 > MOST_SESSION_MS ? MOST_SESSION_MS : seconds * 1000;
}

/* 1 without telling by its time where two texts differ. */
static int is_same(const char *given, const char *wanted) {
    size_t length = strlen(wanted), i;
    unsigned difference = strlen(given) != length;
    for (i = 0; !difference && i < length; i++) difference |= (unsigned)(given[i] ^ wanted[i]) << 1;
    return difference == 0;
}

/* Take a client's first words: 1 when they are "client:" and what it has to know; *limit_ms is the time it asks for. */
static int greet(xnn_wire *wire, const char *wanted, const char *key, uint64_t *limit_ms) {
    static const char prefix[] = "client:";
    char words[MOST_CLIENT_KEY + 1], own[16 + XNN_TVM_MOST_KEY];
    uint8_t number[8], answer[8 + sizeof own];
    xnn_text text;
    uint32_t length;
    if (!xnn_wire_read(wire, number, 8, HELLO_MS) || xnn_get32(number) != HELLO) return 0;
    length = xnn_get32(number + 4);
    if (length > MOST_CLIENT_KEY || !xnn_wire_read(wire, words, length, HELLO_MS)) return 0;
    words[length] = 0;
    *limit_ms = take_timeout(words);
    if (!wanted[0] || strncmp(words, prefix, sizeof prefix - 1) != 0 || !is_same(words + sizeof prefix - 1, wanted)) {
        xnn_put32(answer, WRONG_KEY);
        xnn_wire_write(wire, answer, 4, HELLO_MS);
        return 0;
    }
    xnn_text_start(&text, own, sizeof own);
    xnn_text_add(&text, "server:");
    xnn_text_add(&text, key);
    xnn_put32(answer, HELLO);
    xnn_put32(answer + 4, (uint32_t)text.length);
    memcpy(answer + 8, own, text.length);
    return xnn_wire_write(wire, answer, 8 + text.length, HELLO_MS);
}

static int serve_session(void *data) {
    (void)data;
    xnn_tvm_session_serve(&session);
    return 0;
}

/* Answer in a dead child's place, so that the client hears why: it has a request open, and may have more to say. */
static void mourn(const char *why) {
    uint64_t until = xnn_now_ms() + MOURN_MS;
    int i;
    for (i = 0; i < MOST_MOURNED && xnn_now_ms() < until; i++) {
        uint8_t size[8], piece[4096];
        uint64_t left;
        xnn_tvm_exception(&session.out, why, "");
        if (!xnn_tvm_send(&session.out, &session.wire)) return;
        do {
            if (!xnn_wire_read(&session.wire, size, sizeof size, MOURN_MS)) return;
            left = (uint64_t)xnn_get32(size + 4) << 32 | xnn_get32(size);
        } while (left == 0);
        if (left < 4 || left > XNN_TVM_MOST_PACKET || !xnn_wire_read(&session.wire, piece, 4, MOURN_MS)) return;
        if (xnn_get32(piece) == XNN_TVM_SHUTDOWN) return;
        for (left -= 4; left > 0;) {
            size_t next = left < sizeof piece ? (size_t)left : sizeof piece;
            if (!xnn_wire_read(&session.wire, piece, next, MOURN_MS)) return;
            left -= next;
        }
    }
}

/* Let the child work until it ends or its time is over, and throw away what its kernels say. */
static void watch(xnn_child *child, uint64_t limit_ms) {
    char said[4096], words[96];
    uint64_t until = xnn_now_ms() + limit_ms;
    int is_late = 0;
    xnn_text text;
    while (!xnn_child_has_ended(child)) {
        is_late = xnn_now_ms() > until;
        if (is_late) break;
        if (xnn_child_read(child, said, sizeof said) <= 0) usleep(PACE_MS * 1000);
    }
    xnn_child_stop(child);
    if (!is_late && !child->end.is_signal) return;
    xnn_text_start(&text, words, sizeof words);
    xnn_text_add(&text, is_late ? "RPCSessionTimeoutError: the session's " : "RuntimeError: the kernel was ended by signal ");
    xnn_text_add_number(&text, is_late ? limit_ms / 1000 : (uint64_t)child->end.code);
    if (is_late) xnn_text_add(&text, " s on the device are over");
    mourn(words);
}

static void serve_client(const struct tvm_options *options, uint64_t limit_ms) {
    xnn_limits limits;
    xnn_child child;
    char folder[XNN_PATH];
    uint64_t number, until = xnn_now_ms() + BUSY_MS;
    xnn_text name;
    int lock;
    while ((lock = xnn_hold_device(options->folder)) < 0 && xnn_now_ms() < until) usleep(LOOK_MS * 1000);
    memset(&limits, 0, sizeof limits);
    limits.memory_bytes = memory_bytes;
    limits.file_bytes = file_bytes;
    if (lock < 0 || !xnn_random(&number, sizeof number)) {
        mourn("RPCError: the device is held by another client");
        if (lock >= 0) close(lock);
        return;
    }
    xnn_text_start(&name, folder, sizeof folder);
    xnn_text_add(&name, options->folder);
    xnn_text_add(&name, "/job-tvm-"); /* job-*: an agent that is started again removes it */
    xnn_text_add_number(&name, number);
    session.handles.top = 0;
    if (name.is_cut || mkdir(folder, 0700) != 0 ||
        !xnn_child_start(&child, &limits, folder, session.wire.file, serve_session, NULL)) {
        mourn("RPCError: the agent's folder cannot be written, or the system gives no process");
    } else {
        watch(&child, limit_ms);
    }
    xnn_remove_folder(folder);
    close(lock);
}

int xnn_tvm_serve(const struct tvm_options *options) {
    xnn_tvm_tracker tracker;
    uint16_t port = options->port;
    int listener;
    if (!xnn_tvm_check(options)) return 2;
    listener = xnn_listen(loopback, &port);
    if (listener < 0) {
        xnn_complain("--tvm-rpc", "this port of 127.0.0.1 cannot be listened on");
        return 1;
    }
    if (options->tracker != NULL) xnn_tvm_tracker_start(&tracker, options->tracker, options->key, port);
    signal(SIGPIPE, SIG_IGN);
    xnn_say_port("tvm-rpc", port);
    for (;;) {
        struct pollfd one = {0, POLLIN, 0};
        uint64_t limit_ms;
        one.fd = listener;
        if (options->tracker != NULL) xnn_tvm_tracker_tend(&tracker);
        if (poll(&one, 1, LOOK_MS) <= 0) continue;
        session.wire.file = xnn_accept(listener);
        if (session.wire.file < 0) continue;
        if (greet(&session.wire, options->tracker != NULL ? tracker.match : options->key, options->key, &limit_ms)) {
            if (options->tracker != NULL) xnn_tvm_tracker_taken(&tracker);
            serve_client(options, limit_ms);
            xnn_wire_finish(&session.wire);
        }
        close(session.wire.file);
    }
}
