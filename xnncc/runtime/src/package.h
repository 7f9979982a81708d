/* package.h: a checked package. Whatever is in this struct has been bounded; docs/package.md says what it means. */
#ifndef XNNRT_PACKAGE_H
#define XNNRT_PACKAGE_H

#include "hidden.h"
#include "xnnrt.h"

typedef struct {
    const uint8_t *bytes;   /* the whole package */
    const uint8_t *meta;    /* META (section 5): variant 0 */
    int32_t variant_count;  /* at least 1 */
    int32_t variant;        /* the one that records, strings and op_count describe */
    int32_t first_op;       /* its first operator among those of the graph function */
    const uint8_t *records; /* tensor records (section 5.2), in place: inputs, states, outputs, states after a run */
    const char *strings;    /* NUL-terminated names (section 5.3), in place */
    const uint8_t *weights; /* the weights blob (section 6), in place: aligned only as far as the package is */
    size_t weights_bytes;   /* as stored */
    size_t blob_bytes;      /* that coded weights decode to (section 6.3); 0 = they are not coded */
    size_t arena_bytes;          /* planned buffers of the largest variant; a multiple of 64, at least 64 */
    size_t thread_scratch_bytes; /* a multiple of 64 */
    size_t prepared_bytes;       /* filled at open from the weights; a multiple of 64, 0 when there is nothing to do */
    int64_t build_id;
    int32_t op_count;
    int32_t input_count;
    int32_t output_count;
    int32_t state_count; /* pairs of an input and an output that the runtime keeps; not among the counts above */
    size_t state_bytes;  /* of all states once, each a multiple of 64 */
} xnnrt_package;

/* Which bytes xnnrt_check_package compares with their CRC. */
typedef enum { XNNRT_CHECK_ALL, XNNRT_CHECK_ALL_BUT_WEIGHTS } xnnrt_check;

/* Check `size` bytes at `bytes` and describe them. Returns XNNRT_OK, or a status from NOT_A_PACKAGE to TOO_LARGE but
 * WRONG_LIBRARY; then *package is unspecified. */
XNNRT_HIDDEN xnnrt_status xnnrt_check_package(xnnrt_package *package, const uint8_t *bytes, size_t size,
                                              xnnrt_check check);

/* Let a checked package describe its variant `index` [0, variant_count). */
XNNRT_HIDDEN void xnnrt_choose_variant(xnnrt_package *package, int index);

/* Describe tensor `index` [0, input_count + output_count + 2 state_count) of a checked package, in the order of records. */
XNNRT_HIDDEN void xnnrt_read_tensor(const xnnrt_package *package, int index, xnnrt_tensor *tensor);

/* Bytes of one element of that tensor: 1, 2, 4 or 8. */
XNNRT_HIDDEN size_t xnnrt_element_bytes(const xnnrt_package *package, int index);

#endif
