"""Shared libraries for Linux and Android."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from xnncc.codegen.stubs import c_library
from xnncc.codegen.toolchain import Tool, find_tool, run_tool
from xnncc.target import Target

# Largest page of the systems that load the library. Android 15 has phones with 16 KiB pages
# (https://developer.android.com/guide/practices/page-sizes), Arm servers have kernels with 64 KiB.
_PAGE_BYTES = {("bionic", "aarch64"): 16384, ("bionic", "armv7a"): 16384, ("glibc", "aarch64"): 65536}


def link_shared_elf(target: Target, objects: Sequence[Path], graph_symbol: str, stem: str, out: Path) -> Path:
    """Write ``out/lib<stem>.so`` and return it: RELRO, bound at load, no text relocations, stripped.

    It needs libc, libm and libdl at most, and exports ``graph_symbol`` and ``xnnrt_*``.
    Raises: ToolchainError.
    """
    library = out / f"lib{stem}.so"
    linker = find_tool("linker", target)
    page = _PAGE_BYTES.get((target.toolchain.libc, target.arch), 16384)
    with tempfile.TemporaryDirectory(prefix="xnncc-") as scratch:
        exports = Path(scratch) / "exports.map"
        exports.write_text(f"{{ global: {graph_symbol}; xnnrt_*; local: *; }};\n", encoding="utf-8")
        argv: list[str | Path] = [
            *linker.argv, "-shared", "-soname", library.name, "-o", library.resolve(),
            "-s", "--gc-sections", "-Bsymbolic", "--build-id=none", "--hash-style=gnu", "--no-undefined", "--as-needed",
            "-z", "now", "-z", "relro", "-z", "text", "-z", "noexecstack",
            "-z", f"max-page-size={page}", "-z", f"common-page-size={min(page, 16384)}",
            *_gnu_only(linker), "--version-script", exports, *objects, *c_library(target),
        ]  # fmt: skip
        run_tool(argv, f"linking {library.name} for {target.name}")
    return library


def _gnu_only(linker: Tool) -> list[str]:
    """Return what makes GNU ld pack segments as densely as lld does: one page of padding for each otherwise."""
    return ["-z", "noseparate-code"] if linker.family == "gnu" else []


_LOADER = {
    ("glibc", "x86_64"): "/lib64/ld-linux-x86-64.so.2",
    ("glibc", "aarch64"): "/lib/ld-linux-aarch64.so.1",
    ("glibc", "armv7a"): "/lib/ld-linux.so.3",
    ("bionic", "aarch64"): "/system/bin/linker64",
    ("bionic", "armv7a"): "/system/bin/linker",
}


def link_program(target: Target, objects: Sequence[Path], program: Path, exports: bool = False) -> Path:
    """Write a position-independent executable, entered at ``_start`` of runtime/tools/start.c, and return it.

    ``exports``: libraries that it loads may use its functions of default visibility. Raises: ToolchainError.
    """
    linker = find_tool("linker", target)
    argv: list[str | Path] = [
        *linker.argv, "-pie", "--dynamic-linker", _LOADER[target.toolchain.libc, target.arch], "-e", "_start",
        "-s", "--gc-sections", "--build-id=none", "--hash-style=gnu", "--no-undefined", "--as-needed",
        "-z", "now", "-z", "relro", "-z", "noexecstack", "-z", "max-page-size=16384",
        *(["--export-dynamic"] if exports else []), *objects, *c_library(target), "-o", program,
    ]  # fmt: skip
    run_tool(argv, f"linking {program.name} for {target.name}")
    program.chmod(0o755)
    return program
