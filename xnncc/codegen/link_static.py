"""Static executables for Linux kernels, phones' too: for devices whose loader takes no libraries of ours.

The objects are those for glibc; musl has the same types, sizes and constants in all that our programs use.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from xnncc.codegen.toolchain import run_tool
from xnncc.errors import ToolchainError
from xnncc.host_cpu import host_architecture
from xnncc.target import Target


def static_twin(target: Target) -> Target:
    """Return ``target`` with glibc in the place of bionic: what a static executable for it is compiled for."""
    if target.toolchain.libc == "glibc":
        return target
    chain = replace(target.toolchain, libc="glibc", triple=f"{target.arch}-linux-gnu")
    return replace(target, name=f"{target.name} static", toolchain=chain)


def link_static(target: Target, objects: Sequence[Path], program: Path, is_small: bool = False) -> Path:
    """Write an executable that needs nothing but the kernel, entered at ``main``, and return it.

    ``is_small``: rather with musl, which adds about 10 KiB where glibc adds 560, than quickly.
    Raises: ToolchainError.
    """
    for linker in [*_zig(target), *_gnu(target)] if is_small else [*_gnu(target), *_zig(target)]:
        run_tool([*linker, "-static", "-s", "-Wl,--gc-sections", *objects, "-o", program], f"linking {program.name}")
        program.chmod(0o755)
        return program
    hint = f"Install one: apt-get install gcc-{target.arch.replace('_', '-')}-linux-gnu (or: pip install ziglang)"
    raise ToolchainError(f"target '{target.name}'", "nothing here links static executables for it", hint)


def _gnu(target: Target) -> Iterator[list[str]]:
    """Yield a GNU compiler that has a static C library."""
    names = [f"{target.arch}-linux-gnu-gcc", *(["gcc"] if target.arch == host_architecture() else [])]
    for name in names:
        path = shutil.which(name)
        if path and Path(run_tool([path, "-print-file-name=libc.a"], "compiler query").strip()).is_absolute():
            yield [path]


def _zig(target: Target) -> Iterator[list[str]]:
    """Yield zig, whose first use builds musl: that takes half a minute."""
    if importlib.util.find_spec("ziglang"):
        yield [sys.executable, "-m", "ziglang", "cc", "-target", f"{target.arch}-linux-musl"]
