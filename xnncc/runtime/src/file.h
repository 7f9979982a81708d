/* file.h: a whole file in memory, mapped read-only where the system can. */
#ifndef XNNRT_FILE_H
#define XNNRT_FILE_H

#ifndef XNNRT_NO_FILE

#include "hidden.h"
#include "xnnrt.h"

typedef struct {
    void *bytes; /* 64-byte aligned */
    size_t size;
} xnnrt_file;

/* Returns XNNRT_OK, NO_MEMORY, CANNOT_OPEN, READ_FAILED, WRONG_LENGTH (an empty file), TOO_LARGE. */
XNNRT_HIDDEN xnnrt_status xnnrt_file_read(xnnrt_file *file, const char *path);
XNNRT_HIDDEN void xnnrt_file_forget(xnnrt_file *file);

#endif
#endif
