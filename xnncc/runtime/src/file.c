/* file.c: map a file, or read it. No struct stat (its layout differs between systems): the length comes from lseek. */
#define _POSIX_C_SOURCE 200809L
#include "file.h"

#ifndef XNNRT_NO_FILE

#include <fcntl.h>
#include <unistd.h>

#include "memory.h"
#include "require.h"

#ifndef O_CLOEXEC
#define O_CLOEXEC 0
#endif

#ifdef XNNRT_NO_MMAP

static xnnrt_status load(xnnrt_file *file, int descriptor) {
    file->bytes = xnnrt_allocate(file->size);
    XNNRT_REQUIRE(file->bytes != NULL, XNNRT_NO_MEMORY);
    for (size_t done = 0; done < file->size;) {
        ssize_t got = read(descriptor, (char *)file->bytes + done, file->size - done);
        if (got <= 0) {
            xnnrt_release(file->bytes);
            return XNNRT_READ_FAILED;
        }
        done += (size_t)got;
    }
    return XNNRT_OK;
}

void xnnrt_file_forget(xnnrt_file *file) { xnnrt_release(file->bytes); }

#else

#include <sys/mman.h>

static xnnrt_status load(xnnrt_file *file, int descriptor) {
    file->bytes = mmap(NULL, file->size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    return file->bytes == MAP_FAILED ? XNNRT_READ_FAILED : XNNRT_OK;
}

void xnnrt_file_forget(xnnrt_file *file) { munmap(file->bytes, file->size); }

#endif

xnnrt_status xnnrt_file_read(xnnrt_file *file, const char *path) {
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    XNNRT_REQUIRE(descriptor >= 0, XNNRT_CANNOT_OPEN);
    off_t size = lseek(descriptor, 0, SEEK_END);
    xnnrt_status status = XNNRT_READ_FAILED;
    if (size == 0) {
        status = XNNRT_WRONG_LENGTH;
    } else if (size > 0 && (uint64_t)size > SIZE_MAX / 2) {
        status = XNNRT_TOO_LARGE;
    } else if (size > 0 && lseek(descriptor, 0, SEEK_SET) == 0) {
        file->size = (size_t)size;
        status = load(file, descriptor);
    }
    close(descriptor);
    return status;
}

#else
typedef int xnnrt_no_file; /* C99 wants one declaration in every file */
#endif
