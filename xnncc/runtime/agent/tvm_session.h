/* tvm_session.h: one client of TVM's RPC, from its first packet to its last; runs in a process of its own. */
#ifndef XNN_AGENT_TVM_SESSION_H
#define XNN_AGENT_TVM_SESSION_H

#include "tvm_handles.h"

enum { XNN_TVM_IDLE_MS = 3600000 };

typedef struct {
    xnn_wire wire;
    xnn_tvm_handles handles;
    xnn_tvm_args args;
    xnn_tvm_packet out;
    uint8_t *in; /* the packet that is being served */
    size_t in_room;
    int is_over;
} xnn_tvm_session;

/* Serve until the client shuts the session down, goes, or breaks the protocol. Files are put into the working folder. */
void xnn_tvm_session_serve(xnn_tvm_session *session);

/* Give the packet that `session` has read to whom it concerns; session->out is the answer. */
void xnn_tvm_session_act(xnn_tvm_session *session, xnn_cursor *packet);

/* Make an answer of an exception: "what" and "why", one after the other. */
void xnn_tvm_refuse(xnn_tvm_session *session, const char *what, const char *why);

#endif
