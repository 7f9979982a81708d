/* open.c: opens the bytes of a package: all of them are hostile until this file has checked them.
 *
 * Section numbers are those of docs/package.md. That page, this file and pack/layout.py change together or not at all;
 * tests/runtime holds this reader and pack/read.py against each other on thousands of damaged packages. */
#include <string.h>

#include "crc.h"
#include "memory.h"
#include "package.h"
#include "require.h"

/* Section 2: header. */
enum { HEADER_BYTES = 64, HEADER_VERSION = 8, HEADER_SECTIONS = 12, HEADER_FILE_BYTES = 16, HEADER_BUILD_ID = 24 };
enum { HEADER_RESERVED = 32, HEADER_CRC = 60, FORMAT_VERSION = 1 };
/* Section 3: section table. */
enum { ENTRY_BYTES = 40, ENTRY_KIND = 0, ENTRY_ENCODING = 4, ENTRY_FLAGS = 8, ENTRY_CRC = 12, ENTRY_OFFSET = 16 };
enum { ENTRY_STORED = 24, ENTRY_DECODED = 32, FLAG_REQUIRED = 1, ENCODING_RAW = 0, ENCODING_CODED = 1 };
#define KIND_META 0x4154454Du /* "META" */
#define KIND_WGHT 0x54484757u /* "WGHT" */
#define KIND_STAT 0x54415453u /* "STAT" */
#define KIND_VARI 0x49524156u /* "VARI" */
enum { META, WGHT, STAT, VARI, KNOWN_KINDS };
/* Section 5: META. */
enum { META_BYTES = 48, META_ARENA = 0, META_SCRATCH = 8, META_OPS = 16, META_INPUTS = 20, META_OUTPUTS = 24 };
enum { META_STRINGS = 28, META_MODEL = 32, META_TARGET = 36, META_PREPARED = 40 };
enum { TENSOR_BYTES = 80, TENSOR_NAME = 0, TENSOR_DTYPE = 4, TENSOR_RANK = 8, TENSOR_RESERVED = 12, TENSOR_DIMS = 16 };
/* Section 6.1: STAT. */
enum { STAT_BYTES = 4 };
/* Section 8: limits. */
enum { MAX_SECTIONS = 64, MAX_TENSORS = 1024, MAX_STRINGS = 1 << 20 };
#define MAX_BYTES ((uint64_t)1 << 40)

static uint32_t read_u32(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t read_u64(const uint8_t *p) { return read_u32(p) | (uint64_t)read_u32(p + 4) << 32; }

static int all_zero(const uint8_t *p, size_t bytes) {
    while (bytes > 0 && *p == 0) {
        p++, bytes--;
    }
    return bytes == 0;
}

/* Section 4: which of the known kinds; KNOWN_KINDS = none of them. */
static int known_kind(uint32_t kind) {
    static const uint32_t kinds[KNOWN_KINDS] = {KIND_META, KIND_WGHT, KIND_STAT, KIND_VARI};
    int index = 0;
    while (index < KNOWN_KINDS && kinds[index] != kind) {
        index++;
    }
    return index;
}

/* Section 7: bytes of an element by dtype code; 0 = no such code. */
static size_t dtype_bytes(uint32_t dtype) {
    static const uint8_t bytes[] = {0, 4, 8, 2, 2, 1, 1, 2, 2, 4, 4, 8, 8, 1};
    return dtype < sizeof bytes ? bytes[dtype] : 0;
}

/* Section 2: the fixed part, and the CRC over it and the table. */
static xnnrt_status check_header(const xnnrt_crc *crc, const uint8_t *bytes, size_t size) {
    static const uint8_t magic[8] = {0x89, 'X', 'N', 'N', '\r', '\n', 0x1A, '\n'};
    XNNRT_REQUIRE(size >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0, XNNRT_NOT_A_PACKAGE);
    XNNRT_REQUIRE(size >= HEADER_BYTES, XNNRT_WRONG_LENGTH);
    XNNRT_REQUIRE(read_u32(bytes + HEADER_VERSION) <= FORMAT_VERSION, XNNRT_NEWER_VERSION);
    XNNRT_REQUIRE(read_u64(bytes + HEADER_FILE_BYTES) == size, XNNRT_WRONG_LENGTH);
    uint32_t sections = read_u32(bytes + HEADER_SECTIONS);
    XNNRT_REQUIRE(sections <= MAX_SECTIONS, XNNRT_MALFORMED);
    XNNRT_REQUIRE(size >= HEADER_BYTES + sections * (size_t)ENTRY_BYTES, XNNRT_MALFORMED);
    uint32_t value = xnnrt_crc_update(crc, 0, bytes, HEADER_CRC);
    value = xnnrt_crc_update(crc, value, bytes + HEADER_BYTES, sections * (size_t)ENTRY_BYTES);
    XNNRT_REQUIRE(value == read_u32(bytes + HEADER_CRC), XNNRT_CORRUPT);
    XNNRT_REQUIRE(read_u32(bytes + HEADER_VERSION) == FORMAT_VERSION, XNNRT_MALFORMED);
    XNNRT_REQUIRE(all_zero(bytes + HEADER_RESERVED, HEADER_CRC - HEADER_RESERVED), XNNRT_MALFORMED);
    return XNNRT_OK;
}

/* Sections 3 and 4: one entry, whose contents begin right after `end` (which moves on), and what this runtime needs of
 * it: *found is set to the entry if its kind is known. */
static xnnrt_status check_entry(const uint8_t *entry, const uint8_t *bytes, size_t size, size_t *end,
                                const uint8_t *found[KNOWN_KINDS]) {
    uint32_t encoding = read_u32(entry + ENTRY_ENCODING);
    int kind = known_kind(read_u32(entry + ENTRY_KIND));
    uint64_t offset = read_u64(entry + ENTRY_OFFSET), stored = read_u64(entry + ENTRY_STORED);
    uint64_t decoded = read_u64(entry + ENTRY_DECODED);
    XNNRT_REQUIRE((read_u32(entry + ENTRY_FLAGS) & ~(uint32_t)FLAG_REQUIRED) == 0, XNNRT_MALFORMED);
    XNNRT_REQUIRE(offset == xnnrt_align(*end) && offset <= size && stored <= size - offset, XNNRT_MALFORMED);
    XNNRT_REQUIRE(all_zero(bytes + *end, (size_t)offset - *end), XNNRT_MALFORMED);
    XNNRT_REQUIRE(decoded <= MAX_BYTES && (encoding != ENCODING_RAW || decoded == stored), XNNRT_MALFORMED);
    *end = (size_t)(offset + stored);
    if (kind != KNOWN_KINDS) {
        XNNRT_REQUIRE(encoding <= (kind == WGHT ? ENCODING_CODED : ENCODING_RAW), XNNRT_UNKNOWN_ENCODING);
        XNNRT_REQUIRE(found[kind] == NULL || kind == VARI, XNNRT_MALFORMED);
        found[kind] = entry;
    } else {
        XNNRT_REQUIRE((read_u32(entry + ENTRY_FLAGS) & FLAG_REQUIRED) == 0, XNNRT_UNKNOWN_SECTION);
    }
    return XNNRT_OK;
}

/* Sections 3 and 4: the whole table, then the CRC of every section. */
static xnnrt_status check_sections(const xnnrt_crc *crc, const uint8_t *bytes, size_t size, xnnrt_check check,
                                   const uint8_t *found[KNOWN_KINDS]) {
    uint32_t sections = read_u32(bytes + HEADER_SECTIONS);
    size_t end = HEADER_BYTES + sections * (size_t)ENTRY_BYTES;
    for (uint32_t i = 0; i < sections; i++) {
        xnnrt_status status = check_entry(bytes + HEADER_BYTES + i * (size_t)ENTRY_BYTES, bytes, size, &end, found);
        XNNRT_REQUIRE(status == XNNRT_OK, status);
    }
    XNNRT_REQUIRE(end == size && found[META] != NULL && found[WGHT] != NULL, XNNRT_MALFORMED);
    for (uint32_t i = 0; i < sections; i++) {
        const uint8_t *entry = bytes + HEADER_BYTES + i * (size_t)ENTRY_BYTES;
        if (check == XNNRT_CHECK_ALL || entry != found[WGHT]) {
            uint32_t value = xnnrt_crc_update(crc, 0, bytes + (size_t)read_u64(entry + ENTRY_OFFSET),
                                              (size_t)read_u64(entry + ENTRY_STORED));
            XNNRT_REQUIRE(value == read_u32(entry + ENTRY_CRC), XNNRT_CORRUPT);
        }
    }
    return XNNRT_OK;
}

/* Bytes of the well-formed UTF-8 character at `p` (the Unicode Standard, table 3-7), or 0. */
static size_t utf8_length(const uint8_t *p, size_t left) {
    uint8_t low = 0x80, high = 0xBF; /* range of the second byte */
    size_t length;
    if (p[0] < 0x80) {
        return 1;
    } else if (p[0] >= 0xC2 && p[0] <= 0xDF) {
        length = 2;
    } else if (p[0] >= 0xE0 && p[0] <= 0xEF) {
        length = 3;
        low = p[0] == 0xE0 ? 0xA0 : low;
        high = p[0] == 0xED ? 0x9F : high;
    } else if (p[0] >= 0xF0 && p[0] <= 0xF4) {
        length = 4;
        low = p[0] == 0xF0 ? 0x90 : low;
        high = p[0] == 0xF4 ? 0x8F : high;
    } else {
        return 0;
    }
    if (left < length || p[1] < low || p[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < length; i++) {
        if (p[i] < 0x80 || p[i] > 0xBF) {
            return 0;
        }
    }
    return length;
}

/* Section 5.3: strings that end in NUL and are UTF-8. */
static int strings_are_good(const uint8_t *strings, size_t bytes) {
    if (bytes == 0 || bytes > MAX_STRINGS || strings[bytes - 1] != 0) {
        return 0;
    }
    for (size_t i = 0; i < bytes;) {
        size_t length = utf8_length(strings + i, bytes - i);
        if (length == 0) {
            return 0;
        }
        i += length;
    }
    return 1;
}

/* Section 5.3: a reference to the beginning of a string that is not empty. */
static int name_is_good(const uint8_t *strings, size_t bytes, uint32_t offset) {
    return offset < bytes && (offset == 0 || strings[offset - 1] == 0) && strings[offset] != 0;
}

/* Section 5.2: one tensor record but for its name. */
static xnnrt_status check_tensor(const uint8_t *record) {
    uint64_t bytes = dtype_bytes(read_u32(record + TENSOR_DTYPE));
    uint32_t rank = read_u32(record + TENSOR_RANK);
    XNNRT_REQUIRE(bytes != 0 && rank <= XNNRT_MAX_RANK, XNNRT_MALFORMED);
    XNNRT_REQUIRE(read_u32(record + TENSOR_RESERVED) == 0, XNNRT_MALFORMED);
    XNNRT_REQUIRE(all_zero(record + TENSOR_DIMS + 8 * (size_t)rank, 8 * (XNNRT_MAX_RANK - (size_t)rank)),
                  XNNRT_MALFORMED);
    for (uint32_t i = 0; i < rank; i++) {
        uint64_t dim = read_u64(record + TENSOR_DIMS + 8 * (size_t)i);
        XNNRT_REQUIRE(dim <= MAX_BYTES && (dim == 0 || bytes <= MAX_BYTES / dim), XNNRT_MALFORMED);
        bytes *= dim;
    }
    XNNRT_REQUIRE(bytes <= SIZE_MAX / 2, XNNRT_TOO_LARGE);
    return XNNRT_OK;
}

/* Section 5: the contents of META or VARI. */
static xnnrt_status check_meta(const uint8_t *meta, size_t bytes) {
    XNNRT_REQUIRE(bytes >= META_BYTES, XNNRT_MALFORMED);
    uint64_t arena = read_u64(meta + META_ARENA), scratch = read_u64(meta + META_SCRATCH);
    uint32_t ops = read_u32(meta + META_OPS), strings_bytes = read_u32(meta + META_STRINGS);
    uint32_t inputs = read_u32(meta + META_INPUTS), outputs = read_u32(meta + META_OUTPUTS);
    uint64_t prepared = read_u64(meta + META_PREPARED);
    XNNRT_REQUIRE(arena <= MAX_BYTES && scratch <= MAX_BYTES && ops <= INT32_MAX, XNNRT_MALFORMED);
    XNNRT_REQUIRE(prepared <= MAX_BYTES, XNNRT_MALFORMED);
    XNNRT_REQUIRE(inputs <= MAX_TENSORS && outputs <= MAX_TENSORS, XNNRT_MALFORMED);
    size_t tensors = (size_t)inputs + outputs, before_strings = META_BYTES + tensors * TENSOR_BYTES;
    XNNRT_REQUIRE(before_strings <= bytes && bytes - before_strings == strings_bytes, XNNRT_MALFORMED);
    const uint8_t *records = meta + META_BYTES, *strings = meta + before_strings;
    XNNRT_REQUIRE(strings_are_good(strings, strings_bytes), XNNRT_MALFORMED);
    XNNRT_REQUIRE(name_is_good(strings, strings_bytes, read_u32(meta + META_MODEL)), XNNRT_MALFORMED);
    XNNRT_REQUIRE(name_is_good(strings, strings_bytes, read_u32(meta + META_TARGET)), XNNRT_MALFORMED);
    for (size_t i = 0; i < tensors; i++) {
        const uint8_t *record = records + i * TENSOR_BYTES;
        XNNRT_REQUIRE(name_is_good(strings, strings_bytes, read_u32(record + TENSOR_NAME)), XNNRT_MALFORMED);
        xnnrt_status status = check_tensor(record);
        XNNRT_REQUIRE(status == XNNRT_OK, status);
    }
    XNNRT_REQUIRE(arena <= SIZE_MAX / 4 && scratch <= SIZE_MAX / 4 && prepared <= SIZE_MAX / 4, XNNRT_TOO_LARGE);
    return XNNRT_OK;
}

/* What differs from variant to variant, from a META or VARI that has been checked. */
static void read_variant(xnnrt_package *package, const uint8_t *meta) {
    size_t tensors = (size_t)read_u32(meta + META_INPUTS) + read_u32(meta + META_OUTPUTS);
    package->records = meta + META_BYTES;
    package->strings = (const char *)package->records + tensors * TENSOR_BYTES;
    package->op_count = (int32_t)read_u32(meta + META_OPS);
}

static size_t arena_of(const uint8_t *meta) {
    size_t arena = (size_t)read_u64(meta + META_ARENA);
    return arena == 0 ? XNNRT_ALIGNMENT : xnnrt_align(arena);
}

/* A package without states and further variants, from a META that has been checked. */
static void read_meta(xnnrt_package *package, const uint8_t *meta) {
    read_variant(package, meta);
    package->meta = meta;
    package->variant_count = 1;
    package->variant = package->first_op = 0;
    package->arena_bytes = arena_of(meta);
    package->thread_scratch_bytes = xnnrt_align((size_t)read_u64(meta + META_SCRATCH));
    package->prepared_bytes = xnnrt_align((size_t)read_u64(meta + META_PREPARED));
    package->input_count = (int32_t)read_u32(meta + META_INPUTS);
    package->output_count = (int32_t)read_u32(meta + META_OUTPUTS);
    package->state_count = 0;
    package->state_bytes = 0;
}

/* Section 6.1: the last `count` inputs and outputs are states, in pairs of the same type and shape. */
static xnnrt_status check_states(xnnrt_package *package, const uint8_t *data, size_t bytes) {
    XNNRT_REQUIRE(bytes == STAT_BYTES, XNNRT_MALFORMED);
    uint32_t count = read_u32(data), inputs = (uint32_t)package->input_count, outputs = (uint32_t)package->output_count;
    XNNRT_REQUIRE(count > 0 && count <= inputs && count <= outputs, XNNRT_MALFORMED);
    for (uint32_t i = 0; i < count; i++) {
        xnnrt_tensor tensor;
        const uint8_t *input = package->records + (inputs - count + i) * (size_t)TENSOR_BYTES;
        const uint8_t *output = package->records + (inputs + outputs - count + i) * (size_t)TENSOR_BYTES;
        for (int at = TENSOR_DTYPE; at < TENSOR_BYTES; at += 4) { /* not memcmp: it becomes bcmp, not in every libc */
            XNNRT_REQUIRE(read_u32(input + at) == read_u32(output + at), XNNRT_MALFORMED);
        }
        xnnrt_read_tensor(package, (int)(inputs - count + i), &tensor);
        XNNRT_REQUIRE(tensor.bytes <= SIZE_MAX / 8 - package->state_bytes, XNNRT_TOO_LARGE);
        package->state_bytes += xnnrt_align(tensor.bytes);
    }
    package->state_count = (int32_t)count;
    package->input_count -= package->state_count;
    package->output_count -= package->state_count;
    return XNNRT_OK;
}

static int is_same(const uint8_t *one, const uint8_t *two, size_t bytes) {
    while (bytes > 0 && *one == *two) {
        one++, two++, bytes--;
    }
    return bytes == 0;
}

/* The table's next VARI after entry *at; null when there is none. */
static const uint8_t *next_variant(const uint8_t *bytes, uint32_t *at) {
    while (*at < read_u32(bytes + HEADER_SECTIONS)) {
        const uint8_t *entry = bytes + HEADER_BYTES + (*at)++ * (size_t)ENTRY_BYTES;
        if (read_u32(entry + ENTRY_KIND) == KIND_VARI) {
            return entry;
        }
    }
    return NULL;
}

/* Section 6.2: one VARI differs from META in its arena, its operators and the dims of what is no state. */
static xnnrt_status check_variant(xnnrt_package *package, const uint8_t *entry, int32_t *ops) {
    const uint8_t *meta = package->meta, *other = package->bytes + (size_t)read_u64(entry + ENTRY_OFFSET);
    size_t bytes = (size_t)read_u64(entry + ENTRY_STORED);
    int states = package->state_count, outputs = package->input_count + states;
    int tensors = outputs + package->output_count + states;
    xnnrt_status status = check_meta(other, bytes);
    XNNRT_REQUIRE(status == XNNRT_OK, status);
    XNNRT_REQUIRE(is_same(meta + META_SCRATCH, other + META_SCRATCH, META_OPS - META_SCRATCH), XNNRT_MALFORMED);
    XNNRT_REQUIRE(is_same(meta + META_INPUTS, other + META_INPUTS, META_BYTES - META_INPUTS), XNNRT_MALFORMED);
    for (int i = 0; i < tensors; i++) {
        size_t at = META_BYTES + (size_t)i * TENSOR_BYTES;
        int is_state = i < outputs ? i >= package->input_count : i >= tensors - states;
        XNNRT_REQUIRE(is_same(meta + at, other + at, is_state ? TENSOR_BYTES : TENSOR_DIMS), XNNRT_MALFORMED);
    }
    size_t strings = META_BYTES + (size_t)tensors * TENSOR_BYTES;
    XNNRT_REQUIRE(is_same(meta + strings, other + strings, bytes - strings), XNNRT_MALFORMED);
    XNNRT_REQUIRE(read_u32(other + META_OPS) <= (uint32_t)(INT32_MAX - *ops), XNNRT_MALFORMED);
    *ops += (int32_t)read_u32(other + META_OPS);
    package->arena_bytes = arena_of(other) > package->arena_bytes ? arena_of(other) : package->arena_bytes;
    package->variant_count++;
    return XNNRT_OK;
}

static xnnrt_status check_variants(xnnrt_package *package) {
    const uint8_t *entry;
    int32_t ops = package->op_count;
    for (uint32_t at = 0; (entry = next_variant(package->bytes, &at)) != NULL;) {
        xnnrt_status status = check_variant(package, entry, &ops);
        XNNRT_REQUIRE(status == XNNRT_OK, status);
    }
    return XNNRT_OK;
}

void xnnrt_choose_variant(xnnrt_package *package, int index) {
    const uint8_t *meta = package->meta;
    uint32_t at = 0;
    package->first_op = 0;
    package->variant = index;
    for (; index > 0; index--) {
        package->first_op += (int32_t)read_u32(meta + META_OPS);
        meta = package->bytes + (size_t)read_u64(next_variant(package->bytes, &at) + ENTRY_OFFSET);
    }
    read_variant(package, meta);
}

/* Section 9 gives the order of these checks. */
xnnrt_status xnnrt_check_package(xnnrt_package *package, const uint8_t *bytes, size_t size, xnnrt_check check) {
    const uint8_t *found[KNOWN_KINDS] = {NULL, NULL, NULL, NULL}; /* table entries */
    xnnrt_crc crc;
    XNNRT_REQUIRE(size <= SIZE_MAX / 2, XNNRT_BAD_ARGUMENT);
    xnnrt_crc_init(&crc);
    xnnrt_status status = check_header(&crc, bytes, size);
    XNNRT_REQUIRE(status == XNNRT_OK, status);
    status = check_sections(&crc, bytes, size, check, found);
    XNNRT_REQUIRE(status == XNNRT_OK, status);
    package->bytes = bytes;
    package->build_id = (int64_t)read_u64(bytes + HEADER_BUILD_ID);
    package->weights = bytes + (size_t)read_u64(found[WGHT] + ENTRY_OFFSET);
    package->weights_bytes = (size_t)read_u64(found[WGHT] + ENTRY_STORED);
    package->blob_bytes = 0;
    if (read_u32(found[WGHT] + ENTRY_ENCODING) == ENCODING_CODED) {
        uint64_t blob = read_u64(found[WGHT] + ENTRY_DECODED);
        XNNRT_REQUIRE(blob > 0, XNNRT_MALFORMED);
        XNNRT_REQUIRE(blob <= SIZE_MAX / 4, XNNRT_TOO_LARGE);
        package->blob_bytes = (size_t)blob;
    }
    const uint8_t *meta = bytes + (size_t)read_u64(found[META] + ENTRY_OFFSET);
    status = check_meta(meta, (size_t)read_u64(found[META] + ENTRY_STORED));
    XNNRT_REQUIRE(status == XNNRT_OK, status);
    read_meta(package, meta);
    if (found[STAT] != NULL) {
        status = check_states(package, bytes + (size_t)read_u64(found[STAT] + ENTRY_OFFSET),
                              (size_t)read_u64(found[STAT] + ENTRY_STORED));
        XNNRT_REQUIRE(status == XNNRT_OK, status);
    }
    return check_variants(package);
}

void xnnrt_read_tensor(const xnnrt_package *package, int index, xnnrt_tensor *tensor) {
    const uint8_t *record = package->records + (size_t)index * TENSOR_BYTES;
    tensor->name = package->strings + read_u32(record + TENSOR_NAME);
    tensor->dtype = (int32_t)read_u32(record + TENSOR_DTYPE);
    tensor->rank = (int32_t)read_u32(record + TENSOR_RANK);
    tensor->bytes = dtype_bytes(read_u32(record + TENSOR_DTYPE));
    for (int i = 0; i < XNNRT_MAX_RANK; i++) {
        tensor->dims[i] = (int64_t)read_u64(record + TENSOR_DIMS + 8 * (size_t)i);
        tensor->bytes *= i < tensor->rank ? (size_t)tensor->dims[i] : 1;
    }
}

size_t xnnrt_element_bytes(const xnnrt_package *package, int index) {
    return dtype_bytes(read_u32(package->records + (size_t)index * TENSOR_BYTES + TENSOR_DTYPE));
}
