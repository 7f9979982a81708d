/* child.c: see child.h. */
#include "child.h"

#include "../src/affinity.h"
#include "text.h"

enum { MOST_FILES = 1024, CHILD_FILES = 256, DEEPEST = 8, TICKS_PER_SECOND = 100 };

void xnn_close_others(int keep) {
    int i;
    for (i = 3; i < MOST_FILES; i++) {
        if (i != keep) close(i);
    }
}

static void limit(int what, uint64_t most) {
    struct rlimit both;
    if (most == 0 || most >= RLIM_INFINITY) return;
    both.rlim_cur = both.rlim_max = (rlim_t)most;
    setrlimit(what, &both);
}

static void become_child(const xnn_limits *limits, const char *folder, int keep, int output, pid_t parent) {
    struct rlimit none = {0, 0};
    int nothing;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent) _exit(1); /* it died before the line above */
    signal(SIGPIPE, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0) dup2(nothing, 0);
    dup2(output, 1);
    dup2(output, 2);
    xnn_close_others(keep);
    if (chdir(folder) != 0) _exit(1);
    setrlimit(RLIMIT_CORE, &none);
    limit(RLIMIT_NOFILE, CHILD_FILES);
    limit(RLIMIT_AS, limits->memory_bytes);
    limit(RLIMIT_FSIZE, limits->file_bytes);
    limit(RLIMIT_CPU, limits->cpu_seconds);
    xnnrt_bind(limits->core_mask, NULL);
}

int xnn_child_start(xnn_child *child, const xnn_limits *limits, const char *folder, int keep, xnn_body body, void *data) {
    int ends[2];
    pid_t parent = getpid();
    memset(child, 0, sizeof *child);
    child->output = -1;
    if (pipe(ends) != 0) return 0;
    child->id = fork();
    if (child->id == 0) {
        become_child(limits, folder, keep, ends[1], parent);
        exit(body(data));
    }
    close(ends[1]);
    if (child->id < 0) {
        child->id = 0;
        close(ends[0]);
        return 0;
    }
    setpgid(child->id, child->id); /* in both, whichever runs first */
    fcntl(ends[0], F_SETFL, O_RDONLY | O_NONBLOCK);
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    child->output = ends[0];
    return 1;
}

ssize_t xnn_child_read(xnn_child *child, void *data, size_t room) {
    ssize_t got;
    if (child->output < 0) return -1;
    got = read(child->output, data, room);
    if (got > 0) return got;
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    close(child->output);
    child->output = -1;
    return -1;
}

uint32_t xnn_child_cpu_ms(const xnn_child *child) {
    char path[64], line[1024];
    const char *next = line, *last = NULL;
    uint64_t ticks = 0;
    xnn_text text;
    ssize_t got;
    int file, field;
    xnn_text_start(&text, path, sizeof path);
    xnn_text_add(&text, "/proc/");
    xnn_text_add_number(&text, (uint64_t)child->id);
    xnn_text_add(&text, "/stat");
    file = child->id > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return 0;
    got = read(file, line, sizeof line - 1);
    close(file);
    if (got <= 0) return 0;
    line[got] = 0;
    for (; *next; next++) last = *next == ')' ? next : last; /* the name in brackets may hold anything */
    if (last == NULL) return 0;
    for (next = last + 1, field = 2; *next && field < 15; next++) {
        uint64_t number = 0;
        if (*next != ' ') continue;
        field++;
        if (field != 14 && field != 15) continue; /* utime and stime */
        for (next++; *next >= '0' && *next <= '9'; next++) number = number * 10 + (uint64_t)(*next - '0');
        ticks += number;
        next--;
    }
    return (uint32_t)(ticks * (1000 / TICKS_PER_SECOND));
}

int xnn_child_has_ended(xnn_child *child) {
    int status;
    uint32_t used;
    pid_t found;
    if (child->id == 0) return 1;
    used = xnn_child_cpu_ms(child);
    child->end.cpu_ms = used > child->end.cpu_ms ? used : child->end.cpu_ms;
    found = waitpid(child->id, &status, WNOHANG);
    if (found == 0 || (found < 0 && errno == EINTR)) return 0;
    kill(-child->id, SIGKILL);
    child->end.is_signal = found > 0 && WIFSIGNALED(status);
    child->end.code = found < 0 ? 1 : child->end.is_signal ? WTERMSIG(status) : WEXITSTATUS(status);
    child->id = 0;
    return 1;
}

void xnn_child_stop(xnn_child *child) {
    while (!xnn_child_has_ended(child)) {
        kill(-child->id, SIGKILL);
        kill(child->id, SIGKILL);
        usleep(1000);
    }
    if (child->output >= 0) close(child->output);
    child->output = -1;
}

int xnn_hold_device(const char *folder) {
    char path[512];
    int file;
    if (!xnn_join(path, sizeof path, folder, "/lock", "")) return -1;
    file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) return -1;
    if (flock(file, LOCK_EX | LOCK_NB) == 0) return file;
    close(file);
    return -1;
}

static void remove_at(const char *path, int depth) {
    DIR *folder;
    struct dirent *entry;
    if (unlink(path) == 0 || errno == ENOENT || depth > DEEPEST) return;
    folder = opendir(path);
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        char inner[512];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (xnn_join(inner, sizeof inner, path, "/", entry->d_name)) remove_at(inner, depth + 1);
    }
    if (folder != NULL) closedir(folder);
    rmdir(path);
}

void xnn_remove_folder(const char *path) { remove_at(path, 0); }
