/* read_job.c: the body of a JOB frame, bounded in every field. See job.h and docs/agent.md section 5. */
#include "job.h"

enum { MOST_THREADS = 256 };

static const char *const roles[XNN_ROLES] = {"library", "package", "jobs", "inputs", "regions", "program"};

/* For each kind: how many arguments, and which files (a bit each; "program" may be there or not). */
static const struct {
    unsigned arguments, files;
} forms[] = {
    {0, 0},
    {3, 1u << XNN_LIBRARY | 1u << XNN_PACKAGE | 1u << XNN_JOBS},
    {2, 1u << XNN_LIBRARY | 1u << XNN_PACKAGE | 1u << XNN_INPUTS},
    {4, 1u << XNN_LIBRARY | 1u << XNN_PACKAGE | 1u << XNN_INPUTS},
    {2, 1u << XNN_LIBRARY | 1u << XNN_PACKAGE | 1u << XNN_INPUTS | 1u << XNN_REGIONS},
};

static int find_role(const uint8_t *name, size_t bytes) {
    int i;
    for (i = 0; i < XNN_ROLES; i++) {
        if (strlen(roles[i]) == bytes && memcmp(roles[i], name, bytes) == 0) return i;
    }
    return -1;
}

static int read_files(xnn_job *job, xnn_cursor *body, unsigned count, xnn_store *store, const char **why) {
    unsigned have = 0, i;
    for (i = 0; i < count; i++) {
        size_t bytes = xnn_take8(body);
        const uint8_t *name = xnn_take(body, bytes), *sha = xnn_take(body, XNN_SHA_BYTES);
        int role = name == NULL || sha == NULL ? -1 : find_role(name, bytes);
        if (role < 0 || have & 1u << role) {
            *why = "a file of the job has a name that no job knows, or comes twice";
            return XNN_E_BAD_JOB;
        }
        have |= 1u << role;
        if (!xnn_store_path(store, sha, job->files[role])) {
            *why = "a file of the job is not in the store; send it again";
            return XNN_E_MISSING;
        }
    }
    if ((have & ~(1u << XNN_PROGRAM)) != forms[job->kind].files) {
        *why = "the job lacks a file, or has one too many for its kind";
        return XNN_E_BAD_JOB;
    }
    return 0;
}

static int read_arguments(xnn_job *job, xnn_cursor *body, unsigned count, const char **why) {
    unsigned i;
    *why = "an argument of the job is too long, or holds a zero byte";
    for (i = 0; i < count; i++) {
        size_t bytes = xnn_take16(body), k;
        const uint8_t *text = xnn_take(body, bytes);
        if (text == NULL || bytes > XNN_MOST_ARGUMENT) return XNN_E_BAD_JOB;
        for (k = 0; k < bytes; k++) {
            if (text[k] == 0) return XNN_E_BAD_JOB;
        }
        memcpy(job->arguments[i], text, bytes);
        job->arguments[i][bytes] = 0;
    }
    job->argument_count = count;
    return 0;
}

int xnn_read_job(xnn_job *job, xnn_cursor *body, xnn_store *store, const char **why) {
    unsigned file_count, argument_count, reserved;
    int kind, i;
    memset(job, 0, offsetof(xnn_job, files));
    for (i = 0; i < XNN_ROLES; i++) job->files[i][0] = 0;
    job->kind = xnn_take8(body);
    reserved = xnn_take8(body);
    job->threads = xnn_take16(body);
    file_count = xnn_take8(body);
    argument_count = xnn_take8(body);
    reserved |= xnn_take16(body);
    job->limits.core_mask = xnn_take64(body);
    job->limits.memory_bytes = xnn_take64(body);
    job->limits.file_bytes = xnn_take64(body);
    job->output_bytes = xnn_take64(body);
    job->limits.cpu_seconds = xnn_take32(body);
    job->wall_ms = xnn_take32(body);
    job->line_wall_ms = xnn_take32(body);
    job->line_cpu_ms = xnn_take32(body);
    *why = "the job has another form";
    if (body->is_bad || reserved != 0 || job->kind < XNN_MEASURE || job->kind > XNN_TRACE) return XNN_E_BAD_JOB;
    *why = "the job's threads are not 0 to 256";
    if (job->threads > MOST_THREADS) return XNN_E_BAD_JOB;
    *why = "the job has a wrong number of arguments or files";
    if (argument_count != forms[job->kind].arguments || file_count > XNN_MOST_FILES) return XNN_E_BAD_JOB;
    kind = read_files(job, body, file_count, store, why);
    if (kind == 0) kind = read_arguments(job, body, argument_count, why);
    if (kind == 0 && (body->is_bad || body->left != 0)) {
        *why = "there are bytes behind the job";
        kind = XNN_E_BAD_JOB;
    }
    return kind;
}
