/* store.h: blobs by their SHA-256 in the agent's folder; the ones that were not used for longest go when it is full.
 *
 * A blob's file is "<sha in hex>.<tick in hex>": the tick is raised by renaming when the blob is used, so that the order
 * of use outlives the process without an index that could be torn. */
#ifndef XNN_AGENT_STORE_H
#define XNN_AGENT_STORE_H

#include "posix.h"
#include "sha256.h"

enum { XNN_MOST_BLOBS = 1024, XNN_PATH = 512 };

typedef struct {
    uint8_t sha[XNN_SHA_BYTES];
    uint64_t bytes, tick;
    int is_checked; /* its content was hashed since the store was opened */
} xnn_blob;

typedef struct {
    char folder[XNN_PATH];
    uint64_t quota_bytes;
    uint64_t used_bytes, tick;
    xnn_blob blobs[XNN_MOST_BLOBS];
    size_t count;
    int upload; /* the open file of an upload, or -1 */
    uint8_t upload_sha[XNN_SHA_BYTES];
    uint64_t upload_bytes, upload_left;
    xnn_sha256 upload_hash;
    const char *upload_error; /* why it has failed so far, or NULL */
    int upload_kind;
} xnn_store;

/* What a store may answer; the numbers are those of ERROR frames (frames.h). */
enum { XNN_STORE_OK = 0, XNN_STORE_FULL = 2, XNN_STORE_TOO_LARGE = 3, XNN_STORE_WRONG_SHA = 4, XNN_STORE_FAILED = 7 };

/* Open (or make) "<folder>/blobs"; 0 when it cannot be made. */
int xnn_store_open(xnn_store *store, const char *folder, uint64_t quota_bytes);

/* 1 when the blob is there; it becomes the last one to go. */
int xnn_store_has(xnn_store *store, const uint8_t sha[XNN_SHA_BYTES]);

/* Begin an upload, take the next bytes of it, and, when all are there, end it: one of XNN_STORE_*, and the reason.
 * A failed upload still takes its bytes, so that the connection stays in step. */
void xnn_store_begin(xnn_store *store, const uint8_t sha[XNN_SHA_BYTES], uint64_t bytes);
int xnn_store_add(xnn_store *store, const void *data, size_t bytes); /* 0: more than was announced */
int xnn_store_end(xnn_store *store, const char **why);

/* Give up an upload that is under way. */
void xnn_store_drop_upload(xnn_store *store);

/* Write the path of a blob whose content is what its name says; 0 when it is not there (any more). */
int xnn_store_path(xnn_store *store, const uint8_t sha[XNN_SHA_BYTES], char path[XNN_PATH]);

#endif
