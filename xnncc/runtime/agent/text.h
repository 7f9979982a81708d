/* text.h: text in buffers of a fixed size, numbers to text and back. */
#ifndef XNN_AGENT_TEXT_H
#define XNN_AGENT_TEXT_H

#include "posix.h"

/* A text that grows in a buffer; it always ends with a zero byte, and what does not fit is left out. */
typedef struct {
    char *start;
    size_t room; /* bytes of the buffer, at least 1 */
    size_t length;
    int is_cut;
} xnn_text;

/* Start an empty text in `buffer`. */
void xnn_text_start(xnn_text *text, char *buffer, size_t room);
void xnn_text_add(xnn_text *text, const char *words);
/* Add at most `most` bytes of `words`; control bytes and bytes above 126 become '?'. */
void xnn_text_add_plain(xnn_text *text, const char *words, size_t most);
void xnn_text_add_number(xnn_text *text, uint64_t number);
void xnn_text_add_signed(xnn_text *text, int64_t number);
void xnn_text_add_hex(xnn_text *text, const uint8_t *bytes, size_t count);

/* Join two or three texts into a path of `room` bytes; 0 when it does not fit. */
int xnn_join(char *path, size_t room, const char *folder, const char *name, const char *rest);

/* Where `what` begins in `text` for the first time; NULL when it is not there. */
const char *xnn_find_text(const char *text, const char *what);

/* Read a decimal number up to `most`; 1 when the whole text is one. */
int xnn_read_number(const char *text, uint64_t most, uint64_t *number);

/* Write the text to file descriptor 2. */
void xnn_complain(const char *what, const char *why);

/* Say on stdout, in one line, that `what` is ready on a port. */
void xnn_say_port(const char *what, uint16_t port);

#endif
