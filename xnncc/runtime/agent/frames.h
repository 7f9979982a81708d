/* frames.h: the agent's own protocol, as docs/agent.md writes it down byte by byte. Little-endian throughout.
 *
 *     client -> agent   HELLO    "XNNAGENT", u32 version, u32 0, 32 bytes nonce
 *     agent -> client   WELCOME  "XNNAGENT", u32 version, u32 status, 32 bytes nonce
 *     client -> agent   PROOF    HMAC(token, "xnncc client" + both nonces)
 *     agent -> client   ANSWER   u32 status, u32 0, HMAC(token, "xnncc agent " + both nonces)
 * and then frames in both directions:
 *     u32 body bytes, u8 type, u8 0, u16 0, body, 32 bytes HMAC(key, direction + u64 number + header + body)
 * where key = HMAC(token, "xnncc key   " + both nonces) and number counts the frames of a direction from 0. */
#ifndef XNN_AGENT_FRAMES_H
#define XNN_AGENT_FRAMES_H

#include "sha256.h"

enum {
    XNN_PROTOCOL = 1, /* raise it when a byte changes its meaning */
    XNN_NONCE = 32,
    XNN_HELLO = 48,
    XNN_ANSWER = 40,
    XNN_HEADER = 8,
    XNN_MOST_BODY = 1 << 18,
    XNN_MOST_FILES = 8,
    XNN_MOST_NAME = 32,
    XNN_MOST_ARGUMENTS = 8,
    XNN_MOST_ARGUMENT = 16384
};

enum { XNN_FINE = 0, XNN_OTHER_VERSION = 1, XNN_BUSY = 2, XNN_NO_HELLO = 3, XNN_WRONG_TOKEN = 4 }; /* handshake status */

/* Types of frames: from the client below 128, from the agent from there on. */
enum {
    XNN_DESCRIBE = 1,
    XNN_STATUS = 2,
    XNN_HAS = 3,
    XNN_PUT = 4,
    XNN_DATA = 5,
    XNN_JOB = 6,
    XNN_CANCEL = 7,
    XNN_PING = 8,
    XNN_OK = 128,
    XNN_ERROR = 129,
    XNN_FACTS = 130,
    XNN_OUTPUT = 131,
    XNN_FILE = 132,
    XNN_DONE = 133
};

/* What an ERROR is about. All but the first two leave the session open. */
enum {
    XNN_E_PROTOCOL = 1,
    XNN_E_FULL = 2,
    XNN_E_TOO_LARGE = 3,
    XNN_E_WRONG_SHA = 4,
    XNN_E_MISSING = 5,
    XNN_E_BAD_JOB = 6,
    XNN_E_SYSTEM = 7
};

enum { XNN_FROM_CLIENT = 0, XNN_FROM_AGENT = 1 };

/* Read a header; 0 when it is none: too long, or a reserved byte is set. */
int xnn_read_header(const uint8_t header[XNN_HEADER], uint8_t *type, uint32_t *bytes);
void xnn_write_header(uint8_t header[XNN_HEADER], uint8_t type, uint32_t bytes);

/* The code behind a frame; header and body lie one after the other. */
void xnn_frame_code(const uint8_t key[XNN_SHA_BYTES], int direction, uint64_t number, const uint8_t *frame, size_t bytes,
                    uint8_t code[XNN_SHA_BYTES]);

/* What is derived from the token: `label` has 12 characters. */
void xnn_derive(const uint8_t *token, size_t token_bytes, const char *label, const uint8_t nonces[2 * XNN_NONCE],
                uint8_t result[XNN_SHA_BYTES]);

/* A place in a body that moves as it is read; reading past the end gives zeros and sets is_bad. */
typedef struct {
    const uint8_t *next;
    size_t left;
    int is_bad;
} xnn_cursor;

const uint8_t *xnn_take(xnn_cursor *cursor, size_t bytes); /* NULL past the end */
uint8_t xnn_take8(xnn_cursor *cursor);
uint16_t xnn_take16(xnn_cursor *cursor);
uint32_t xnn_take32(xnn_cursor *cursor);
uint64_t xnn_take64(xnn_cursor *cursor);

void xnn_put32(uint8_t *at, uint32_t number);
void xnn_put64(uint8_t *at, uint64_t number);
uint32_t xnn_get32(const uint8_t *at);

#endif
