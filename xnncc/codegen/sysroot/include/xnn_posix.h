/* Declarations for our programs on devices: processes, sockets, folders. glibc and bionic of 64-bit Linux; the runtime
   itself needs none of them. Constants are the Linux kernel's generic ones, the same on x86-64 and AArch64. */
#ifndef XNN_POSIX_H
#define XNN_POSIX_H
#include <xnn_libc.h>

/* unistd.h, stdio.h, sys/stat.h, sys/file.h, sys/prctl.h */
pid_t fork(void);
pid_t getpid(void);
pid_t getppid(void);
void _exit(int) __attribute__((noreturn));
int execve(const char *, char *const[], char *const[]);
int pipe(int[2]);
int dup2(int, int);
int chdir(const char *);
char *getcwd(char *, size_t);
int unlink(const char *);
int rmdir(const char *);
int mkdir(const char *, mode_t);
int chmod(const char *, mode_t);
int rename(const char *, const char *);
int fcntl(int, int, ...);
int ftruncate(int, off_t);
int flock(int, int);
int prctl(int, ...);
#define F_GETFL 3
#define F_SETFL 4
#define F_SETFD 2
#define FD_CLOEXEC 1
#define LOCK_EX 2
#define LOCK_NB 4
#define PR_SET_PDEATHSIG 1
#define O_RDWR 2
#define O_EXCL 0200
#define O_NONBLOCK 04000

/* errno.h */
#define ESRCH 3
#define EEXIST 17
#define EFBIG 27
#define ENOSPC 28
#define EPIPE 32
#define EDQUOT 122
#define EWOULDBLOCK EAGAIN

/* signal.h, sys/wait.h */
typedef void (*sighandler_t)(int);
sighandler_t signal(int, sighandler_t);
int kill(pid_t, int);
int raise(int);
pid_t waitpid(pid_t, int *, int);
int setpgid(pid_t, pid_t);
#define SIG_DFL ((sighandler_t)0)
#define SIG_IGN ((sighandler_t)1)
#define SIGINT 2
#define SIGKILL 9
#define SIGSEGV 11
#define SIGPIPE 13
#define SIGTERM 15
#define SIGCHLD 17
#define WNOHANG 1
#define WIFEXITED(s) (((s) & 0x7f) == 0)
#define WEXITSTATUS(s) (((s) >> 8) & 0xff)
#define WIFSIGNALED(s) (((s) & 0x7f) != 0 && ((s) & 0x7f) != 0x7f)
#define WTERMSIG(s) ((s) & 0x7f)

/* sys/resource.h */
typedef unsigned long rlim_t;
struct rlimit { rlim_t rlim_cur, rlim_max; };
int getrlimit(int, struct rlimit *);
int setrlimit(int, const struct rlimit *);
#define RLIMIT_CPU 0
#define RLIMIT_FSIZE 1
#define RLIMIT_CORE 4
#define RLIMIT_NOFILE 7
#define RLIMIT_AS 9
#define RLIM_INFINITY (~(rlim_t)0)

/* poll.h */
struct pollfd { int fd; short events, revents; };
typedef unsigned long nfds_t;
int poll(struct pollfd *, nfds_t, int);
#define POLLIN 1
#define POLLOUT 4
#define POLLERR 8
#define POLLHUP 16

/* dirent.h */
typedef struct xnn_dir DIR;
struct dirent {
    uint64_t d_ino;
    int64_t d_off;
    unsigned short d_reclen;
    unsigned char d_type;
    char d_name[256];
};
DIR *opendir(const char *);
struct dirent *readdir(DIR *);
int closedir(DIR *);

/* sys/socket.h, netinet/in.h, netinet/tcp.h */
typedef unsigned int socklen_t;
typedef unsigned short sa_family_t;
struct sockaddr { sa_family_t sa_family; char sa_data[14]; };
struct in_addr { uint32_t s_addr; };
struct sockaddr_in { sa_family_t sin_family; uint16_t sin_port; struct in_addr sin_addr; unsigned char sin_zero[8]; };
int socket(int, int, int);
int bind(int, const struct sockaddr *, socklen_t);
int listen(int, int);
int accept(int, struct sockaddr *, socklen_t *);
int connect(int, const struct sockaddr *, socklen_t);
int getsockname(int, struct sockaddr *, socklen_t *);
int setsockopt(int, int, int, const void *, socklen_t);
ssize_t recv(int, void *, size_t, int);
ssize_t send(int, const void *, size_t, int);
int shutdown(int, int);
#define AF_INET 2
#define SOCK_STREAM 1
#define SOL_SOCKET 1
#define SO_REUSEADDR 2
#define SO_KEEPALIVE 9
#define SO_SNDTIMEO 21
#define IPPROTO_TCP 6
#define TCP_NODELAY 1
#define TCP_KEEPIDLE 4
#define TCP_KEEPINTVL 5
#define TCP_KEEPCNT 6
#define TCP_USER_TIMEOUT 18
#define MSG_DONTWAIT 0x40
#define MSG_PEEK 2
#define MSG_NOSIGNAL 0x4000
#define SHUT_WR 1
#endif
