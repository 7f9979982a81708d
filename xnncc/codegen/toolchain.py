"""Finds the compiler, linker, archiver and stripper of a target, and says what to install when there is none.

Search order, for each tool: what the target file names; for Android the NDK of ``$ANDROID_NDK_HOME``; LLVM's tools on
PATH, newest first (``clang-22``, ..., ``clang``); GNU tools where they do (Linux targets); the ``ziglang`` package.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from xnncc.errors import ToolchainError
from xnncc.target import Target

NEWEST_LLVM, OLDEST_LLVM = 30, 14  # the range of versioned names that is looked for; 14 is the oldest tried

INSTALL = {
    "elf": "apt-get install clang lld",
    "macho": "apt-get install clang lld llvm",
    "wasm": "apt-get install clang lld wasi-libc",
}
_WORDS = {"macho": "Mach-O", "elf": "ELF", "wasm": "WebAssembly"}
_ROLES = {
    "compiler": {"elf": "clang", "macho": "clang", "wasm": "clang"},
    "linker": {"elf": "ld.lld", "macho": "ld64.lld", "wasm": "wasm-ld"},
    "archiver": {"elf": "llvm-ar", "macho": "llvm-ar", "wasm": "llvm-ar"},
    "stripper": {"elf": "llvm-strip", "macho": "llvm-strip", "wasm": "llvm-strip"},
}
_ZIG = {"clang": "cc", "ld.lld": "ld.lld", "wasm-ld": "wasm-ld", "llvm-ar": "ar"}


@dataclass(frozen=True)
class Tool:
    """One program: how to call it and which family's flags it takes ("clang", "gcc", "lld", "gnu", "zig")."""

    argv: tuple[str, ...]
    family: str

    @property
    def version(self) -> str:
        """First line of ``--version``; part of every cache key."""
        return _version(self.argv)


@cache
def _version(argv: tuple[str, ...]) -> str:
    done = subprocess.run([*argv, "--version"], capture_output=True, text=True, check=False)
    text = done.stdout or done.stderr
    return text.splitlines()[0].strip() if text else argv[-1]


def find_tool(role: str, target: Target) -> Tool:
    """Return the tool for ``role`` ("compiler", "linker", "archiver", "stripper") on ``target``.

    Raises: ToolchainError with the command that installs one.
    """
    chain = target.toolchain
    named = {"compiler": chain.cc, "linker": chain.ld}.get(role, "")
    if named:
        path = shutil.which(named)
        if path is None:
            raise ToolchainError(f"target '{target.name}'", f"its {role} '{named}' is not on PATH", "Change the file.")
        return Tool((path,), _family(role, named))
    for tool in _candidates(role, target):
        return tool
    what = _ROLES[role][chain.kind] + (" and wasi-libc" if chain.kind == "wasm" else "")
    hint = INSTALL["macho"] if role in ("archiver", "stripper") else INSTALL[chain.kind]
    zig = "" if chain.kind == "macho" else " (or: pip install ziglang)"
    why = f"no {role} for {_WORDS[chain.kind]} was found"
    raise ToolchainError(f"target '{target.name}' needs {what}", why, f"Install it: {hint}{zig}")


def find_ndk() -> Path | None:
    """Return the NDK's ``toolchains/llvm/prebuilt/<host>`` folder when ``$ANDROID_NDK_HOME`` is set.

    Raises: ToolchainError when the variable is set and no NDK is there.
    """
    home = os.environ.get("ANDROID_NDK_HOME")
    if not home:
        return None
    for folder in sorted(Path(home).glob("toolchains/llvm/prebuilt/*")):
        if (folder / "bin" / "clang").exists():
            return folder
    next_step = "Point it at an NDK, or unset it to build without one."
    raise ToolchainError(f"ANDROID_NDK_HOME='{home}'", "no toolchains/llvm/prebuilt/*/bin/clang in it", next_step)


@dataclass(frozen=True)
class WasiLibc:
    """Where wasi-libc's headers and archive are."""

    headers: Path
    archive: Path


def find_wasi_libc() -> WasiLibc | None:
    """Return the wasi-libc of ``$WASI_SYSROOT``, or Debian's, or None."""
    own = os.environ.get("WASI_SYSROOT")
    pairs = [(Path(own) / "include", Path(own) / "lib")] if own else []
    for include, lib in [*pairs, (Path("/usr/include"), Path("/usr/lib"))]:
        for flavour in ("wasm32-wasi", "wasm32-wasip1"):
            headers = include / flavour if (include / flavour).is_dir() else include
            if (lib / flavour / "libc.a").is_file() and (headers / "wasi").is_dir():
                return WasiLibc(headers, lib / flavour / "libc.a")
    return None


def _candidates(role: str, target: Target) -> Iterator[Tool]:
    kind = target.toolchain.kind
    name = _ROLES[role][kind]
    if kind == "wasm" and role in ("compiler", "linker") and find_wasi_libc() is None:
        yield from _zig("clang")  # it has a wasi-libc of its own, but only for its own linker driver
        return
    ndk = find_ndk() if target.toolchain.libc == "bionic" else None
    if ndk and (ndk / "bin" / name).exists():
        yield Tool((str(ndk / "bin" / name),), _family(role, name))
    for versioned in [*(f"{name}-{v}" for v in range(NEWEST_LLVM, OLDEST_LLVM - 1, -1)), name]:
        if path := shutil.which(versioned):
            yield Tool((path,), _family(role, name))
    if target.toolchain.libc == "glibc":
        gnu = {"compiler": "gcc", "linker": "ld", "archiver": "ar", "stripper": "strip"}[role]
        for full in _gnu_names(gnu, target):
            if path := shutil.which(full):
                yield Tool((path,), _family(role, gnu))
    yield from _zig(name)


def _zig(name: str) -> Iterator[Tool]:
    if name in _ZIG and importlib.util.find_spec("ziglang"):
        family = "zig" if _ZIG[name] == "cc" else "lld"
        yield Tool((sys.executable, "-m", "ziglang", _ZIG[name]), family)


def _gnu_names(tool: str, target: Target) -> list[str]:
    """Return the cross tool's name, and the plain one when the target is this machine's own architecture."""
    from xnncc.host_cpu import host_architecture

    cross = f"{target.arch}-linux-gnu-{tool}"
    return [cross, tool] if host_architecture() == target.arch else [cross]


def _family(role: str, name: str) -> str:
    if role == "compiler":
        return "gcc" if "gcc" in name else "clang"
    return "lld" if "lld" in name or "wasm-ld" in name or "llvm" in name else "gnu"


def run_tool(argv: Sequence[str | Path], what: str, cwd: Path | None = None) -> str:
    """Run a tool to its end and return its stdout.

    Raises: ToolchainError with the tool's own first complaints.
    """
    try:
        done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, cwd=cwd, check=False)
    except OSError as error:
        raise ToolchainError(f"{what}: '{argv[0]}' cannot be started", error.strerror or str(error)) from None
    if done.returncode != 0:
        lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        complaints = [line for line in lines if re.search(r"error|undefined|cannot", line)] or lines
        raise ToolchainError(f"{what} failed", "; ".join(complaints[:4]) or f"exit code {done.returncode}")
    return done.stdout


@dataclass(frozen=True)
class Fact:
    """One line of ``xnncc doctor``: something found or missing, and what that means."""

    subject: str  # the target
    found: str  # tools and versions; "" when something is missing
    purpose: str  # "build" or "run", with what is missing
    install: str  # the command that helps; "" when found


def describe_toolchains() -> list[Fact]:
    """Return what can be built here and, for targets that something here can run, what runs them."""
    from xnncc.codegen.doctor import describe_target
    from xnncc.target import list_targets

    return [fact for name in list_targets() for fact in describe_target(name)]
