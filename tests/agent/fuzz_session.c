/* fuzz_session.c: feeds the agent's session with frames that an honest client would not send.
 *
 *     fuzz_session SEED FRAMES FOLDER
 *
 * The session, the frames, the store and the reading of jobs are the agent's own files; the wire, the child process and
 * the telemetry are played here. Most frames are sealed with the right key, or nothing behind the code would be tested:
 * a frame is one of an honest client with numbers replaced by hurtful ones, bytes changed, or cut. Everything that the
 * agent sends is checked: well-formed, sealed, numbered. Prints how many frames of each kind came to what. */
#include <assert.h>
#include <stdio.h>

#include "child.h"
#include "job.h"
#include "session.h"
#include "telemetry.h"

static const uint8_t token[] = "the token of the fuzzer";
static uint64_t state;
static uint8_t script[1 << 20]; /* what the client sends in one session */
static size_t script_bytes, script_at;
static uint8_t nonces[2 * XNN_NONCE], key[XNN_SHA_BYTES];
static uint64_t answers, sealed, taken; /* taken: frames that the agent has begun to read */
static uint64_t came[256]; /* frames that the agent sent, by type */
static size_t handshake_left;
static char folder[128];

static uint32_t draw(uint32_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16) % below;
}

/* ---- the wire ---- */
static uint64_t now;
uint64_t xnn_now_ms(void) { return now += draw(8) == 0 ? draw(2000) : 1; }

int xnn_wire_read(xnn_wire *wire, void *data, size_t bytes, uint32_t within_ms) {
    (void)wire, (void)within_ms;
    if (bytes > script_bytes - script_at) {
        script_at = script_bytes;
        return 0;
    }
    taken += bytes == XNN_HEADER && handshake_left == 0;
    memcpy(data, script + script_at, bytes);
    script_at += bytes;
    return 1;
}

int xnn_wire_write(xnn_wire *wire, const void *data, size_t bytes, uint32_t within_ms) {
    uint8_t code[XNN_SHA_BYTES], type;
    uint32_t length;
    (void)wire, (void)within_ms;
    if (handshake_left > 0) {
        assert(bytes == (handshake_left == 2 ? XNN_HELLO : XNN_ANSWER));
        handshake_left--;
        return 1;
    }
    assert(xnn_read_header(data, &type, &length) && bytes == XNN_HEADER + length + XNN_SHA_BYTES && type >= 128);
    xnn_frame_code(key, XNN_FROM_AGENT, answers++, data, XNN_HEADER + length, code);
    assert(memcmp(code, (const uint8_t *)data + XNN_HEADER + length, sizeof code) == 0);
    came[type]++;
    return draw(200) != 0; /* the client may be gone at any time */
}

int xnn_wire_wait(xnn_wire *wire, int other, uint32_t within_ms) {
    int found = script_at < script_bytes ? XNN_WIRE_READABLE : draw(4) == 0 ? 0 : XNN_WIRE_GONE;
    (void)wire, (void)within_ms;
    if (other >= 0 && draw(20)) found = XNN_OTHER_READABLE | (draw(20) ? 0 : found);
    return found;
}

void xnn_wire_finish(xnn_wire *wire) { (void)wire; }

int xnn_random(void *data, size_t bytes) {
    memcpy(data, nonces + XNN_NONCE, bytes);
    return draw(1000) != 0;
}

/* ---- the child ---- */
int xnn_child_start(xnn_child *child, const xnn_limits *limits, const char *place, int keep, xnn_body body, void *data) {
    char path[XNN_PATH], content[600] = "what a job wrote";
    int file;
    (void)limits, (void)keep, (void)body, (void)data;
    memset(child, 0, sizeof *child);
    if (draw(50) == 0) return 0;
    child->id = 1 + (pid_t)draw(6); /* looks until it ends */
    child->output = 1000000;
    if (draw(2)) {
        assert(xnn_join(path, sizeof path, place, "/outputs", ""));
        file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        assert(file >= 0 && write(file, content, draw(sizeof content)) >= 0);
        close(file);
    }
    return 1;
}
ssize_t xnn_child_read(xnn_child *child, void *data, size_t room) {
    size_t bytes = draw(40) ? draw(100) : room;
    if (child->output < 0) return -1;
    if (draw(5) == 0) {
        child->output = -1;
        return -1;
    }
    if (draw(3) == 0) return 0;
    memset(data, 'x', bytes);
    return (ssize_t)bytes;
}
int xnn_child_has_ended(xnn_child *child) {
    if (child->id > 0) child->id--;
    child->end.is_signal = (int)draw(2);
    child->end.code = (int)draw(30);
    return child->id == 0;
}
uint32_t xnn_child_cpu_ms(const xnn_child *child) { return child->id == 0 ? 0 : draw(20000); }
void xnn_child_stop(xnn_child *child) {
    child->id = 0;
    child->output = -1;
}
int xnn_hold_device(const char *place) {
    (void)place;
    return draw(100) ? open("/dev/null", O_RDONLY) : -1;
}
void xnn_remove_folder(const char *path) {
    char inner[XNN_PATH];
    assert(xnn_join(inner, sizeof inner, path, "/outputs", ""));
    unlink(inner);
    rmdir(path);
}
int xnn_measure_main(int argc, char **argv) { return (void)argc, (void)argv, abort(), 1; }
int xnn_runner_main(int argc, char **argv) { return (void)argc, (void)argv, abort(), 1; }

/* ---- the telemetry ---- */
void xnn_status(xnn_text *facts, const char *root) {
    (void)root;
    xnn_text_add(facts, "load 1\n");
    if (draw(50) == 0) {
        while (!facts->is_cut) xnn_text_add_plain(facts, "zone 4 \x01\xff", 20);
    }
}
void xnn_describe(xnn_text *facts, const char *root, const char *name) {
    (void)name;
    xnn_status(facts, root);
}

/* ---- the client ---- */
enum { BLOBS = 6, MOST_BLOB = 3000 };
static uint8_t blobs[BLOBS][MOST_BLOB], names[BLOBS][XNN_SHA_BYTES];
static uint32_t blob_bytes[BLOBS];

static void make_blobs(void) {
    uint32_t i, k;
    for (i = 0; i < BLOBS; i++) {
        xnn_sha256 hash;
        blob_bytes[i] = i == 0 ? 0 : draw(MOST_BLOB);
        for (k = 0; k < blob_bytes[i]; k++) blobs[i][k] = (uint8_t)draw(256);
        xnn_sha256_start(&hash);
        xnn_sha256_add(&hash, blobs[i], blob_bytes[i]);
        xnn_sha256_end(&hash, names[i]);
    }
}

static const uint64_t hurtful[] = {0, 1, 2, 127, 128, 255, 256, 65535, 65536, 1u << 18, (1u << 18) + 1, 1u << 31,
                                   UINT32_MAX, (uint64_t)1 << 32, INT64_MAX, UINT64_MAX};

static size_t damage(uint32_t rarely, uint8_t *body, size_t bytes, size_t room) {
    uint32_t times = draw(rarely) == 0 ? 1 + draw(3) : 0;
    while (times-- > 0) {
        uint64_t number = hurtful[draw(sizeof hurtful / sizeof *hurtful)];
        size_t width = (size_t)1 << draw(4), at = bytes ? draw((uint32_t)bytes) : 0, i;
        switch (draw(6)) {
        case 0: /* a byte */
            if (bytes) body[at] ^= (uint8_t)(1u << draw(8));
            break;
        case 1: /* cut */
            bytes = at;
            break;
        case 2: /* longer */
            for (i = 1 + draw(40); i > 0 && bytes < room; i--) body[bytes++] = (uint8_t)draw(256);
            break;
        default: /* a number; most lie in the first 64 bytes */
            if (bytes && draw(2)) at = draw(bytes < 64 ? (uint32_t)bytes : 64);
            for (i = 0; i < width && at + i < bytes; i++) body[at + i] = (uint8_t)(number >> 8 * i);
        }
    }
    return bytes;
}

static size_t job(uint8_t *body) {
    static const char *const roles[] = {"library", "package", "jobs", "inputs", "regions", "program", "lib", "../x"};
    static const uint8_t files[5][4] = {{0}, {0, 1, 2, 9}, {0, 1, 3, 9}, {0, 1, 3, 9}, {0, 1, 3, 4}};
    static const uint8_t arguments[] = {0, 3, 2, 4, 2};
    uint32_t kind = 1 + draw(4), i, k;
    uint8_t *at = body + 56;
    memset(body, 0, 56);
    body[0] = (uint8_t)kind;
    body[2] = (uint8_t)(1 + draw(8));
    for (i = 0; i < 4 && files[kind][i] != 9; i++) body[4]++;
    if (draw(8) == 0) body[4]++;
    body[5] = arguments[kind];
    xnn_put64(body + 32, draw(4) ? 1 << 20 : draw(1000)); /* output_bytes */
    for (k = 0; k < 3; k++) xnn_put32(body + 44 + 4 * k, draw(3) ? 0 : draw(5000));
    for (i = 0; i < body[4]; i++) {
        uint32_t role = i < 4 && files[kind][i] != 9 ? files[kind][i] : 5, length;
        if (draw(40) == 0) role = draw(8);
        length = (uint32_t)strlen(roles[role]);
        *at++ = (uint8_t)length;
        memcpy(at, roles[role], length);
        memcpy(at + length, names[draw(BLOBS)], XNN_SHA_BYTES);
        at += length + XNN_SHA_BYTES;
    }
    for (i = 0; i < body[5]; i++) {
        uint32_t length = draw(100) ? draw(30) : 16380 + draw(8);
        *at++ = (uint8_t)length;
        *at++ = (uint8_t)(length >> 8);
        memset(at, 'a', length);
        at += length;
    }
    return (size_t)(at - body);
}

static void add_frame(uint8_t type, const uint8_t *body, size_t bytes) {
    uint8_t *frame = script + script_bytes;
    static const uint8_t empty[1];
    if (sizeof script - script_bytes < XNN_HEADER + bytes + XNN_SHA_BYTES) return;
    xnn_write_header(frame, type, (uint32_t)bytes);
    memcpy(frame + XNN_HEADER, bytes ? body : empty, bytes);
    if (draw(600) == 0) bytes = damage(1, frame, XNN_HEADER, XNN_HEADER) ? bytes : bytes; /* the header itself */
    xnn_frame_code(key, XNN_FROM_CLIENT, sealed++, frame, XNN_HEADER + bytes, frame + XNN_HEADER + bytes);
    script_bytes += XNN_HEADER + bytes + XNN_SHA_BYTES;
    if (draw(600) == 0) frame[draw((uint32_t)(XNN_HEADER + bytes + XNN_SHA_BYTES))] ^= 1; /* on its way */
    if (draw(600) == 0) script_bytes -= draw((uint32_t)bytes + 20); /* a piece is lost */
}

static void add_upload(void) {
    uint8_t body[XNN_SHA_BYTES + 8 + 64];
    uint32_t i = draw(BLOBS), at = 0;
    memcpy(body, names[draw(40) ? i : draw(BLOBS)], XNN_SHA_BYTES);
    xnn_put64(body + XNN_SHA_BYTES, draw(40) ? blob_bytes[i] : hurtful[draw(16)]);
    add_frame(XNN_PUT, body, damage(100, body, XNN_SHA_BYTES + 8, sizeof body));
    while (at < blob_bytes[i]) {
        uint32_t left = blob_bytes[i] - at, part = draw(2) ? left : 1 + draw(left);
        add_frame(draw(900) ? XNN_DATA : (uint8_t)draw(256), blobs[i] + at, part);
        at += part;
    }
}

static void add_some_frame(void) {
    static uint8_t body[1 << 17];
    switch (draw(12)) {
    case 0:
    case 1:
        add_upload();
        break;
    case 2:
        memcpy(body, names[draw(BLOBS)], XNN_SHA_BYTES);
        add_frame(XNN_HAS, body, damage(60, body, XNN_SHA_BYTES, sizeof body));
        break;
    case 3:
    case 4:
    case 5:
        add_frame(XNN_JOB, body, damage(3, body, job(body), sizeof body));
        break;
    case 6:
        if (draw(3)) break;
        add_frame((uint8_t)(1 + draw(8)), body, draw(4) ? 0 : draw(100)); /* ends most sessions */
        break;
    default:
        add_frame(draw(30) == 0 ? (uint8_t)draw(256) : draw(4) ? XNN_PING : XNN_STATUS, body, 0);
    }
}

static void play_session(xnn_session *session, xnn_agent *agent) {
    uint32_t i, count = 4 + draw(60);
    for (i = 0; i < sizeof nonces; i++) nonces[i] = (uint8_t)draw(256);
    xnn_derive(token, sizeof token, "xnncc key   ", nonces, key);
    memcpy(agent->token, token, sizeof token); /* a job's child would wipe it; the fake one does not run */
    agent->token_bytes = sizeof token;
    answers = sealed = 0;
    handshake_left = 2;
    memcpy(script, "XNNAGENT", 8);
    xnn_put32(script + 8, XNN_PROTOCOL);
    xnn_put32(script + 12, 0);
    memcpy(script + 16, nonces, XNN_NONCE);
    xnn_derive(token, sizeof token, "xnncc client", nonces, script + XNN_HELLO);
    script_bytes = XNN_HELLO + XNN_SHA_BYTES;
    script_at = 0;
    if (draw(50) == 0) script_bytes = damage(1, script, script_bytes, script_bytes);
    if (draw(4)) {
        for (i = 0; i < BLOBS; i++) add_upload();
    }
    for (i = 0; i < count; i++) add_some_frame();
    xnn_serve(session, agent, -1);
}

int main(int argc, char **argv) {
    static xnn_session session;
    static xnn_agent agent;
    uint64_t frames, sessions = 0;
    int type;
    assert(argc == 4 && strlen(argv[3]) < sizeof folder);
    state = strtoull(argv[1], NULL, 10) * 2654435761u + 88172645463325252u;
    frames = strtoull(argv[2], NULL, 10);
    strcpy(agent.folder, argv[3]);
    agent.root = agent.name = "";
    make_blobs();
    while (taken < frames) {
        agent.quota_bytes = draw(8) ? 20000 : draw(4000);
        play_session(&session, &agent);
        sessions++;
    }
    printf("sessions %llu frames %llu\n", (unsigned long long)sessions, (unsigned long long)taken);
    for (type = 128; type <= XNN_DONE; type++) printf("came %d %llu\n", type, (unsigned long long)came[type]);
    return 0;
}
