/* options.c: see options.h. */
#include "options.h"

#include "text.h"
#include "wire.h"

static const char usage[] =
    "usage: xnncc-agent --port N --token-file F [--bind A.B.C.D] [--dir D] [--name NAME] [--quota-mib N]\n"
#ifdef XNN_LOADS_NONE
    "                   [--sysroot DIR]\n"
#else
    "                   [--tvm-rpc PORT | --tracker HOST:PORT] [--key K] [--sysroot DIR]\n"
#endif
    "--port 0 takes any free port; the first line on stdout is 'listening PORT'. See docs/agent.md.\n";

static int say_usage(int file) {
    ssize_t wrote = write(file, usage, sizeof usage - 1);
    (void)wrote;
    return 0;
}

static int read_port(const char *text, uint16_t *port) {
    uint64_t number;
    if (!xnn_read_number(text, 65535, &number)) return 0;
    *port = (uint16_t)number;
    return 1;
}

/* The token is the file's content without white space at its end. */
static int read_token(xnn_agent *agent, const char *path) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    uint8_t content[XNN_MOST_TOKEN + 8];
    ssize_t got = file < 0 ? -1 : read(file, content, sizeof content);
    if (file >= 0) close(file);
    if (got < 0) {
        xnn_complain(path, "the token file cannot be read");
        return 0;
    }
    while (got > 0 && content[got - 1] <= ' ') got--;
    if (got < XNN_LEAST_TOKEN || got > XNN_MOST_TOKEN) {
        xnn_complain(path, "a token has 16 to 256 bytes");
        return 0;
    }
    memcpy(agent->token, content, (size_t)got);
    agent->token_bytes = (size_t)got;
    return 1;
}

static int set_folder(xnn_agent *agent, const char *path) {
    char here[sizeof agent->folder];
    int fits;
    if (path[0] == '/') {
        fits = xnn_join(agent->folder, sizeof agent->folder, path, "", "");
    } else {
        fits = getcwd(here, sizeof here) != NULL && xnn_join(agent->folder, sizeof agent->folder, here, "/", path);
    }
    if (!fits) xnn_complain(path, "the folder's path is too long");
    return fits;
}

/* As take(), of TVM's server; an agent that loads no libraries has none. */
static int take_tvm(xnn_agent *agent, const char *name, const char *value) {
#ifdef XNN_LOADS_NONE
    (void)agent, (void)name, (void)value;
    return 0;
#else
    if (strcmp(name, "--key") == 0) {
        agent->key = value;
        return 1;
    }
    if (strcmp(name, "--tracker") == 0) {
        agent->serves_tvm = 1;
        agent->tracker = value;
        return 1;
    }
    if (strcmp(name, "--tvm-rpc") != 0) return 0;
    agent->serves_tvm = 1;
    return read_port(value, &agent->tvm_port) ? 1 : -1;
#endif
}

/* Take one option and its value; 0 when it is none of ours, -1 when the value is wrong. */
static int take(xnn_agent *agent, const char *name, const char *value, const char **token_file, const char **folder) {
    uint64_t number;
    uint32_t address;
    if (strcmp(name, "--port") == 0) {
        agent->has_port = 1;
        return read_port(value, &agent->port) ? 1 : -1;
    }
    if (strcmp(name, "--bind") == 0) {
        agent->bind = value;
        return xnn_read_address(value, &address) ? 1 : -1;
    }
    if (strcmp(name, "--quota-mib") == 0) {
        if (!xnn_read_number(value, 1 << 20, &number) || number == 0) return -1;
        agent->quota_bytes = number << 20;
        return 1;
    }
    if (strcmp(name, "--name") == 0) {
        agent->name = value;
    } else if (strcmp(name, "--sysroot") == 0) {
        agent->root = value;
    } else if (strcmp(name, "--token-file") == 0) {
        *token_file = value;
    } else if (strcmp(name, "--dir") == 0) {
        *folder = value;
    } else {
        return take_tvm(agent, name, value);
    }
    return 1;
}

int xnn_read_options(xnn_agent *agent, int argc, char **argv) {
    const char *token_file = NULL, *folder = "agent-data";
    int i;
    memset(agent, 0, sizeof *agent);
    agent->bind = "127.0.0.1";
    agent->root = agent->name = "";
    agent->key = "xnncc";
    agent->quota_bytes = (uint64_t)512 << 20;
    if (argc == 2 && strcmp(argv[1], "--help") == 0) return say_usage(1);
    for (i = 1; i < argc; i += 2) {
        int found = i + 1 < argc ? take(agent, argv[i], argv[i + 1], &token_file, &folder) : 0;
        if (found <= 0) {
            xnn_complain(argv[i], found < 0 ? "this value will not do" : "no such option, or it lacks its value");
            return say_usage(2);
        }
    }
    if (!agent->has_port && !agent->serves_tvm) return say_usage(2);
    if (agent->has_port && token_file == NULL) {
        xnn_complain("--token-file is missing", "whoever holds the token may run code here, nobody else");
        return 0;
    }
    return set_folder(agent, folder) && (token_file == NULL || read_token(agent, token_file));
}
