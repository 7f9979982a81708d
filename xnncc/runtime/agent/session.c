/* session.c: see session.h. */
#include "session.h"

#include "child.h"
#include "job.h"
#include "telemetry.h"

static const char magic[] = "XNNAGENT";

uint8_t *xnn_body_out(xnn_session *session) { return session->out + XNN_HEADER; }

int xnn_send(xnn_session *session, uint8_t type, size_t bytes) {
    if (session->is_over) return 0;
    xnn_write_header(session->out, type, (uint32_t)bytes);
    xnn_frame_code(session->key, XNN_FROM_AGENT, session->sent++, session->out, XNN_HEADER + bytes,
                   session->out + XNN_HEADER + bytes);
    /* Header, body and code in one go: in pieces each reply would wait for the other side's delayed acknowledgement. */
    session->is_over =
        !xnn_wire_write(&session->wire, session->out, XNN_HEADER + bytes + XNN_SHA_BYTES, XNN_SEND_MS);
    return !session->is_over;
}

void xnn_send_error(xnn_session *session, uint16_t kind, const char *words) {
    uint8_t *body = xnn_body_out(session);
    size_t length = strlen(words);
    body[0] = (uint8_t)kind;
    body[1] = (uint8_t)(kind >> 8);
    length = length > 500 ? 500 : length;
    memcpy(body + 2, words, length);
    xnn_send(session, XNN_ERROR, 2 + length);
}

/* The client has broken the protocol: say it once and close. */
static int refuse(xnn_session *session, const char *words) {
    xnn_send_error(session, XNN_E_PROTOCOL, words);
    session->is_over = 1;
    return 0;
}

int xnn_receive(xnn_session *session, uint8_t *type, xnn_cursor *body) {
    uint8_t wanted[XNN_SHA_BYTES];
    uint32_t bytes;
    if (session->is_over) return 0;
    if (!xnn_wire_read(&session->wire, session->in, XNN_HEADER, XNN_FRAME_MS)) return !(session->is_over = 1);
    if (!xnn_read_header(session->in, type, &bytes)) return refuse(session, "this is no frame, or it is too long");
    if (!xnn_wire_read(&session->wire, session->in + XNN_HEADER, bytes + XNN_SHA_BYTES, XNN_FRAME_MS)) {
        session->is_over = 1;
        return 0;
    }
    xnn_frame_code(session->key, XNN_FROM_CLIENT, session->received++, session->in, XNN_HEADER + bytes, wanted);
    if (!xnn_same_digest(wanted, session->in + XNN_HEADER + bytes)) {
        return refuse(session, "a frame was altered, repeated or left out on its way");
    }
    body->next = session->in + XNN_HEADER;
    body->left = bytes;
    body->is_bad = 0;
    return 1;
}

void xnn_send_status(xnn_session *session, uint8_t when) {
    uint8_t *body = xnn_body_out(session);
    xnn_text facts;
    body[0] = when;
    xnn_text_start(&facts, (char *)body + 1, 1 << 14);
    xnn_status(&facts, session->agent->root);
    xnn_send(session, XNN_FACTS, 1 + facts.length);
}

static void describe(xnn_session *session) {
    uint8_t *body = xnn_body_out(session);
    xnn_text facts;
    body[0] = 0;
    xnn_text_start(&facts, (char *)body + 1, 1 << 14);
    xnn_text_add(&facts, "protocol ");
    xnn_text_add_number(&facts, XNN_PROTOCOL);
#ifdef XNN_LOADS_NONE
    xnn_text_add(&facts, "\nloads_libraries 0\n");
#else
    xnn_text_add(&facts, "\nloads_libraries 1\n");
#endif
    xnn_describe(&facts, session->agent->root, session->agent->name);
    xnn_send(session, XNN_FACTS, 1 + facts.length);
}

static void answer_yes_no(xnn_session *session, int is_yes) {
    xnn_body_out(session)[0] = (uint8_t)(is_yes != 0);
    xnn_send(session, XNN_OK, 1);
}

static void end_upload(xnn_session *session) {
    const char *why;
    int kind = xnn_store_end(&session->store, &why);
    if (kind == XNN_STORE_OK) {
        answer_yes_no(session, 1);
    } else {
        xnn_send_error(session, (uint16_t)kind, why);
    }
}

/* PUT: sha, u64 bytes. Answered when all DATA is there. */
static void begin_upload(xnn_session *session, xnn_cursor *body) {
    const uint8_t *sha = xnn_take(body, XNN_SHA_BYTES);
    uint64_t bytes = xnn_take64(body);
    if (sha == NULL || body->is_bad || body->left != 0 || session->store.upload_left > 0) {
        refuse(session, "PUT has another form, or comes in the middle of another one");
        return;
    }
    xnn_store_begin(&session->store, sha, bytes);
    if (bytes == 0) end_upload(session);
}

static void take_data(xnn_session *session, xnn_cursor *body) {
    if (body->left == 0 || !xnn_store_add(&session->store, body->next, body->left)) {
        refuse(session, "DATA without a PUT, or more than it announced");
    } else if (session->store.upload_left == 0) {
        end_upload(session);
    }
}

static void act(xnn_session *session, uint8_t type, xnn_cursor *body) {
    const uint8_t *sha;
    if (session->store.upload_left > 0 && type != XNN_DATA) {
        refuse(session, "a PUT lacks some of its DATA");
        return;
    }
    if (type == XNN_DATA) {
        take_data(session, body);
    } else if (type == XNN_PUT) {
        begin_upload(session, body);
    } else if (type == XNN_JOB) {
        xnn_do_job(session, body);
    } else if (type == XNN_HAS) {
        sha = xnn_take(body, XNN_SHA_BYTES);
        if (sha == NULL || body->left != 0) {
            refuse(session, "HAS has another form");
        } else {
            answer_yes_no(session, xnn_store_has(&session->store, sha));
        }
    } else if (body->left != 0) {
        refuse(session, "this frame has no body");
    } else if (type == XNN_DESCRIBE) {
        describe(session);
    } else if (type == XNN_STATUS) {
        xnn_send_status(session, 0);
    } else if (type == XNN_PING || type == XNN_CANCEL) { /* CANCEL: the job had ended before it came */
        if (type == XNN_PING) answer_yes_no(session, 1);
    } else {
        refuse(session, "there is no such frame");
    }
}

static void write_magic(uint8_t *at, uint32_t status) {
    memcpy(at, magic, 8);
    xnn_put32(at + 8, XNN_PROTOCOL);
    xnn_put32(at + 12, status);
}

/* Returns the lock that the session holds, or -1. */
static int shake_hands(xnn_session *session) {
    uint8_t hello[XNN_HELLO], nonces[2 * XNN_NONCE], given[XNN_SHA_BYTES], wanted[XNN_SHA_BYTES];
    const xnn_agent *agent = session->agent;
    uint32_t status = XNN_FINE;
    int lock;
    if (!xnn_wire_read(&session->wire, hello, sizeof hello, XNN_HANDSHAKE_MS)) return -1;
    memcpy(nonces, hello + 16, XNN_NONCE);
    if (memcmp(hello, magic, 8) != 0 || xnn_get32(hello + 12) != 0) {
        status = XNN_NO_HELLO;
    } else if (xnn_get32(hello + 8) != XNN_PROTOCOL) {
        status = XNN_OTHER_VERSION;
    }
    if (!xnn_random(nonces + XNN_NONCE, XNN_NONCE)) return -1;
    write_magic(hello, status);
    memcpy(hello + 16, nonces + XNN_NONCE, XNN_NONCE);
    if (!xnn_wire_write(&session->wire, hello, sizeof hello, XNN_HANDSHAKE_MS) || status != XNN_FINE) return -1;
    if (!xnn_wire_read(&session->wire, given, sizeof given, XNN_HANDSHAKE_MS)) return -1;
    xnn_derive(agent->token, agent->token_bytes, "xnncc client", nonces, wanted);
    memset(hello, 0, sizeof hello);
    if (!xnn_same_digest(given, wanted)) {
        xnn_put32(hello, XNN_WRONG_TOKEN);
        xnn_wire_write(&session->wire, hello, XNN_ANSWER, XNN_HANDSHAKE_MS);
        return -1;
    }
    lock = xnn_hold_device(agent->folder);
    xnn_put32(hello, lock < 0 ? XNN_BUSY : XNN_FINE);
    xnn_derive(agent->token, agent->token_bytes, lock < 0 ? "xnncc busy  " : "xnncc agent ", nonces, hello + 8);
    xnn_derive(agent->token, agent->token_bytes, "xnncc key   ", nonces, session->key);
    if (!xnn_wire_write(&session->wire, hello, XNN_ANSWER, XNN_HANDSHAKE_MS) && lock >= 0) {
        close(lock);
        lock = -1;
    }
    return lock;
}

void xnn_serve(xnn_session *session, xnn_agent *agent, int file) {
    uint8_t type;
    xnn_cursor body;
    int lock;
    memset(session, 0, sizeof *session);
    session->wire.file = file;
    session->agent = agent;
    lock = shake_hands(session);
    if (lock < 0) {
        xnn_wire_finish(&session->wire);
        return;
    }
    if (!xnn_store_open(&session->store, agent->folder, agent->quota_bytes)) {
        xnn_send_error(session, XNN_E_SYSTEM, "the agent's folder cannot be written");
        session->is_over = 1;
    }
    while (!session->is_over) {
        int ready = xnn_wire_wait(&session->wire, -1, XNN_IDLE_MS);
        if (!(ready & XNN_WIRE_READABLE) || !xnn_receive(session, &type, &body)) break;
        act(session, type, &body);
    }
    xnn_store_drop_upload(&session->store);
    xnn_wipe(session->key, sizeof session->key);
    close(lock);
    xnn_wire_finish(&session->wire);
}
