/* frames.c: see frames.h. */
#include "frames.h"

#include <string.h>

void xnn_put32(uint8_t *at, uint32_t number) {
    int i;
    for (i = 0; i < 4; i++) at[i] = (uint8_t)(number >> 8 * i);
}

void xnn_put64(uint8_t *at, uint64_t number) {
    xnn_put32(at, (uint32_t)number);
    xnn_put32(at + 4, (uint32_t)(number >> 32));
}

uint32_t xnn_get32(const uint8_t *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

int xnn_read_header(const uint8_t header[XNN_HEADER], uint8_t *type, uint32_t *bytes) {
    *bytes = xnn_get32(header);
    *type = header[4];
    return *bytes <= XNN_MOST_BODY && header[5] == 0 && header[6] == 0 && header[7] == 0;
}

void xnn_write_header(uint8_t header[XNN_HEADER], uint8_t type, uint32_t bytes) {
    xnn_put32(header, bytes);
    header[4] = type;
    header[5] = header[6] = header[7] = 0;
}

void xnn_frame_code(const uint8_t key[XNN_SHA_BYTES], int direction, uint64_t number, const uint8_t *frame, size_t bytes,
                    uint8_t code[XNN_SHA_BYTES]) {
    uint8_t before[9];
    xnn_hmac mac;
    before[0] = (uint8_t)direction;
    xnn_put64(before + 1, number);
    xnn_hmac_start(&mac, key, XNN_SHA_BYTES);
    xnn_hmac_add(&mac, before, sizeof before);
    xnn_hmac_add(&mac, frame, bytes);
    xnn_hmac_end(&mac, code);
}

void xnn_derive(const uint8_t *token, size_t token_bytes, const char *label, const uint8_t nonces[2 * XNN_NONCE],
                uint8_t result[XNN_SHA_BYTES]) {
    xnn_hmac mac;
    xnn_hmac_start(&mac, token, token_bytes);
    xnn_hmac_add(&mac, label, 12);
    xnn_hmac_add(&mac, nonces, 2 * XNN_NONCE);
    xnn_hmac_end(&mac, result);
}

const uint8_t *xnn_take(xnn_cursor *cursor, size_t bytes) {
    const uint8_t *found = cursor->next;
    if (cursor->is_bad || bytes > cursor->left) {
        cursor->is_bad = 1;
        return NULL;
    }
    cursor->next += bytes;
    cursor->left -= bytes;
    return found;
}

uint8_t xnn_take8(xnn_cursor *cursor) {
    const uint8_t *at = xnn_take(cursor, 1);
    return at == NULL ? 0 : *at;
}

uint16_t xnn_take16(xnn_cursor *cursor) {
    const uint8_t *at = xnn_take(cursor, 2);
    return at == NULL ? 0 : (uint16_t)(at[0] | at[1] << 8);
}

uint32_t xnn_take32(xnn_cursor *cursor) {
    const uint8_t *at = xnn_take(cursor, 4);
    return at == NULL ? 0 : xnn_get32(at);
}

uint64_t xnn_take64(xnn_cursor *cursor) {
    uint64_t low = xnn_take32(cursor);
    return low | (uint64_t)xnn_take32(cursor) << 32;
}
