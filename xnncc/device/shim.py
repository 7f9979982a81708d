"""A bionic-ABI shim over glibc: ``libc.so``, ``libm.so``, ``libdl.so`` that let an Android library run under qemu-user.

It is a shim and not bionic. It has bionic's symbol versions, struct sizes and constants, as far as the runtime uses
them, over Debian's glibc for the same architecture. What runs on it has the right format, calls and numbers; what
Android's own linker and C library would say to it remains unproven.

Two layers, so that the shim's own calls reach glibc and not itself:
libc.so (version LIBC, each function one jump) -> libreal.so (r_*: runtime/tools/bionic_shim.c, or a jump) -> glibc.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from xnncc.codegen.build_runtime import RUNTIME
from xnncc.codegen.cache import cached, content_key
from xnncc.codegen.compile import SYSROOT, compile_file
from xnncc.codegen.stubs import c_library, shared_library, stub_table
from xnncc.codegen.toolchain import find_tool, run_tool
from xnncc.target import Target

_GLIBC_TRIPLE = {
    "aarch64": "aarch64-linux-gnu",
    "armv7a": "armv7a-linux-gnueabi",
}  # gnueabi: soft-float calls, as bionic
_SOURCE = RUNTIME / "tools" / "bionic_shim.c"


def bionic_shim(target: Target) -> Path:
    """Return the folder of the shim for an Android target, built on demand and cached. Raises: ToolchainError."""
    chain = replace(target.toolchain, libc="glibc", triple=_GLIBC_TRIPLE[target.arch])
    glibc = replace(target, name=f"{target.name} shim", toolchain=chain)
    headers = [SYSROOT / "include" / "xnn_libc.h", SYSROOT / "symbols.toml", Path(__file__)]
    key = content_key([find_tool("compiler", glibc).version, _SOURCE, *headers])
    return cached("shim", f"{target.arch}-{key}", lambda folder: _build(target, glibc, folder))


def _build(target: Target, glibc: Target, folder: Path) -> None:
    table = stub_table(target)
    wrapped = set(re.findall(r"\br_(\w+)\(", _SOURCE.read_text(encoding="utf-8")))
    for name in ("mutex", "cond"):
        wrapped |= {f"pthread_{name}_init", f"pthread_{name}_destroy"}
    names = [name for library in table.values() for name in library["functions"]]
    jumps, wrappers = folder / "jumps.S", folder / "wrappers.o"
    jumps.write_text(
        ".text\n" + "".join(_jump(target, f"r_{n}", n) for n in names if n not in wrapped), encoding="utf-8"
    )
    compile_file(glibc, _SOURCE, wrappers)
    compile_file(glibc, jumps, folder / "jumps.o")
    real = folder / "libreal.so"
    argv = [*find_tool("linker", glibc).argv, "-shared", "-soname", real.name, "--hash-style=gnu", "--no-undefined"]
    run_tool([*argv, wrappers, folder / "jumps.o", *c_library(glibc), "-o", real], "linking the bionic shim")
    for stem, library in table.items():
        assembly = "".join(_jump(target, name, f"r_{name}") for name in library["functions"])
        shared_library(glibc, stem, library["soname"], library["functions"], assembly, [real], folder)


def _jump(target: Target, name: str, destination: str) -> str:
    mode = ".arm\n" if target.arch == "armv7a" else ""
    return (
        f"{mode}.p2align 2\n.globl {name}\n.type {name}, %function\n{name}:\nb {destination}\n.size {name}, .-{name}\n"
    )
