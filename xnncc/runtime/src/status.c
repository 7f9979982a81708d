/* status.c: words for every status. */
#include "xnnrt.h"

/* One string a status, in order: no table of pointers, hence no relocations in a shared library. */
static const char messages[] =
    "ok\0"
    "bad argument: a null pointer, or a number outside its range\0"
    "out of memory\0"
    "the package file cannot be opened\0"
    "the package file cannot be read\0"
    "not an .xnn package\0"
    "the package was written by a newer xnncc; update the runtime\0"
    "the package is cut off, or longer than it says\0"
    "the package is damaged: a checksum does not fit\0"
    "the package contradicts itself\0"
    "the package needs a section that this runtime does not know\0"
    "the package is coded in a way that this runtime cannot decode\0"
    "the package does not belong to this library: another build or another target\0"
    "the network is too large for this device\0"
    "the arena is smaller than xnnrt_arena_size says\0"
    "the arena is not aligned to 64 bytes, or a tensor not to its element size\0"
    "the system refused a thread\0"
    "this net is being run by another thread\0"
    "a kernel failed\0"
    "a kernel needs more scratch memory than was planned\0"
    "the network was not built for these shapes\0";

const char *xnnrt_strerror(xnnrt_status status) {
    if ((int)status < 0 || (int)status > (int)XNNRT_NO_VARIANT) {
        return "unknown status";
    }
    const char *message = messages;
    for (int skip = (int)status; skip > 0; skip--) {
        while (*message++ != '\0') {
        }
    }
    return message;
}

int xnnrt_abi(void) { return XNNRT_ABI; }
