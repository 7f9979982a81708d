/* tvm_tracker.c: see tvm_tracker.h. */
#include "tvm_tracker.h"

#include "frames.h"

enum {
    HELLO = 0x2f271,
    PUT = 3,
    UPDATE_INFO = 5,
    GET_PENDING = 7,
    MOST_ANSWER = 1 << 16,
    ANSWER_MS = 2000,
    ASK_MS = 2000,
    TRY_MS = 1000,
    MISSING_MS = 6000 /* a client that was given our offer has so long to come */
};

int xnn_tvm_tracker_start(xnn_tvm_tracker *tracker, const char *where, const char *key, uint16_t own_port) {
    const char *colon = xnn_find_text(where, ":");
    size_t length = colon == NULL ? 0 : (size_t)(colon - where);
    uint64_t port;
    uint32_t address;
    memset(tracker, 0, sizeof *tracker);
    tracker->file = -1;
    tracker->key = key;
    tracker->own_port = own_port;
    if (length == 0 || length >= sizeof tracker->host || !xnn_read_number(colon + 1, 65535, &port)) return 0;
    memcpy(tracker->host, where, length);
    tracker->port = (uint16_t)port;
    return xnn_read_address(tracker->host, &address);
}

static void hang_up(xnn_tvm_tracker *tracker) {
    if (tracker->file >= 0) close(tracker->file);
    tracker->file = -1;
    tracker->match[0] = 0;
    tracker->missing_since = 0;
}

/* Send a message and take the answer; 0 when there is none of a sane size. */
static int ask(xnn_tvm_tracker *tracker, const xnn_text *message, char answer[MOST_ANSWER]) {
    uint8_t out[1024], size[4];
    xnn_wire wire;
    uint32_t length;
    wire.file = tracker->file;
    if (message->is_cut || message->length > sizeof out - 4) return 0;
    xnn_put32(out, (uint32_t)message->length);
    memcpy(out + 4, message->start, message->length);
    if (!xnn_wire_write(&wire, out, 4 + message->length, ANSWER_MS)) return 0;
    if (!xnn_wire_read(&wire, size, sizeof size, ANSWER_MS)) return 0;
    length = xnn_get32(size);
    if (length == 0 || length >= MOST_ANSWER || !xnn_wire_read(&wire, answer, length, ANSWER_MS)) return 0;
    answer[length] = 0;
    return 1;
}

static void begin(xnn_text *message, char *buffer, size_t room, unsigned code) {
    xnn_text_start(message, buffer, room);
    xnn_text_add(message, "[");
    xnn_text_add_number(message, code);
}

static int connect_and_register(xnn_tvm_tracker *tracker, char answer[MOST_ANSWER]) {
    char buffer[512];
    uint8_t hello[4], back[4];
    xnn_text message;
    xnn_wire wire;
    tracker->file = wire.file = xnn_connect(tracker->host, tracker->port, ANSWER_MS);
    if (tracker->file < 0) return 0;
    xnn_put32(hello, HELLO);
    if (!xnn_wire_write(&wire, hello, sizeof hello, ANSWER_MS)) return 0;
    if (!xnn_wire_read(&wire, back, sizeof back, ANSWER_MS) || memcmp(hello, back, sizeof hello) != 0) return 0;
    begin(&message, buffer, sizeof buffer, UPDATE_INFO);
    xnn_text_add(&message, ", {\"key\": \"server:");
    xnn_text_add(&message, tracker->key);
    xnn_text_add(&message, "\", \"addr\": [null, ");
    xnn_text_add_number(&message, tracker->own_port);
    xnn_text_add(&message, "]}]");
    return ask(tracker, &message, answer);
}

static int offer(xnn_tvm_tracker *tracker, char answer[MOST_ANSWER]) {
    char buffer[512];
    uint64_t random[2];
    xnn_text message;
    if (!xnn_random(random, sizeof random)) return 0;
    xnn_text_start(&message, tracker->match, sizeof tracker->match);
    xnn_text_add(&message, tracker->key);
    xnn_text_add(&message, ":0."); /* TVM's own is a random number in [0, 1) */
    xnn_text_add_number(&message, random[0]);
    begin(&message, buffer, sizeof buffer, PUT);
    xnn_text_add(&message, ", \"");
    xnn_text_add(&message, tracker->key);
    xnn_text_add(&message, "\", [");
    xnn_text_add_number(&message, tracker->own_port);
    xnn_text_add(&message, ", \"");
    xnn_text_add(&message, tracker->match);
    xnn_text_add(&message, "\"], null]");
    return ask(tracker, &message, answer);
}

void xnn_tvm_tracker_tend(xnn_tvm_tracker *tracker) {
    static char answer[MOST_ANSWER];
    char buffer[16];
    uint64_t now = xnn_now_ms();
    xnn_text message;
    if (tracker->file < 0) {
        if (tracker->tried != 0 && now - tracker->tried < TRY_MS) return;
        tracker->tried = now;
        if (!connect_and_register(tracker, answer)) hang_up(tracker);
    }
    if (tracker->file < 0 || (tracker->match[0] && now - tracker->asked < ASK_MS)) return;
    if (tracker->match[0]) {
        begin(&message, buffer, sizeof buffer, GET_PENDING);
        xnn_text_add(&message, "]");
        if (!ask(tracker, &message, answer)) {
            hang_up(tracker);
            return;
        }
        if (xnn_find_text(answer, tracker->match) != NULL) {
            tracker->missing_since = 0;
        } else if (tracker->missing_since == 0) {
            tracker->missing_since = now;
        } else if (now - tracker->missing_since > MISSING_MS) {
            xnn_tvm_tracker_taken(tracker); /* by someone who never came */
        }
    }
    if (!tracker->match[0] && !offer(tracker, answer)) hang_up(tracker);
    tracker->asked = xnn_now_ms();
}

void xnn_tvm_tracker_taken(xnn_tvm_tracker *tracker) {
    tracker->match[0] = 0;
    tracker->missing_since = 0;
}
