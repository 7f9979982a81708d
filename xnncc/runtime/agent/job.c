/* job.c: see job.h. */
#include "job.h"

enum { LOOK_MS = 50, PACE_MS = 5, MOST_WORDS = 16 };

typedef struct {
    const xnn_job *job;
    xnn_session *session;
} task;

/* In the child: call the program, ours or the one that came with the job. */
static int work(void *data) {
    static char *nothing[1];
    xnn_session *session = ((task *)data)->session;
    const xnn_job *job = ((task *)data)->job;
    const char *words[MOST_WORDS];
    char threads[8], **argv = (char **)(uintptr_t)words; /* main()'s type; nobody writes there */
    int is_measure = job->kind == XNN_MEASURE, count = 0;
    xnn_text text;
    /* What runs from here on is not ours, and need not know how to talk to the agent. */
    xnn_wipe(session->key, sizeof session->key);
    xnn_wipe(session->agent->token, sizeof session->agent->token);
    xnn_text_start(&text, threads, sizeof threads);
    xnn_text_add_number(&text, job->threads);
    words[count++] = is_measure ? "measure" : "runner";
    if (!is_measure) words[count++] = job->kind == XNN_RUN ? "run" : job->kind == XNN_TIME ? "time" : "trace";
    words[count++] = job->files[XNN_LIBRARY];
    words[count++] = job->files[XNN_PACKAGE];
    words[count++] = job->arguments[0];
    words[count++] = threads;
    if (!is_measure) words[count++] = job->arguments[1];
    words[count++] = job->files[is_measure ? XNN_JOBS : XNN_INPUTS];
    words[count++] = "outputs";
    if (is_measure) words[count++] = job->arguments[1];
    if (is_measure || job->kind == XNN_TIME) words[count++] = job->arguments[2];
    if (job->kind == XNN_TIME) words[count++] = job->arguments[3];
    if (job->kind == XNN_TRACE) words[count++] = job->files[XNN_REGIONS];
    words[count] = NULL;
    if (job->files[XNN_PROGRAM][0]) {
        execve(job->files[XNN_PROGRAM], argv, nothing);
        xnn_complain("program", "the system does not start it");
        return 1;
    }
    return is_measure ? xnn_measure_main(count, argv) : xnn_runner_main(count, argv);
}

/* What was seen of a running job. */
typedef struct {
    xnn_child child;
    uint64_t started, heard; /* ms; when it last said something */
    uint32_t cpu_heard;
    uint64_t said; /* bytes */
    int how, code;
} watch;

/* Pass on what the child says; 0 when there is nothing now. */
static int pass_on(xnn_session *session, const xnn_job *job, watch *seen) {
    ssize_t got = xnn_child_read(&seen->child, xnn_body_out(session), 1 << 16);
    if (got <= 0) return 0;
    seen->heard = xnn_now_ms();
    seen->cpu_heard = xnn_child_cpu_ms(&seen->child);
    seen->said += (uint64_t)got;
    if (seen->said > job->output_bytes) {
        seen->how = XNN_TOO_MUCH;
        return 0;
    }
    return xnn_send(session, XNN_OUTPUT, (size_t)got);
}

/* What the client says meanwhile: nothing, PING or CANCEL. */
static void listen_to_client(xnn_session *session, watch *seen) {
    uint8_t type;
    xnn_cursor body;
    if (!xnn_receive(session, &type, &body)) return;
    if (type == XNN_CANCEL && body.left == 0) {
        seen->how = XNN_CANCELLED;
    } else if (type == XNN_PING && body.left == 0) {
        xnn_body_out(session)[0] = 1;
        xnn_send(session, XNN_OK, 1);
    } else {
        xnn_send_error(session, XNN_E_PROTOCOL, "during a job there is only PING and CANCEL");
        session->is_over = 1;
    }
}

static void lose_patience(const xnn_job *job, watch *seen) {
    uint64_t now = xnn_now_ms();
    uint32_t used = xnn_child_cpu_ms(&seen->child);
    if (job->wall_ms > 0 && now - seen->started > job->wall_ms) {
        seen->how = XNN_TOO_LONG;
    } else if (job->line_wall_ms > 0 && now - seen->heard > job->line_wall_ms) {
        seen->how = XNN_STILL;
        seen->code = 1;
    } else if (job->line_cpu_ms > 0 && used > seen->cpu_heard && used - seen->cpu_heard > job->line_cpu_ms) {
        seen->how = XNN_STILL;
    }
}

/* Look after the child until it ends, is ended, or the client goes. */
static void look_after(xnn_session *session, const xnn_job *job, watch *seen) {
    uint32_t look_ms = LOOK_MS;
    int has_ended = 0;
    seen->started = seen->heard = xnn_now_ms();
    while (!has_ended && !session->is_over && seen->how == XNN_ENDED) {
        int ready = xnn_wire_wait(&session->wire, look_ms == LOOK_MS ? seen->child.output : -1, look_ms);
        if (ready & XNN_WIRE_GONE) session->is_over = 1;
        if (ready & XNN_WIRE_READABLE) listen_to_client(session, seen);
        /* After some words wait a little for more: a frame for each line would disturb what is timed. */
        look_ms = pass_on(session, job, seen) || seen->child.output < 0 ? PACE_MS : LOOK_MS;
        has_ended = xnn_child_has_ended(&seen->child);
        if (!has_ended && seen->how == XNN_ENDED) lose_patience(job, seen);
    }
    while (has_ended && pass_on(session, job, seen)) continue;
    xnn_child_stop(&seen->child);
    if (seen->how == XNN_ENDED) {
        seen->how = seen->child.end.is_signal ? XNN_SIGNALLED : XNN_ENDED;
        seen->code = seen->child.end.code;
    }
}

static void send_outputs(xnn_session *session, const char *path) {
    ssize_t got = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    while (file >= 0 && (got = read(file, xnn_body_out(session), XNN_MOST_BODY)) > 0) {
        if (!xnn_send(session, XNN_FILE, (size_t)got)) break;
    }
    if (file >= 0) close(file);
}

static void send_done(xnn_session *session, const watch *seen) {
    uint8_t *body = xnn_body_out(session);
    xnn_put32(body, (uint32_t)seen->how);
    xnn_put32(body + 4, (uint32_t)seen->code);
    xnn_put32(body + 8, (uint32_t)(xnn_now_ms() - seen->started));
    xnn_put32(body + 12, seen->child.end.cpu_ms);
    xnn_send(session, XNN_DONE, 16);
}

void xnn_do_job(xnn_session *session, xnn_cursor *body) {
    static xnn_job job;
    static watch seen;
    char folder[XNN_PATH], outputs[XNN_PATH];
    const char *why;
    xnn_text path;
    task both;
    int kind = xnn_read_job(&job, body, &session->store, &why);
    if (kind != 0) {
        xnn_send_error(session, (uint16_t)kind, why);
        return;
    }
    xnn_text_start(&path, folder, sizeof folder);
    xnn_text_add(&path, session->agent->folder);
    xnn_text_add(&path, "/job-");
    xnn_text_add_number(&path, (uint64_t)getpid());
    xnn_join(outputs, sizeof outputs, folder, "/outputs", "");
    xnn_remove_folder(folder);
    both.job = &job;
    both.session = session;
    memset(&seen, 0, sizeof seen);
    if (mkdir(folder, 0700) != 0) {
        xnn_send_error(session, errno == ENOSPC || errno == EDQUOT ? XNN_E_FULL : XNN_E_SYSTEM,
                       "the agent's folder cannot be written");
        return;
    }
    xnn_send_status(session, 1);
    if (xnn_child_start(&seen.child, &job.limits, folder, -1, work, &both)) {
        look_after(session, &job, &seen);
        xnn_send_status(session, 2);
        send_outputs(session, outputs);
        xnn_remove_folder(folder);
        send_done(session, &seen);
    } else {
        xnn_remove_folder(folder);
        xnn_send_error(session, XNN_E_SYSTEM, "the system starts no child process");
    }
}
