/* sha256.c: see sha256.h. */
#include "sha256.h"

#include <string.h>

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t turn(uint32_t x, int by) { return x >> by | x << (32 - by); }

static void take_block(uint32_t state[8], const uint8_t *block) {
    uint32_t w[64], s[8];
    int i;
    for (i = 0; i < 16; i++) {
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 |
               block[4 * i + 3];
    }
    for (; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[i - 7] + (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
    }
    memcpy(s, state, sizeof s);
    for (i = 0; i < 64; i++) {
        uint32_t e = s[4], a = s[0];
        uint32_t t1 = s[7] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & s[5]) ^ (~e & s[6])) + K[i] + w[i];
        uint32_t t2 = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += t1;
        s[0] = t1 + t2;
    }
    for (i = 0; i < 8; i++) state[i] += s[i];
}

void xnn_sha256_start(xnn_sha256 *hash) {
    static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(hash->state, first, sizeof first);
    hash->bytes = 0;
}

void xnn_sha256_add(xnn_sha256 *hash, const void *data, size_t bytes) {
    const uint8_t *next = data;
    size_t held = (size_t)(hash->bytes % 64);
    hash->bytes += bytes;
    if (held > 0) {
        size_t more = 64 - held < bytes ? 64 - held : bytes;
        memcpy(hash->block + held, next, more);
        next += more;
        bytes -= more;
        if (held + more < 64) return;
        take_block(hash->state, hash->block);
    }
    for (; bytes >= 64; bytes -= 64, next += 64) take_block(hash->state, next);
    if (bytes > 0) memcpy(hash->block, next, bytes);
}

void xnn_sha256_end(xnn_sha256 *hash, uint8_t digest[XNN_SHA_BYTES]) {
    static const uint8_t padding[64] = {0x80};
    uint64_t bits = hash->bytes * 8;
    uint8_t tail[8];
    int i;
    for (i = 0; i < 8; i++) tail[i] = (uint8_t)(bits >> (56 - 8 * i));
    xnn_sha256_add(hash, padding, 1 + (size_t)((119 - hash->bytes % 64) % 64));
    xnn_sha256_add(hash, tail, 8);
    for (i = 0; i < 32; i++) digest[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

void xnn_hmac_start(xnn_hmac *mac, const uint8_t *key, size_t key_bytes) {
    uint8_t pad[64] = {0};
    int i;
    if (key_bytes > sizeof pad) {
        xnn_sha256_start(&mac->inner);
        xnn_sha256_add(&mac->inner, key, key_bytes);
        xnn_sha256_end(&mac->inner, pad);
    } else if (key_bytes > 0) {
        memcpy(pad, key, key_bytes);
    }
    for (i = 0; i < 64; i++) pad[i] ^= 0x36;
    xnn_sha256_start(&mac->inner);
    xnn_sha256_add(&mac->inner, pad, sizeof pad);
    for (i = 0; i < 64; i++) pad[i] ^= 0x36 ^ 0x5c;
    xnn_sha256_start(&mac->outer);
    xnn_sha256_add(&mac->outer, pad, sizeof pad);
    xnn_wipe(pad, sizeof pad);
}

void xnn_hmac_add(xnn_hmac *mac, const void *data, size_t bytes) { xnn_sha256_add(&mac->inner, data, bytes); }

void xnn_hmac_end(xnn_hmac *mac, uint8_t digest[XNN_SHA_BYTES]) {
    xnn_sha256_end(&mac->inner, digest);
    xnn_sha256_add(&mac->outer, digest, XNN_SHA_BYTES);
    xnn_sha256_end(&mac->outer, digest);
    xnn_wipe(mac, sizeof *mac);
}

int xnn_same_digest(const uint8_t a[XNN_SHA_BYTES], const uint8_t b[XNN_SHA_BYTES]) {
    unsigned differ = 0;
    int i;
    for (i = 0; i < XNN_SHA_BYTES; i++) differ |= (unsigned)(a[i] ^ b[i]);
    return differ == 0;
}

void xnn_wipe(void *secret, size_t bytes) {
    volatile uint8_t *byte = secret;
    while (bytes-- > 0) *byte++ = 0;
}
