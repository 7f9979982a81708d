/* decode_stream.c: which decoder a stream needs. */
#include "decode_stream.h"

int xnnrt_stream_start(xnnrt_stream *stream, uint32_t coder, uint32_t first, uint32_t second, const uint8_t *bytes,
                       size_t size) {
    stream->coder = coder;
    if (coder == CODER_RANGE) {
        xnnrt_range_start(&stream->of.range, bytes, size, first, second);
        return first < RANGE_MODES && second <= RANGE_MOST_SHIFT;
    }
    stream->of.runs.bits = (xnnrt_bits){0, 0, bytes, bytes + size, 0};
    if (coder > CODER_RANGE || !xnnrt_runs_init(&stream->of.runs, first, second)) {
        return 0;
    }
    if (coder == CODER_HUFFMAN) {
        return xnnrt_huffman_start(&stream->of.huffman);
    }
    xnnrt_adaptive_start(&stream->of.adaptive);
    return 1;
}

int xnnrt_stream_row(xnnrt_stream *stream, int32_t *line, xnnrt_column *column, size_t columns, size_t row) {
    return stream->coder == CODER_RANGE ? xnnrt_range_row(&stream->of.range, line, column, columns, row)
                                        : xnnrt_runs_row(&stream->of.runs, line, columns);
}
