/* plain_io.h: what our programs on devices need of input, output and memory, without stdio: the same source runs on glibc
 * and on bionic. A failure is a sentence on stdout and exit code 1. */
#ifndef XNN_PLAIN_IO_H
#define XNN_PLAIN_IO_H

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static inline void say(const char *text) {
    size_t done = 0, n = strlen(text);
    while (done < n) {
        ssize_t wrote = write(1, text + done, n - done);
        if (wrote <= 0) exit(1);
        done += (size_t)wrote;
    }
}

static inline void fail(const char *what, const char *why) {
    say(what);
    say(": ");
    say(why);
    say("\n");
    exit(1);
}

static inline void say_number(uint64_t n, char end) {
    char digits[24], *p = digits + sizeof digits - 2;
    p[0] = end;
    p[1] = 0;
    do *--p = (char)('0' + n % 10);
    while (n /= 10);
    say(p);
}

static inline uint64_t parse_number(const char **text) {
    uint64_t n = 0;
    while (**text >= '0' && **text <= '9') n = n * 10 + (uint64_t)(*(*text)++ - '0');
    return n;
}

static inline void *allocate(size_t bytes) {
    void *memory = NULL;
    if (posix_memalign(&memory, 64, bytes ? bytes : 64)) fail("runner", "out of memory");
    return memory;
}

/* Returns the whole file with a zero byte behind it. */
static inline char *read_file(const char *path, size_t *bytes) {
    int file = open(path, O_RDONLY);
    off_t length = file < 0 ? -1 : lseek(file, 0, SEEK_END);
    char *content;
    size_t done = 0;
    if (length < 0 || lseek(file, 0, SEEK_SET) < 0) fail(path, "cannot be read");
    content = allocate((size_t)length + 1);
    while (done < (size_t)length) {
        ssize_t got = read(file, content + done, (size_t)length - done);
        if (got <= 0) fail(path, "cannot be read");
        done += (size_t)got;
    }
    content[length] = 0;
    close(file);
    *bytes = (size_t)length;
    return content;
}

static inline void write_bytes(int file, const void *data, size_t bytes) {
    size_t done = 0;
    while (done < bytes) {
        ssize_t wrote = write(file, (const char *)data + done, bytes - done);
        if (wrote <= 0) fail("outputs", "cannot be written");
        done += (size_t)wrote;
    }
}

static inline uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif
