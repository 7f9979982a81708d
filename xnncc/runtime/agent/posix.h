/* posix.h: the system's headers that the agent uses; every file of the agent includes it first. No stdio: the same
 * source runs on glibc and on bionic. */
#ifndef XNN_AGENT_POSIX_H
#define XNN_AGENT_POSIX_H

#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int rename(const char *from, const char *to); /* which C keeps in stdio.h */

#endif
