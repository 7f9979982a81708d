/* store.c: see store.h. */
#include "store.h"

#include "text.h"

static int blob_path(const xnn_store *store, const xnn_blob *blob, char path[XNN_PATH]) {
    uint8_t tick[8];
    xnn_text text;
    int i;
    for (i = 0; i < 8; i++) tick[i] = (uint8_t)(blob->tick >> (56 - 8 * i));
    xnn_text_start(&text, path, XNN_PATH);
    xnn_text_add(&text, store->folder);
    xnn_text_add(&text, "/");
    xnn_text_add_hex(&text, blob->sha, XNN_SHA_BYTES);
    xnn_text_add(&text, ".");
    xnn_text_add_hex(&text, tick, 8);
    return !text.is_cut;
}

static int upload_path(const xnn_store *store, char path[XNN_PATH]) {
    return xnn_join(path, XNN_PATH, store->folder, "/upload", "");
}

static int read_hex(const char *text, uint8_t *bytes, size_t count) {
    size_t i;
    for (i = 0; i < 2 * count; i++) {
        char c = text[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0) return 0;
        bytes[i / 2] = (uint8_t)(i % 2 ? bytes[i / 2] | digit : digit << 4);
    }
    return 1;
}

static void take_entry(xnn_store *store, const char *name) {
    xnn_blob *blob = &store->blobs[store->count];
    uint8_t tick[8];
    char path[XNN_PATH];
    off_t bytes;
    int i, file;
    if (strlen(name) != 64 + 1 + 16 || name[64] != '.' || store->count == XNN_MOST_BLOBS ||
        !read_hex(name, blob->sha, XNN_SHA_BYTES) || !read_hex(name + 65, tick, 8)) {
        if (name[0] != '.' && xnn_join(path, sizeof path, store->folder, "/", name)) unlink(path);
        return;
    }
    for (blob->tick = 0, i = 0; i < 8; i++) blob->tick = blob->tick << 8 | tick[i];
    if (!blob_path(store, blob, path)) return;
    file = open(path, O_RDONLY | O_CLOEXEC);
    bytes = file < 0 ? -1 : lseek(file, 0, SEEK_END);
    if (file >= 0) close(file);
    if (bytes < 0) return;
    blob->bytes = (uint64_t)bytes;
    blob->is_checked = 0;
    store->used_bytes += blob->bytes;
    store->tick = blob->tick > store->tick ? blob->tick : store->tick;
    store->count++;
}

int xnn_store_open(xnn_store *store, const char *folder, uint64_t quota_bytes) {
    DIR *entries;
    struct dirent *entry;
    memset(store, 0, sizeof *store);
    store->quota_bytes = quota_bytes;
    store->upload = -1;
    if (!xnn_join(store->folder, sizeof store->folder - 100, folder, "/blobs", "")) return 0;
    mkdir(store->folder, 0700);
    entries = opendir(store->folder);
    if (entries == NULL) return 0;
    while ((entry = readdir(entries)) != NULL) take_entry(store, entry->d_name);
    closedir(entries);
    return 1;
}

static xnn_blob *find(xnn_store *store, const uint8_t sha[XNN_SHA_BYTES]) {
    size_t i;
    for (i = 0; i < store->count; i++) {
        if (memcmp(store->blobs[i].sha, sha, XNN_SHA_BYTES) == 0) return &store->blobs[i];
    }
    return NULL;
}

static void forget(xnn_store *store, xnn_blob *blob) {
    char path[XNN_PATH];
    if (blob_path(store, blob, path)) unlink(path);
    store->used_bytes -= blob->bytes;
    *blob = store->blobs[--store->count];
}

static void touch(xnn_store *store, xnn_blob *blob) {
    char before[XNN_PATH], after[XNN_PATH];
    xnn_blob moved = *blob;
    moved.tick = store->tick + 1;
    if (!blob_path(store, blob, before) || !blob_path(store, &moved, after) || rename(before, after) != 0) return;
    store->tick++;
    blob->tick = moved.tick;
}

int xnn_store_has(xnn_store *store, const uint8_t sha[XNN_SHA_BYTES]) {
    xnn_blob *blob = find(store, sha);
    if (blob == NULL) return 0;
    touch(store, blob);
    return 1;
}

/* Remove the blobs that were not used for longest until `bytes` more fit. */
static void make_room(xnn_store *store, uint64_t bytes) {
    while (store->count > 0 && (store->count == XNN_MOST_BLOBS || store->used_bytes > store->quota_bytes - bytes)) {
        xnn_blob *oldest = store->blobs;
        size_t i;
        for (i = 1; i < store->count; i++) {
            if (store->blobs[i].tick < oldest->tick) oldest = &store->blobs[i];
        }
        forget(store, oldest);
    }
}

static void fail_upload(xnn_store *store, int kind, const char *why) {
    if (store->upload_error != NULL) return;
    store->upload_kind = kind;
    store->upload_error = why;
}

void xnn_store_begin(xnn_store *store, const uint8_t sha[XNN_SHA_BYTES], uint64_t bytes) {
    char path[XNN_PATH];
    xnn_store_drop_upload(store);
    memcpy(store->upload_sha, sha, XNN_SHA_BYTES);
    store->upload_bytes = store->upload_left = bytes;
    store->upload_error = NULL;
    xnn_sha256_start(&store->upload_hash);
    if (bytes > store->quota_bytes) {
        fail_upload(store, XNN_STORE_TOO_LARGE, "the file is larger than the agent's whole store (--quota-mib)");
        return;
    }
    make_room(store, bytes);
    if (!upload_path(store, path)) return;
    unlink(path);
    store->upload = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (store->upload < 0) {
        int is_full = errno == ENOSPC || errno == EDQUOT;
        fail_upload(store, is_full ? XNN_STORE_FULL : XNN_STORE_FAILED,
                    is_full ? "the device's disk is full" : "the agent's folder cannot be written");
    }
}

int xnn_store_add(xnn_store *store, const void *data, size_t bytes) {
    const char *next = data;
    if (bytes > store->upload_left) return 0;
    store->upload_left -= bytes;
    if (store->upload_error != NULL) return 1;
    xnn_sha256_add(&store->upload_hash, data, bytes);
    while (bytes > 0) {
        ssize_t wrote = write(store->upload, next, bytes);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) {
            int is_full = wrote == 0 || errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
            fail_upload(store, is_full ? XNN_STORE_FULL : XNN_STORE_FAILED,
                        is_full ? "the device's disk is full" : "the agent's folder cannot be written");
            return 1;
        }
        next += wrote;
        bytes -= (size_t)wrote;
    }
    return 1;
}

int xnn_store_end(xnn_store *store, const char **why) {
    uint8_t found[XNN_SHA_BYTES];
    char from[XNN_PATH], to[XNN_PATH];
    xnn_blob *blob, *old = find(store, store->upload_sha);
    xnn_sha256_end(&store->upload_hash, found);
    if (store->upload_error == NULL && memcmp(found, store->upload_sha, XNN_SHA_BYTES) != 0) {
        fail_upload(store, XNN_STORE_WRONG_SHA, "the bytes that came have another SHA-256 than was announced");
    }
    if (store->upload_error == NULL) {
        if (old != NULL) forget(store, old);
        blob = &store->blobs[store->count];
        memcpy(blob->sha, found, sizeof found);
        blob->bytes = store->upload_bytes;
        blob->tick = store->tick + 1;
        blob->is_checked = 1;
        if (upload_path(store, from) && blob_path(store, blob, to) && chmod(from, 0500) == 0 && rename(from, to) == 0) {
            store->tick++;
            store->count++;
            store->used_bytes += blob->bytes;
        } else {
            fail_upload(store, XNN_STORE_FAILED, "the agent's folder cannot be written");
        }
    }
    *why = store->upload_error;
    xnn_store_drop_upload(store);
    return *why == NULL ? XNN_STORE_OK : store->upload_kind;
}

void xnn_store_drop_upload(xnn_store *store) {
    char path[XNN_PATH];
    if (store->upload >= 0) close(store->upload);
    store->upload = -1;
    store->upload_left = 0;
    if (upload_path(store, path)) unlink(path);
}

static int content_is(const char *path, const uint8_t sha[XNN_SHA_BYTES]) {
    static char buffer[1 << 16];
    uint8_t found[XNN_SHA_BYTES];
    xnn_sha256 hash;
    ssize_t got = -1;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    xnn_sha256_start(&hash);
    while (file >= 0 && (got = read(file, buffer, sizeof buffer)) > 0) xnn_sha256_add(&hash, buffer, (size_t)got);
    if (file >= 0) close(file);
    xnn_sha256_end(&hash, found);
    return got == 0 && memcmp(found, sha, XNN_SHA_BYTES) == 0;
}

int xnn_store_path(xnn_store *store, const uint8_t sha[XNN_SHA_BYTES], char path[XNN_PATH]) {
    xnn_blob *blob = find(store, sha);
    if (blob == NULL) return 0;
    touch(store, blob);
    if (!blob_path(store, blob, path)) return 0;
    if (!blob->is_checked && !content_is(path, sha)) { /* it was changed on the disk: as if it had never come */
        forget(store, blob);
        return 0;
    }
    blob->is_checked = 1;
    return 1;
}
