/* text.c: see text.h. */
#include "text.h"

void xnn_text_start(xnn_text *text, char *buffer, size_t room) {
    text->start = buffer;
    text->room = room;
    text->length = 0;
    text->is_cut = 0;
    buffer[0] = 0;
}

static void add_byte(xnn_text *text, char byte) {
    if (text->length + 1 >= text->room) {
        text->is_cut = 1;
        return;
    }
    text->start[text->length++] = byte;
    text->start[text->length] = 0;
}

void xnn_text_add(xnn_text *text, const char *words) {
    while (*words) add_byte(text, *words++);
}

void xnn_text_add_plain(xnn_text *text, const char *words, size_t most) {
    for (; most > 0 && *words; most--, words++) add_byte(text, *words < ' ' || *words > 126 ? '?' : *words);
}

void xnn_text_add_number(xnn_text *text, uint64_t number) {
    char digits[24], *p = digits + sizeof digits - 1;
    *p = 0;
    do *--p = (char)('0' + number % 10);
    while (number /= 10);
    xnn_text_add(text, p);
}

void xnn_text_add_signed(xnn_text *text, int64_t number) {
    if (number < 0) xnn_text_add(text, "-");
    xnn_text_add_number(text, number < 0 ? (uint64_t)0 - (uint64_t)number : (uint64_t)number);
}

void xnn_text_add_hex(xnn_text *text, const uint8_t *bytes, size_t count) {
    size_t i;
    for (i = 0; i < count; i++) {
        add_byte(text, "0123456789abcdef"[bytes[i] >> 4]);
        add_byte(text, "0123456789abcdef"[bytes[i] & 15]);
    }
}

int xnn_join(char *path, size_t room, const char *folder, const char *name, const char *rest) {
    xnn_text text;
    xnn_text_start(&text, path, room);
    xnn_text_add(&text, folder);
    xnn_text_add(&text, name);
    xnn_text_add(&text, rest);
    return !text.is_cut;
}

const char *xnn_find_text(const char *text, const char *what) {
    size_t length = strlen(what);
    for (; *text; text++) {
        if (strncmp(text, what, length) == 0) return text;
    }
    return NULL;
}

int xnn_read_number(const char *text, uint64_t most, uint64_t *number) {
    uint64_t n = 0;
    if (*text == 0) return 0;
    for (; *text; text++) {
        if (*text < '0' || *text > '9') return 0;
        if (n > (most - (uint64_t)(*text - '0')) / 10) return 0;
        n = n * 10 + (uint64_t)(*text - '0');
    }
    *number = n;
    return 1;
}

void xnn_complain(const char *what, const char *why) {
    char line[512];
    xnn_text text;
    ssize_t wrote;
    xnn_text_start(&text, line, sizeof line - 1);
    xnn_text_add(&text, "xnncc-agent: ");
    xnn_text_add(&text, what);
    if (*why) xnn_text_add(&text, ": ");
    xnn_text_add(&text, why);
    line[text.length] = '\n';
    wrote = write(2, line, text.length + 1);
    (void)wrote; /* there is nowhere else to say it */
}

void xnn_say_port(const char *what, uint16_t port) {
    char line[32];
    xnn_text text;
    ssize_t wrote;
    xnn_text_start(&text, line, sizeof line);
    xnn_text_add(&text, what);
    xnn_text_add(&text, " ");
    xnn_text_add_number(&text, port);
    xnn_text_add(&text, "\n");
    wrote = write(1, line, text.length);
    (void)wrote; /* whoever started it may not listen any more */
}
