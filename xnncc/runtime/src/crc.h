/* crc.h: CRC-32 as in zlib, PNG and Ethernet (reflected polynomial 0xEDB88320). docs/package.md section 1. */
#ifndef XNNRT_CRC_H
#define XNNRT_CRC_H

#include <stddef.h>
#include <stdint.h>

#include "hidden.h"

/* Tables for eight bytes a step. They are made where they are used (8 KiB of the caller's stack, a few microseconds):
 * as constants they would be 40 % of the runtime's size. */
typedef struct {
    uint32_t table[8][256];
} xnnrt_crc;

XNNRT_HIDDEN void xnnrt_crc_init(xnnrt_crc *crc);

/* Continue `value` (0 at the start) over `bytes` bytes at `data`. */
XNNRT_HIDDEN uint32_t xnnrt_crc_update(const xnnrt_crc *crc, uint32_t value, const uint8_t *data, size_t bytes);

#endif
