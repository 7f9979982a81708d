"""Our headers and stubs against the real glibc of this machine: sizes, constants, and which versions exist."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from xnncc.codegen.compile import SYSROOT, compile_file
from xnncc.codegen.stubs import stub_table
from xnncc.target import load_target

TYPES = ["pthread_t", "pthread_mutex_t", "pthread_cond_t", "pthread_attr_t", "pthread_once_t", "pthread_key_t", "off_t",
         "ssize_t", "mode_t", "struct timespec", "clockid_t", "struct rlimit", "struct pollfd", "nfds_t",
         "struct sockaddr", "struct sockaddr_in", "socklen_t", "struct dirent", "sighandler_t"]  # fmt: skip
CONSTANTS = ["SEEK_SET", "SEEK_END", "O_RDONLY", "O_WRONLY", "O_CREAT", "O_TRUNC", "O_CLOEXEC", "PROT_READ",
             "PROT_WRITE", "MAP_SHARED", "MAP_PRIVATE", "MAP_ANONYMOUS", "MADV_WILLNEED", "_SC_PAGESIZE",
             "_SC_NPROCESSORS_CONF", "_SC_NPROCESSORS_ONLN", "EAGAIN", "ENOENT", "EINTR", "ENOMEM", "EACCES", "EBUSY",
             "EINVAL", "CLOCK_MONOTONIC", "RTLD_NOW", "PTHREAD_ONCE_INIT", "F_GETFL", "F_SETFL", "F_SETFD",
             "FD_CLOEXEC", "LOCK_EX", "LOCK_NB", "PR_SET_PDEATHSIG", "O_RDWR", "O_EXCL", "O_NONBLOCK", "ESRCH",
             "EEXIST", "EFBIG", "ENOSPC", "EPIPE", "EDQUOT", "EWOULDBLOCK", "SIGINT", "SIGKILL", "SIGSEGV", "SIGPIPE",
             "SIGTERM", "SIGCHLD", "WNOHANG", "WIFEXITED(0x700)", "WEXITSTATUS(0x700)", "WIFSIGNALED(0x8b)",
             "WIFSIGNALED(0x7f)", "WTERMSIG(0x8b)", "RLIMIT_CPU", "RLIMIT_FSIZE", "RLIMIT_CORE", "RLIMIT_NOFILE",
             "RLIMIT_AS", "RLIM_INFINITY", "POLLIN", "POLLOUT", "POLLERR", "POLLHUP", "AF_INET", "SOCK_STREAM",
             "SOL_SOCKET", "SO_REUSEADDR", "SO_KEEPALIVE", "IPPROTO_TCP", "TCP_NODELAY", "TCP_KEEPIDLE",
             "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT", "MSG_DONTWAIT", "MSG_PEEK", "MSG_NOSIGNAL", "SHUT_WR",
             "__builtin_offsetof(struct dirent, d_name)", "__builtin_offsetof(struct sockaddr_in, sin_addr)",
             "__builtin_offsetof(struct pollfd, revents)"]  # fmt: skip
HEADERS = ["pthread.h", "unistd.h", "fcntl.h", "sys/mman.h", "sys/types.h", "time.h", "errno.h", "dlfcn.h", "stdlib.h"]
# Of 64-bit Linux and Android alone.
PROCESSES = ["dirent.h", "netinet/in.h", "netinet/tcp.h", "poll.h", "signal.h", "sys/file.h", "sys/prctl.h",
             "sys/resource.h", "sys/socket.h", "sys/stat.h", "sys/wait.h"]  # fmt: skip
GLIBC = {"linux-x86-64": Path("/lib/x86_64-linux-gnu"), "linux-arm64": Path("/usr/aarch64-linux-gnu/lib")}
COMPILERS = {"linux-x86-64": "gcc", "linux-arm64": "aarch64-linux-gnu-gcc"}


@pytest.mark.parametrize("name", sorted(GLIBC))
def test_headers_agree_with_glibc(name: str, tmp_path: Path) -> None:
    compiler = shutil.which(COMPILERS[name])
    if compiler is None:
        pytest.skip(f"{COMPILERS[name]} is missing")
    lines = [f"unsigned long size_{i}[] = {{sizeof({t}), _Alignof({t})}};" for i, t in enumerate(TYPES)]
    lines += [f"long constant_{i} = {c};" for i, c in enumerate(CONSTANTS)]
    includes = "".join(f"#include <{h}>\n" for h in [*HEADERS, *PROCESSES])
    text = "#define _GNU_SOURCE\n" + includes + "\n".join(lines) + "\n"
    (tmp_path / "check.c").write_text(text)
    assembly = []
    for flags in ([], ["-nostdinc", "-isystem", str(SYSROOT / "include"), "-isystem", _own_headers(compiler)]):
        argv = [compiler, "-std=gnu11", "-S", "-o", "-", *flags, str(tmp_path / "check.c")]
        done = subprocess.run(argv, capture_output=True, text=True, check=True)
        assembly.append([line for line in done.stdout.splitlines() if re.match(r"\s+\.(quad|xword|zero)|\w+:", line)])
    assert assembly[0] == assembly[1]


def _own_headers(compiler: str) -> str:
    argv = [compiler, "-print-file-name=include"]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("name", sorted(GLIBC))
def test_glibc_has_every_stub_version(name: str) -> None:
    nm = shutil.which("nm")
    if nm is None or not (GLIBC[name] / "libc.so.6").exists():
        pytest.skip("nm or the glibc of that architecture is missing")
    for library, content in stub_table(load_target(name)).items():
        files = [GLIBC[name] / content["soname"], GLIBC[name] / "libc.so.6"]  # libdl moved into libc in 2.34
        text = "".join(
            subprocess.run([nm, "-D", str(f)], capture_output=True, text=True, check=True).stdout for f in files
        )
        real = set(re.findall(r" [TWiV] (\w+)@@?([\w.]+)", text))
        missing = [item for item in content["functions"].items() if item not in real]
        assert not missing, f"{library} has no {missing}"


@pytest.mark.parametrize("name", ["android-arm64", "android-arm32", "ios-arm64", "macos-arm64", "linux-arm64"])
def test_headers_compile_without_warnings(name: str, tmp_path: Path) -> None:
    headers = [*HEADERS, *(PROCESSES if name in ("android-arm64", "linux-arm64") else ())]
    (tmp_path / "all.c").write_text("".join(f"#include <{h}>\n" for h in headers) + "#include <sched.h>\n")
    compile_file(load_target(name), tmp_path / "all.c", tmp_path / "all.o", ["-Wall", "-Wextra", "-Werror"])


def test_bionic_sizes(tmp_path: Path) -> None:
    """As bionic's pthread_types.h has them."""
    check = "#include <pthread.h>\n" + "".join(
        f"typedef char check_{name}[sizeof(pthread_{name}_t) == SIZE_{name} ? 1 : -1];\n"
        for name in ("mutex", "cond", "attr", "once", "key")
    )
    (tmp_path / "sizes.c").write_text(check)
    for target, sizes in {"android-arm64": (40, 48, 56, 4, 4), "android-arm32": (4, 4, 24, 4, 4)}.items():
        names = ("mutex", "cond", "attr", "once", "key")
        defines = [f"-DSIZE_{n}={s}" for n, s in zip(names, sizes, strict=True)]
        compile_file(load_target(target), tmp_path / "sizes.c", tmp_path / "sizes.o", defines)
