/* sha256.h: SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104). */
#ifndef XNN_AGENT_SHA256_H
#define XNN_AGENT_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { XNN_SHA_BYTES = 32 };

typedef struct {
    uint32_t state[8];
    uint64_t bytes;
    uint8_t block[64];
} xnn_sha256;

void xnn_sha256_start(xnn_sha256 *hash);
void xnn_sha256_add(xnn_sha256 *hash, const void *data, size_t bytes);
void xnn_sha256_end(xnn_sha256 *hash, uint8_t digest[XNN_SHA_BYTES]);

typedef struct {
    xnn_sha256 inner, outer;
} xnn_hmac;

/* The key may have any length. */
void xnn_hmac_start(xnn_hmac *mac, const uint8_t *key, size_t key_bytes);
void xnn_hmac_add(xnn_hmac *mac, const void *data, size_t bytes);
void xnn_hmac_end(xnn_hmac *mac, uint8_t digest[XNN_SHA_BYTES]);

/* 1 when both are the same; takes the same time whatever differs. */
int xnn_same_digest(const uint8_t a[XNN_SHA_BYTES], const uint8_t b[XNN_SHA_BYTES]);

/* Overwrite a secret; the compiler does not leave it out. */
void xnn_wipe(void *secret, size_t bytes);

#endif
