/* main.c: the agent, started on a phone or a board, does measurements for a client elsewhere. docs/agent.md is its manual.
 *
 * The first process only accepts connections. Each is served by a process of its own, and each job of a client by a
 * further one: whatever a kernel does to its process, and a client to its session, this one stays. */
#include "child.h"
#include "options.h"
#include "session.h"
#ifndef XNN_LOADS_NONE
#include "tvm_rpc.h"
#endif

enum { MOST_SESSIONS = 16, LOOK_MS = 200, REST_MS = 1000 };

static xnn_agent agent;
static xnn_session session;

/* Fork a process that dies with this one; 0 in it. */
static pid_t start_process(void) {
    pid_t parent = getpid(), id = fork();
    if (id == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        if (getppid() != parent) _exit(1);
    }
    return id;
}

#ifdef XNN_LOADS_NONE
static int may_serve_tvm(void) { return 0; }
static int serve_tvm(void) { return 2; } /* never called: such an agent has no option for it */
#else
static struct tvm_options tvm_options(void) {
    struct tvm_options options;
    options.port = agent.tvm_port;
    options.tracker = agent.tracker;
    options.key = agent.key;
    options.folder = agent.folder;
    return options;
}

static int may_serve_tvm(void) {
    struct tvm_options options = tvm_options();
    return xnn_tvm_check(&options);
}

static int serve_tvm(void) {
    struct tvm_options options = tvm_options();
    xnn_wipe(agent.token, sizeof agent.token); /* its clients' kernels run in children of this process */
    return xnn_tvm_serve(&options);
}
#endif

/* Remove what jobs of an agent that was killed have left; not while another one is at work in the same folder. */
static void clean_folder(void) {
    struct dirent *entry;
    int lock = xnn_hold_device(agent.folder);
    DIR *entries = lock < 0 ? NULL : opendir(agent.folder);
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        char path[XNN_PATH];
        if (strncmp(entry->d_name, "job-", 4) == 0 && xnn_join(path, sizeof path, agent.folder, "/", entry->d_name)) {
            xnn_remove_folder(path);
        }
    }
    if (entries != NULL) closedir(entries);
    if (lock >= 0) close(lock);
}

/* Serve the next client in a process of its own. */
static int take_client(int listener) {
    int file = xnn_accept(listener);
    pid_t id = file < 0 ? -1 : start_process();
    if (id == 0) {
        close(listener);
        xnn_serve(&session, &agent, file);
        _exit(0);
    }
    if (file >= 0) close(file);
    return id > 0;
}

/* Count off the processes that have ended; TVM's server is started again after a rest. */
static void reap(pid_t *tvm, int *sessions) {
    int status;
    pid_t id;
    while ((id = waitpid(-1, &status, WNOHANG)) > 0) {
        if (id == *tvm) {
            xnn_complain("the TVM server", "it ended and is started again");
            *tvm = 0;
        } else {
            if (WIFSIGNALED(status)) xnn_complain("a session", "it was ended by a signal");
            (*sessions)--;
        }
    }
}

int main(int argc, char **argv) {
    int listener, sessions = 0;
    uint64_t tvm_started = 0;
    pid_t tvm = 0;
    if (!xnn_read_options(&agent, argc, argv)) return argc == 2 && strcmp(argv[1], "--help") == 0 ? 0 : 2;
    if (agent.serves_tvm && !may_serve_tvm()) return 2;
    mkdir(agent.folder, 0700);
    clean_folder();
    signal(SIGPIPE, SIG_IGN);
    if (!agent.has_port) return serve_tvm();
    listener = xnn_listen(agent.bind, &agent.port);
    if (listener < 0) {
        xnn_complain(agent.bind, "this address and port cannot be listened on");
        return 1;
    }
    xnn_say_port("listening", agent.port);
    for (;;) {
        struct pollfd one = {0, POLLIN, 0};
        one.fd = sessions < MOST_SESSIONS ? listener : -1;
        if (poll(&one, 1, LOOK_MS) > 0) sessions += take_client(listener);
        reap(&tvm, &sessions);
        if (agent.serves_tvm && tvm == 0 && (tvm_started == 0 || xnn_now_ms() - tvm_started > REST_MS)) {
            tvm_started = xnn_now_ms();
            tvm = start_process();
            if (tvm == 0) {
                close(listener);
                _exit(serve_tvm());
            }
            if (tvm < 0) tvm = 0;
        }
    }
}
