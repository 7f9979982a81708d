/* decode_stream.c: which decoder a stream needs. */
#include "decode_stream.h"

int xnnrt_stream_start(xnnrt_stream *stream, uint32_t coder, uint32_t first, uint32_t second, const uint8_t *bytes,
                       size_t size) {
    stream->coder = coder;
    switch (coder) {
        case CODER_HUFFMAN:
            return xnnrt_huffman_start(&stream->of.huffman, bytes, size, first, second);
        case CODER_ADAPTIVE:
            return xnnrt_adaptive_start(&stream->of.adaptive, bytes, size, first, second);
        case CODER_RANGE:
            xnnrt_range_start(&stream->of.range, bytes, size, first != 0, second);
            return first <= 1 && second <= RANGE_MOST_SHIFT;
        default:
            return 0;
    }
}

int xnnrt_stream_row(xnnrt_stream *stream, int32_t *line, xnnrt_column *column, size_t columns, size_t row) {
    switch (stream->coder) {
        case CODER_HUFFMAN:
            return xnnrt_huffman_row(&stream->of.huffman, line, columns);
        case CODER_ADAPTIVE:
            return xnnrt_adaptive_row(&stream->of.adaptive, line, columns);
        default:
            return xnnrt_range_row(&stream->of.range, line, column, columns, row);
    }
}
