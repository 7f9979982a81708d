/* crc.c: CRC-32, eight bytes a step ("slicing-by-8": Kounavis and Berry, A Systematic Approach to Building High
 * Performance Software-based CRC Generators, 2005). */
#include "crc.h"

void xnnrt_crc_init(xnnrt_crc *crc) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t value = byte;
        for (int bit = 0; bit < 8; bit++) {
            value = (value >> 1) ^ ((value & 1u) ? 0xEDB88320u : 0u);
        }
        crc->table[0][byte] = value;
    }
    /* table[k][b]: the CRC of byte b followed by k zero bytes. */
    for (int slice = 1; slice < 8; slice++) {
        for (uint32_t byte = 0; byte < 256; byte++) {
            uint32_t value = crc->table[slice - 1][byte];
            crc->table[slice][byte] = (value >> 8) ^ crc->table[0][value & 255u];
        }
    }
}

uint32_t xnnrt_crc_update(const xnnrt_crc *crc, uint32_t value, const uint8_t *data, size_t bytes) {
    const uint32_t(*t)[256] = crc->table;
    value = ~value;
    for (; bytes >= 8; bytes -= 8, data += 8) {
        uint32_t low = value ^ ((uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 |
                                (uint32_t)data[3] << 24);
        value = t[7][low & 255u] ^ t[6][(low >> 8) & 255u] ^ t[5][(low >> 16) & 255u] ^ t[4][low >> 24] ^
                t[3][data[4]] ^ t[2][data[5]] ^ t[1][data[6]] ^ t[0][data[7]];
    }
    for (; bytes > 0; bytes--, data++) {
        value = (value >> 8) ^ t[0][(value ^ *data) & 255u];
    }
    return ~value;
}
