/* wire.h: a TCP connection with deadlines. The fuzzer puts one of its own in this file's place. */
#ifndef XNN_AGENT_WIRE_H
#define XNN_AGENT_WIRE_H

#include "posix.h"

enum { XNN_WIRE_READABLE = 1, XNN_OTHER_READABLE = 2, XNN_WIRE_GONE = 4 };

typedef struct {
    int file;
} xnn_wire;

/* Milliseconds of a clock that nobody sets. */
uint64_t xnn_now_ms(void);

/* Read exactly `bytes` within `within_ms`; 0 when the other side is gone, or too slow. */
int xnn_wire_read(xnn_wire *wire, void *data, size_t bytes, uint32_t within_ms);

/* Write all of it in one go; 0 when the other side is gone, or takes nothing for `within_ms`. */
int xnn_wire_write(xnn_wire *wire, const void *data, size_t bytes, uint32_t within_ms);

/* Wait until the wire or `other` (a file descriptor, -1: none) has something to read, `within_ms` at most; the bits
 * above. XNN_WIRE_GONE: the other side has closed and there is nothing left to read. */
int xnn_wire_wait(xnn_wire *wire, int other, uint32_t within_ms);

/* Say that nothing more will come, and give the other side a moment to read what came: closing at once would throw away
 * words that are still on their way. */
void xnn_wire_finish(xnn_wire *wire);

/* Listen on an IPv4 address ("127.0.0.1") and port (0: any); the file descriptor, or -1. `*port` becomes the port. */
int xnn_listen(const char *address, uint16_t *port);

/* Take the next connection; -1 when there is none. Small frames go at once, and a peer that has silently gone is noticed
 * within half a minute. */
int xnn_accept(int listener);

/* Connect to an IPv4 address ("127.0.0.1") and port within `within_ms`; the file descriptor, or -1. */
int xnn_connect(const char *address, uint16_t port, uint32_t within_ms);

/* Read "A.B.C.D" into network order; 0 when it is none. */
int xnn_read_address(const char *text, uint32_t *address);

/* Fill a buffer with random bytes of the system; 0 when there are none. */
int xnn_random(void *data, size_t bytes);

#endif
