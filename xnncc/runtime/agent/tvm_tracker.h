/* tvm_tracker.h: TVM's tracker, which gives a device to whoever asks for its key (python/tvm/rpc/tracker.py). Messages
 * both ways are i32 length and JSON. */
#ifndef XNN_AGENT_TVM_TRACKER_H
#define XNN_AGENT_TVM_TRACKER_H

#include "text.h"
#include "wire.h"

enum { XNN_TVM_MOST_KEY = 128, XNN_TVM_MATCH = XNN_TVM_MOST_KEY + 32 };

typedef struct {
    char host[16]; /* IPv4 address */
    uint16_t port;
    const char *key;
    uint16_t own_port;         /* where the device is reached */
    int file;                  /* the connection, or -1 */
    uint64_t asked, tried;     /* ms: when the tracker was asked last, and when a connection was tried */
    uint64_t missing_since;    /* ms: the tracker does not have our offer any more; 0: it has */
    char match[XNN_TVM_MATCH]; /* what a client must say: "KEY:0.<random digits>"; "" when nothing is on offer */
} xnn_tvm_tracker;

/* Read "A.B.C.D:PORT"; 0 when it is none. */
int xnn_tvm_tracker_start(xnn_tvm_tracker *tracker, const char *where, const char *key, uint16_t own_port);

/* Keep the device on offer: connect, register, offer, and ask now and then whether the offer still stands. Returns soon,
 * whatever the tracker does. */
void xnn_tvm_tracker_tend(xnn_tvm_tracker *tracker);

/* The offer was taken. */
void xnn_tvm_tracker_taken(xnn_tvm_tracker *tracker);

#endif
