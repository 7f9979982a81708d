/* wire.c: see wire.h. */
#include "wire.h"

enum { FINISH_MS = 500, PEER_GONE_MS = 20000, KEEP_IDLE_S = 10, KEEP_EVERY_S = 5, KEEP_TRIES = 3 };

uint64_t xnn_now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int wait_for(int file, short what, uint64_t until) {
    for (;;) {
        struct pollfd one = {0, 0, 0};
        uint64_t now = xnn_now_ms();
        int ready;
        one.fd = file;
        one.events = what;
        if (now >= until) return 0;
        ready = poll(&one, 1, (int)(until - now));
        if (ready > 0) return 1;
        if (ready < 0 && errno != EINTR) return 0;
    }
}

int xnn_wire_read(xnn_wire *wire, void *data, size_t bytes, uint32_t within_ms) {
    uint64_t until = xnn_now_ms() + within_ms;
    char *next = data;
    while (bytes > 0) {
        ssize_t got;
        if (!wait_for(wire->file, POLLIN, until)) return 0;
        got = recv(wire->file, next, bytes, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) return 0;
        if (got > 0) {
            next += got;
            bytes -= (size_t)got;
        }
    }
    return 1;
}

int xnn_wire_write(xnn_wire *wire, const void *data, size_t bytes, uint32_t within_ms) {
    const char *next = data;
    while (bytes > 0) {
        ssize_t sent = send(wire->file, next, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR && errno != EAGAIN) return 0;
        if (sent > 0) {
            next += sent;
            bytes -= (size_t)sent;
        } else if (!wait_for(wire->file, POLLOUT, xnn_now_ms() + within_ms)) {
            return 0;
        }
    }
    return 1;
}

int xnn_wire_wait(xnn_wire *wire, int other, uint32_t within_ms) {
    struct pollfd both[2] = {{0, POLLIN, 0}, {0, POLLIN, 0}};
    int ready, found = 0;
    both[0].fd = wire->file;
    both[1].fd = other; /* poll() passes over negative ones */
    ready = poll(both, 2, (int)within_ms);
    if (ready <= 0) return 0;
    if (both[0].revents & POLLIN) {
        char byte;
        found |= recv(wire->file, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0 ? XNN_WIRE_GONE : XNN_WIRE_READABLE;
    } else if (both[0].revents) {
        found |= XNN_WIRE_GONE;
    }
    if (both[1].revents) found |= XNN_OTHER_READABLE;
    return found;
}

void xnn_wire_finish(xnn_wire *wire) {
    char unread[1024];
    uint64_t until = xnn_now_ms() + FINISH_MS;
    if (shutdown(wire->file, SHUT_WR) != 0) return;
    while (wait_for(wire->file, POLLIN, until) && recv(wire->file, unread, sizeof unread, MSG_DONTWAIT) > 0) continue;
}

int xnn_read_address(const char *text, uint32_t *address) {
    uint8_t bytes[4];
    int i;
    for (i = 0; i < 4; i++) {
        unsigned n = 0;
        int digits = 0;
        while (*text >= '0' && *text <= '9' && digits < 3) {
            n = n * 10 + (unsigned)(*text++ - '0');
            digits++;
        }
        if (digits == 0 || n > 255 || *text != (i < 3 ? '.' : 0)) return 0;
        bytes[i] = (uint8_t)n;
        text += i < 3;
    }
    memcpy(address, bytes, 4);
    return 1;
}

static uint16_t swap16(uint16_t n) {
    uint8_t bytes[2];
    bytes[0] = (uint8_t)(n >> 8);
    bytes[1] = (uint8_t)n;
    memcpy(&n, bytes, 2);
    return n;
}

int xnn_listen(const char *address, uint16_t *port) {
    struct sockaddr_in where;
    socklen_t bytes = sizeof where;
    int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    memset(&where, 0, sizeof where);
    where.sin_family = AF_INET;
    where.sin_port = swap16(*port);
    if (listener < 0) return -1;
    fcntl(listener, F_SETFD, FD_CLOEXEC);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (!xnn_read_address(address, &where.sin_addr.s_addr) ||
        bind(listener, (const struct sockaddr *)&where, sizeof where) != 0 || listen(listener, 16) != 0 ||
        getsockname(listener, (struct sockaddr *)&where, &bytes) != 0) {
        close(listener);
        return -1;
    }
    *port = swap16(where.sin_port);
    return listener;
}

int xnn_accept(int listener) {
    static const int levels[6][3] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},          {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE_S}, {IPPROTO_TCP, TCP_KEEPINTVL, KEEP_EVERY_S},
        {IPPROTO_TCP, TCP_KEEPCNT, KEEP_TRIES},   {IPPROTO_TCP, TCP_USER_TIMEOUT, PEER_GONE_MS},
    };
    int i, file = accept(listener, NULL, NULL);
    if (file < 0) return -1;
    fcntl(file, F_SETFD, FD_CLOEXEC);
    /* Each is a help and none a need: an old kernel may not know the last one. */
    for (i = 0; i < 6; i++) setsockopt(file, levels[i][0], levels[i][1], &levels[i][2], sizeof(int));
    return file;
}

int xnn_connect(const char *address, uint16_t port, uint32_t within_ms) {
    struct sockaddr_in where;
    long patience[2]; /* struct timeval of 64-bit Linux: how long connect() and send() may take */
    int one = 1, file = socket(AF_INET, SOCK_STREAM, 0);
    if (file < 0) return -1;
    memset(&where, 0, sizeof where);
    where.sin_family = AF_INET;
    where.sin_port = swap16(port);
    patience[0] = (long)(within_ms / 1000);
    patience[1] = (long)(within_ms % 1000) * 1000;
    fcntl(file, F_SETFD, FD_CLOEXEC);
    setsockopt(file, SOL_SOCKET, SO_SNDTIMEO, patience, sizeof patience);
    setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (!xnn_read_address(address, &where.sin_addr.s_addr) ||
        connect(file, (const struct sockaddr *)&where, sizeof where) != 0) {
        close(file);
        return -1;
    }
    return file;
}

int xnn_random(void *data, size_t bytes) {
    int file = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    char *next = data;
    while (file >= 0 && bytes > 0) {
        ssize_t got = read(file, next, bytes);
        if (got <= 0 && errno != EINTR) break;
        if (got > 0) {
            next += got;
            bytes -= (size_t)got;
        }
    }
    if (file >= 0) close(file);
    return file >= 0 && bytes == 0;
}
