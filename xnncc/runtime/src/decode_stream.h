/* decode_stream.h: one stream of coded integers, whichever the coder. Section 6.4 of docs/package.md. */
#ifndef XNNRT_DECODE_STREAM_H
#define XNNRT_DECODE_STREAM_H

#include "decode_adaptive.h"
#include "decode_huffman.h"
#include "decode_range.h"

enum { CODER_HUFFMAN, CODER_ADAPTIVE, CODER_RANGE, CODER_COUNT };

typedef struct {
    uint32_t coder;
    union {
        xnnrt_runs runs; /* what both Huffman coders begin with */
        xnnrt_huffman huffman;
        xnnrt_adaptive adaptive;
        xnnrt_range range;
    } of;
} xnnrt_stream;

/* `first` and `second` [0, 255]: the coder's parameters. Returns 0 when the stream is none. */
XNNRT_HIDDEN int xnnrt_stream_start(xnnrt_stream *stream, uint32_t coder, uint32_t first, uint32_t second,
                                    const uint8_t *bytes, size_t size);

/* Decode row number `row` of a tensor of `columns` columns into `line`; `column` is memory of the tensor, zero before
 * its row 0. Returns 0 when the stream has ended or is damaged. */
XNNRT_HIDDEN int xnnrt_stream_row(xnnrt_stream *stream, int32_t *line, xnnrt_column *column, size_t columns, size_t row);

#endif
