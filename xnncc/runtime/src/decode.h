/* decode.h: coded weights, decoded once at open into the layout that the kernels read. Section 6.3 of docs/package.md. */
#ifndef XNNRT_DECODE_H
#define XNNRT_DECODE_H

#include "pool.h"
#include "xnnrt.h"

typedef struct xnnrt_coded_tensor xnnrt_coded_tensor;
typedef struct xnnrt_coded_stream xnnrt_coded_stream;

/* Coded weights, checked: what is where. */
typedef struct {
    xnnrt_coded_tensor *tensor; /* in the order of their streams */
    xnnrt_coded_stream *stream;
    uint32_t tensors;
    uint32_t streams;
    const uint8_t *pieces; /* of the blob, and after them the bytes that are not coded */
    const uint8_t *raw;
    size_t scratch_bytes; /* that a thread needs, a multiple of 64 */
} xnnrt_decoding;

/* Check `size` bytes at `bytes`, which decode to `blob_bytes` bytes. Allocates; xnnrt_decoding_end gives that back
 * whatever this returns: XNNRT_OK, XNNRT_MALFORMED, XNNRT_NO_MEMORY. */
XNNRT_HIDDEN xnnrt_status xnnrt_decoding_begin(xnnrt_decoding *decoding, const uint8_t *bytes, size_t size,
                                               size_t blob_bytes);
XNNRT_HIDDEN void xnnrt_decoding_end(xnnrt_decoding *decoding);

/* Decode into blob[blob_bytes], 64-byte aligned, on the threads of `pool`, of which the caller is number 0 now. Returns
 * XNNRT_OK, XNNRT_MALFORMED, XNNRT_NO_MEMORY. */
XNNRT_HIDDEN xnnrt_status xnnrt_decoding_run(const xnnrt_decoding *decoding, uint8_t *blob, const xnnrt_pool *pool);

#endif
