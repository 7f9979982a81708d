/* session.h: one client from its first byte to its last. */
#ifndef XNN_AGENT_SESSION_H
#define XNN_AGENT_SESSION_H

#include "frames.h"
#include "options.h"
#include "store.h"
#include "text.h"
#include "wire.h"

enum { XNN_SEND_MS = 20000, XNN_FRAME_MS = 20000, XNN_IDLE_MS = 300000, XNN_HANDSHAKE_MS = 5000 };

typedef struct {
    xnn_wire wire;
    xnn_agent *agent;
    uint8_t key[XNN_SHA_BYTES];
    uint64_t received, sent; /* frames so far */
    int is_over;             /* the client is gone, or may not go on */
    xnn_store store;
    uint8_t in[XNN_HEADER + XNN_MOST_BODY + XNN_SHA_BYTES];
    uint8_t out[XNN_HEADER + XNN_MOST_BODY + XNN_SHA_BYTES];
} xnn_session;

/* Serve a connected client until it goes. Nothing it sends is acted on before it has proved that it has the token, and
 * only one session at a time gets past that: `agent->folder` is what they compete for. */
void xnn_serve(xnn_session *session, xnn_agent *agent, int file);

/* Take the next frame, already begun or not; 0 when the session is over. The body lies at session->in + XNN_HEADER. */
int xnn_receive(xnn_session *session, uint8_t *type, xnn_cursor *body);

/* Where the body of the next frame out is put together; XNN_MOST_BODY bytes. */
uint8_t *xnn_body_out(xnn_session *session);

/* Send it; 0 when the session is over. */
int xnn_send(xnn_session *session, uint8_t type, size_t bytes);

/* Send an ERROR with a sentence. */
void xnn_send_error(xnn_session *session, uint16_t kind, const char *words);

/* Send FACTS: "when" is 0 for an answer, 1 before a job, 2 after it. */
void xnn_send_status(xnn_session *session, uint8_t when);

#endif
