/* decode.c: coded weights to the blob that the kernels read. Section numbers are those of docs/package.md;
 * pack/coding/layout.py and pack/coding/blob.py write what is read here.
 *
 * Everything is checked before memory for the blob is allocated; streams are then decoded in parallel, each tensor row by
 * row into a line of integers and from there to its places. */
#include "decode.h"

#include <string.h>

#include "decode_stream.h"
#include "memory.h"
#include "require.h"

#define COLD __attribute__((noinline)) /* small rather than fast */

enum { VERSION = 1, MAX_RANK = 8, MAX_DIMS = 24, MOST_PER_BYTE = 12000 };
enum { ONE_STEP, STEPS, CODEBOOK, KIND_MASK = 3, HALF = 4, FLAG_BITS = 3 };

struct xnnrt_coded_tensor {
    uint32_t rows;
    uint32_t columns;
    uint32_t flags;
    uint32_t count;       /* values in the table */
    uint32_t inner;       /* columns between two steps; 0 = one step for a row */
    int32_t centre;       /* of a codebook */
    const uint8_t *table; /* steps or codebook */
    const uint8_t *map;   /* section 6.3; null until the tensor has a place */
    const uint8_t *map_end;
    size_t region; /* its bytes of the blob: begin */
};

struct xnnrt_coded_stream {
    const uint8_t *bytes;
    size_t size;
    uint32_t coder[3]; /* and its parameters */
    uint32_t tensors;
    uint32_t first; /* of its tensors */
};

/* One dim of a map: index i [0, extent) lies at i / radix * block + i % radix * lane elements. */
typedef struct {
    uint32_t extent;
    uint32_t radix;
    int64_t block;
    int64_t lane;
} dim;

typedef struct {
    const uint8_t *at;
    const uint8_t *end;
    int is_bad; /* it was read beyond the end, or a number was too large */
} reader;

/* The next `count` bytes; when there are not as many, one that is 0. */
static COLD const uint8_t *take(reader *r, size_t count) {
    static const uint8_t none = 0;
    const uint8_t *at = r->at;
    r->is_bad |= count > (size_t)(r->end - at);
    if (r->is_bad) {
        return &none;
    }
    r->at += count;
    return at;
}

static COLD uint32_t take_byte(reader *r) { return *take(r, 1); }

/* Seven bits a byte, lowest first; at most `most`. */
static uint64_t take_number(reader *r, uint64_t most) {
    uint64_t value = 0;
    uint32_t byte = 128;
    for (int shift = 0; shift < 42 && byte >= 128; shift += 7) {
        byte = take_byte(r);
        value |= (uint64_t)(byte & 127) << shift;
    }
    r->is_bad |= byte >= 128 || value > most;
    return r->is_bad ? 0 : value;
}

/* 0, -1, 1, -2, ... as 0, 1, 2, 3, ... */
static int64_t take_signed(reader *r) {
    uint64_t value = take_number(r, UINT32_MAX);
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

/* Section 6.4: a tensor's record. */
static int read_record(reader *r, xnnrt_coded_tensor *tensor) {
    uint64_t dims[MAX_RANK], weights = 1, inner = 1;
    memset(tensor, 0, sizeof *tensor);
    tensor->flags = take_byte(r);
    uint32_t kind = tensor->flags & KIND_MASK, rank = tensor->flags >> FLAG_BITS, axis = 0, first = 0;
    if (kind > CODEBOOK || rank > MAX_RANK) {
        return 0;
    }
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = take_number(r, INT32_MAX);
        if (dims[i] != 0 && weights > INT32_MAX / dims[i]) {
            return 0;
        }
        weights *= dims[i];
        first += first == i && dims[i] == 1; /* the rows are the first dim that is not 1, unless it is the only one */
    }
    tensor->rows = first + 1 < rank ? (uint32_t)dims[first] : 1;
    tensor->columns = (uint32_t)(tensor->rows == 0 ? 0 : weights / tensor->rows);
    tensor->count = 1;
    if (kind == STEPS) {
        axis = take_byte(r);
        if (axis >= rank) {
            return 0;
        }
        for (uint32_t i = axis + 1; i < rank; i++) {
            inner *= dims[i];
        }
        tensor->count = (uint32_t)dims[axis];
        tensor->inner = axis == first && tensor->rows > 1 ? 0 : (uint32_t)inner;
    } else if (kind == CODEBOOK) {
        tensor->count = (uint32_t)take_number(r, (uint64_t)1 << 24);
        tensor->centre = (int32_t)take_number(r, (uint64_t)1 << 24);
    }
    tensor->table = take(r, (size_t)tensor->count * (tensor->flags & HALF ? 2 : 4));
    return !r->is_bad && weights / MOST_PER_BYTE <= (uint64_t)(r->end - r->at) + 16;
}

/* Section 6.3: the next dim of a map. */
static void read_dim(reader *r, dim *d) {
    d->extent = (uint32_t)take_number(r, INT32_MAX);
    d->radix = (uint32_t)take_number(r, INT32_MAX);
    d->block = take_signed(r);
    d->lane = take_signed(r);
    r->is_bad |= d->extent == 0 || d->radix == 0;
}

/* Widen [*low, *high], the places of an element, by index [0, extent) of a dim. The last block may be cut short; then
 * this allows for more than there is. */
static void widen(const dim *d, int64_t *low, int64_t *high) {
    int64_t blocks = (int64_t)((d->extent - 1) / d->radix) * d->block;
    int64_t lanes = (int64_t)((d->extent < d->radix ? d->extent : d->radix) - 1) * d->lane;
    *(blocks < 0 ? low : high) += blocks;
    *(lanes < 0 ? low : high) += lanes;
}

/* Section 6.3: where a tensor lies in a region of `bytes` bytes. */
static int read_map(reader *r, xnnrt_coded_tensor *tensor, size_t region, size_t bytes) {
    int64_t low, high;
    uint64_t weights = 1, rows = 1;
    tensor->map = r->at;
    tensor->region = region;
    low = high = (int64_t)take_number(r, INT32_MAX);
    uint32_t count = take_byte(r);
    int has_rows = tensor->rows == 1;
    if (count > MAX_DIMS || bytes / 4 > INT32_MAX) {
        return 0;
    }
    for (uint32_t i = 0; i < count && !r->is_bad; i++) {
        dim d;
        read_dim(r, &d);
        if (r->is_bad || weights * d.extent > INT32_MAX) {
            return 0;
        }
        weights *= d.extent;
        rows *= rows == tensor->rows ? 1 : d.extent;
        has_rows |= rows == tensor->rows;
        widen(&d, &low, &high);
    }
    tensor->map_end = r->at;
    return !r->is_bad && has_rows && weights == (uint64_t)tensor->rows * tensor->columns && low >= 0 &&
           high < (int64_t)(bytes / 4);
}

/* Section 6.4: streams, then records; the streams' bytes follow. */
static xnnrt_status read_tensors(xnnrt_decoding *decoding, reader *r) {
    uint32_t tensors, streams, stream = 0;
    XNNRT_REQUIRE(take_byte(r) == VERSION && r->end - r->at > 4, XNNRT_MALFORMED);
    r->end -= 4; /* a CRC, of which the section's own is proof enough */
    decoding->tensors = tensors = (uint32_t)take_number(r, (uint64_t)(r->end - r->at));
    decoding->streams = streams = (uint32_t)take_number(r, tensors);
    XNNRT_REQUIRE(!r->is_bad && streams > 0, XNNRT_MALFORMED);
    decoding->tensor = xnnrt_allocate(tensors * sizeof *decoding->tensor);
    decoding->stream = xnnrt_allocate(streams * sizeof *decoding->stream);
    XNNRT_REQUIRE(decoding->tensor != NULL && decoding->stream != NULL, XNNRT_NO_MEMORY);
    memset(decoding->stream, 0, streams * sizeof *decoding->stream);
    for (uint32_t i = 0; i < streams; i++) {
        for (int k = 0; k < 3; k++) {
            decoding->stream[i].coder[k] = take_byte(r);
        }
        decoding->stream[i].size = (size_t)take_number(r, (uint64_t)(r->end - r->at));
    }
    for (uint32_t i = 0; i < tensors; i++) {
        uint32_t of = streams > 1 ? (uint32_t)take_number(r, streams - 1) : 0;
        XNNRT_REQUIRE(!r->is_bad && of >= stream && of <= stream + (i > 0), XNNRT_MALFORMED);
        decoding->stream[of].first = of != stream ? i : decoding->stream[of].first;
        stream = of;
        decoding->stream[of].tensors++;
        XNNRT_REQUIRE(read_record(r, &decoding->tensor[i]), XNNRT_MALFORMED);
    }
    XNNRT_REQUIRE(stream == streams - 1, XNNRT_MALFORMED);
    for (uint32_t i = 0; i < streams; i++) {
        decoding->stream[i].bytes = take(r, decoding->stream[i].size);
    }
    return !r->is_bad && r->at == r->end ? XNNRT_OK : XNNRT_MALFORMED;
}

/* Section 6.3: pieces of the blob, one after the other. The bytes of those that are not coded follow the last. */
static xnnrt_status read_pieces(xnnrt_decoding *decoding, reader *r, size_t blob_bytes) {
    size_t at = 0, raw = 0;
    uint32_t placed = 0;
    decoding->pieces = r->at;
    while (at < blob_bytes) {
        size_t bytes = (size_t)take_number(r, blob_bytes - at), of = (size_t)take_number(r, decoding->tensors);
        XNNRT_REQUIRE(!r->is_bad && bytes > 0, XNNRT_MALFORMED);
        if (of == 0) {
            raw += bytes;
        } else {
            XNNRT_REQUIRE(at % 4 == 0 && decoding->tensor[of - 1].map == NULL, XNNRT_MALFORMED);
            XNNRT_REQUIRE(read_map(r, &decoding->tensor[of - 1], at, bytes), XNNRT_MALFORMED);
            placed++;
        }
        at += bytes;
    }
    decoding->raw = r->at;
    XNNRT_REQUIRE(placed == decoding->tensors && raw == (size_t)(r->end - r->at), XNNRT_MALFORMED);
    return XNNRT_OK;
}

static size_t line_bytes(uint32_t count) { return xnnrt_align((size_t)count * 4); }

xnnrt_status xnnrt_decoding_begin(xnnrt_decoding *decoding, const uint8_t *bytes, size_t size, size_t blob_bytes) {
    reader r = {bytes, bytes + size, 0};
    memset(decoding, 0, sizeof *decoding);
    size_t length = (size_t)take_number(&r, size);
    reader tensors = {take(&r, length), r.at, 0};
    XNNRT_REQUIRE(!r.is_bad, XNNRT_MALFORMED);
    xnnrt_status status = read_tensors(decoding, &tensors);
    XNNRT_REQUIRE(status == XNNRT_OK, status);
    for (uint32_t i = 0; i < decoding->tensors; i++) {
        const xnnrt_coded_tensor *tensor = &decoding->tensor[i];
        size_t need = xnnrt_align(sizeof(xnnrt_stream)) + 3 * line_bytes(tensor->columns) + line_bytes(tensor->count);
        decoding->scratch_bytes = decoding->scratch_bytes < need ? need : decoding->scratch_bytes;
    }
    return read_pieces(decoding, &r, blob_bytes);
}

void xnnrt_decoding_end(xnnrt_decoding *decoding) {
    xnnrt_release(decoding->tensor);
    xnnrt_release(decoding->stream);
}

static float to_float(const uint8_t *bytes, int is_half) {
    uint32_t bits = (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8;
    float value;
    if (!is_half) {
        bits |= (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    uint32_t sign = bits >> 15 << 31, exponent = bits >> 10 & 31, fraction = bits & 1023;
    if (exponent == 0) { /* fraction * 2^-24, exactly */
        value = (float)fraction * (1.0f / 16777216.0f);
        return sign ? -value : value;
    }
    bits = sign | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Where element `index` of the dims [0, count) lies. */
static int32_t place_of(const dim *dims, uint32_t count, uint32_t index) {
    int64_t place = 0;
    while (count-- > 0) {
        uint32_t i = index % dims[count].extent;
        index /= dims[count].extent;
        place += (int64_t)(i / dims[count].radix) * dims[count].block + (int64_t)(i % dims[count].radix) * dims[count].lane;
    }
    return (int32_t)place;
}

/* A row of integers to its places. Returns 0 when an index is outside the codebook. */
static int scatter(const xnnrt_coded_tensor *tensor, const float *table, const int32_t *line, const int32_t *place,
                   uint32_t row, float *out) {
    if ((tensor->flags & KIND_MASK) == CODEBOOK) {
        for (uint32_t c = 0; c < tensor->columns; c++) {
            uint32_t index = (uint32_t)(line[c] + tensor->centre);
            if (index >= tensor->count) {
                return 0;
            }
            out[place[c]] = table[index];
        }
        return 1;
    }
    uint32_t which = tensor->inner == 0 && tensor->count > 1 ? row : 0, left = tensor->inner;
    for (uint32_t c = 0; c < tensor->columns; c++) {
        out[place[c]] = (float)line[c] * table[which];
        if (--left == 0) { /* never when `inner` is 0: there are fewer columns */
            left = tensor->inner;
            which = which + 1 == tensor->count ? 0 : which + 1;
        }
    }
    return 1;
}

static int decode_tensor(const xnnrt_coded_tensor *tensor, xnnrt_stream *stream, uint8_t *scratch, uint8_t *blob) {
    const uint32_t columns = tensor->columns;
    xnnrt_column *column = (xnnrt_column *)(void *)scratch;
    int32_t *place = (int32_t *)(void *)(scratch + line_bytes(columns));
    int32_t *line = (int32_t *)(void *)(scratch + 2 * line_bytes(columns));
    float *table = (float *)(void *)(scratch + 3 * line_bytes(columns));
    float *out = (float *)(void *)(blob + tensor->region);
    dim dims[MAX_DIMS];
    reader r = {tensor->map, tensor->map_end, 0};
    out += take_number(&r, INT32_MAX);
    uint32_t count = take_byte(&r), rows = 1, outer = 0;
    for (uint32_t i = 0; i < count; i++) {
        read_dim(&r, &dims[i]);
        if (rows != tensor->rows) {
            rows *= dims[i].extent;
            outer = i + 1;
        }
    }
    const int is_half = (tensor->flags & HALF) != 0;
    for (uint32_t i = 0; i < tensor->count; i++) {
        table[i] = to_float(tensor->table + (size_t)i * (is_half ? 2 : 4), is_half);
    }
    for (uint32_t c = 0; c < columns; c++) {
        place[c] = place_of(dims + outer, count - outer, c);
    }
    memset(column, 0, columns * sizeof *column);
    for (uint32_t row = 0; row < tensor->rows; row++) {
        if (!xnnrt_stream_row(stream, line, column, columns, row) ||
            !scatter(tensor, table, line, place, row, out + place_of(dims, outer, row))) {
            return 0;
        }
    }
    return 1;
}

typedef struct {
    const xnnrt_decoding *decoding;
    uint8_t *blob;
    uint8_t *scratch; /* of all threads */
    const xnnrt_pool *pool;
} job;

/* One stream; the last one first, for it is the largest. */
static int decode_stream(int task, TVMParallelGroupEnv *env, void *data) {
    const job *j = data;
    const xnnrt_coded_stream *s = &j->decoding->stream[env->num_task - 1 - task];
    uint8_t *scratch = j->scratch + (size_t)(xnnrt_this_thread() - j->pool->thread) * j->decoding->scratch_bytes;
    xnnrt_stream *stream = (xnnrt_stream *)(void *)scratch;
    int good = xnnrt_stream_start(stream, s->coder[0], s->coder[1], s->coder[2], s->bytes, s->size);
    for (uint32_t i = 0; i < s->tensors && good; i++) {
        good = decode_tensor(&j->decoding->tensor[s->first + i], stream, scratch + xnnrt_align(sizeof *stream), j->blob);
    }
    return good ? 0 : -1;
}

/* Zeros where coded tensors go, and what is not coded. */
static void fill_blob(const xnnrt_decoding *decoding, uint8_t *blob) {
    const uint8_t *raw = decoding->raw;
    reader r = {decoding->pieces, decoding->raw, 0};
    while (r.at != r.end) {
        size_t bytes = (size_t)take_number(&r, SIZE_MAX);
        uint32_t of = (uint32_t)take_number(&r, UINT32_MAX);
        if (of == 0) {
            memcpy(blob, raw, bytes);
            raw += bytes;
        } else {
            memset(blob, 0, bytes);
            r.at = decoding->tensor[of - 1].map_end;
        }
        blob += bytes;
    }
}

xnnrt_status xnnrt_decoding_run(const xnnrt_decoding *decoding, uint8_t *blob, const xnnrt_pool *pool) {
    if (decoding->scratch_bytes > SIZE_MAX / XNNRT_MAX_THREADS) {
        return XNNRT_NO_MEMORY;
    }
    job work = {decoding, blob, xnnrt_allocate(decoding->scratch_bytes * (size_t)pool->threads), pool};
    XNNRT_REQUIRE(work.scratch != NULL, XNNRT_NO_MEMORY);
    fill_blob(decoding, blob);
    int result = __TVMBackendParallelLaunch(decode_stream, &work, (int)decoding->streams);
    xnnrt_release(work.scratch);
    return result == 0 ? XNNRT_OK : XNNRT_MALFORMED;
}
