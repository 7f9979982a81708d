/* tvm_rpc.h: serves TVM's own RPC client (protocol 0.8.0), so that stock runners and trackers work with this device.
 *
 * That protocol has no authentication: whoever says the right key may run code. So it is served only where it is asked
 * for, on loopback and nowhere else, and only by a key that is long enough to be a secret; with a tracker every offer
 * adds 64 random bits to it, which the tracker tells to whoever asks it for a device. */
#ifndef XNN_AGENT_TVM_RPC_H
#define XNN_AGENT_TVM_RPC_H

#include <stdint.h>

struct tvm_options {
    uint16_t port;       /* 0: any; the line "tvm-rpc PORT" on stdout tells which */
    const char *tracker; /* "A.B.C.D:PORT" to register with, or NULL */
    const char *key;     /* 16 to 128 characters */
    const char *folder;  /* the agent's; absolute */
};

/* Look at the options; 0 after saying what is wrong with them. */
int xnn_tvm_check(const struct tvm_options *options);

/* Serve until killed; returns an exit code when it cannot begin. */
int xnn_tvm_serve(const struct tvm_options *options);

#endif
