/* options.h: the agent's command line. */
#ifndef XNN_AGENT_OPTIONS_H
#define XNN_AGENT_OPTIONS_H

#include "posix.h"

enum { XNN_LEAST_TOKEN = 16, XNN_MOST_TOKEN = 256 };

typedef struct {
    const char *bind;       /* IPv4 address to listen on */
    int has_port;           /* serve our own protocol */
    uint16_t port;          /* 0: any */
    char folder[256];       /* absolute */
    const char *root;       /* stands before /sys and /proc */
    const char *name;       /* serial to give instead of the system's; "" */
    uint64_t quota_bytes;   /* of the blob store */
    uint8_t token[XNN_MOST_TOKEN];
    size_t token_bytes;
    int serves_tvm;         /* --tvm-rpc or --tracker was given */
    uint16_t tvm_port;      /* 0: any */
    const char *tracker;    /* "HOST:PORT", or NULL */
    const char *key;        /* of the tracker */
} xnn_agent;

/* Read the command line; 0 after saying what is wrong with it. */
int xnn_read_options(xnn_agent *agent, int argc, char **argv);

#endif
