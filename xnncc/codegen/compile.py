"""Compiles C and assembler for a target with whatever compiler was found, against the headers of ``sysroot/``."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from xnncc.codegen.toolchain import Tool, find_ndk, find_tool, find_wasi_libc, run_tool
from xnncc.target import Target

SYSROOT = Path(__file__).resolve().parent / "sysroot"

_COMMON = (
    "-std=c99", "-Os", "-g0", "-fvisibility=hidden", "-ffunction-sections", "-fdata-sections", "-fno-stack-protector",
    "-fno-unwind-tables", "-fno-asynchronous-unwind-tables", "-fno-math-errno", "-Wno-unused-command-line-argument",
)  # fmt: skip
_ARCH = {
    "x86_64": ("-fPIC",),
    "aarch64": ("-fPIC", "-mno-outline-atomics"),  # outlined ones live in compiler-rt or libgcc, which we do not link
    "armv7a": ("-fPIC", "-mthumb", "-mfpu=neon", "-mfloat-abi=softfp"),  # the calls of armeabi-v7a are soft-float
    "wasm32": ("-msimd128", "-mbulk-memory"),
}
# zig has no libc for Android or iOS; with our own headers its musl and macOS targets give the same code.
_ZIG_TARGETS = {"x86_64": "x86_64-linux-musl", "aarch64": "aarch64-linux-musl", "armv7a": "arm-linux-musleabi"}


def compile_flags(tool: Tool, target: Target) -> list[str]:
    """Return the flags that every C file of this target is compiled with."""
    arch = [f for f in _ARCH[target.arch] if target.toolchain.kind == "elf" or f != "-mno-outline-atomics"]
    if tool.family == "gcc":
        return [*_quiet(_COMMON), *arch, "-nostdinc", *_include(SYSROOT / "include"), *_include(_builtin_headers(tool))]
    if tool.family == "zig":
        arch = [f for f in arch if f not in ("-mno-outline-atomics", "-mfpu=neon")]
        return [*_zig_target(target), *_COMMON, *arch, *_headers(tool, target)]
    return [f"--target={target.toolchain.triple}", *_COMMON, *arch, *_headers(tool, target)]


def _quiet(flags: Sequence[str]) -> list[str]:
    return [f for f in flags if f != "-Wno-unused-command-line-argument"]


def _include(folder: Path) -> list[str]:
    return ["-isystem", str(folder)]


def _headers(tool: Tool, target: Target) -> list[str]:
    """Return where the C library's headers are: the NDK's or wasi-libc's own, or those of ``sysroot/``."""
    libc = target.toolchain.libc
    ndk = find_ndk() if libc == "bionic" else None
    if ndk is not None and Path(tool.argv[0]).is_relative_to(ndk):
        return []
    if libc == "wasi":
        wasi = None if tool.family == "zig" else find_wasi_libc()  # zig brings its own
        return ["-nostdinc", *_include(wasi.headers), *_include(_builtin_headers(tool))] if wasi else []
    return ["-nostdinc", *_include(SYSROOT / "include"), *_include(_builtin_headers(tool))]


@cache
def _builtin_headers(tool: Tool) -> Path:
    """Return the folder of the compiler's own headers (stddef.h, stdint.h, ...)."""
    if tool.family == "zig":
        return _zig_folder() / "lib" / "include"
    if tool.family == "gcc":
        return Path(run_tool([*tool.argv, "-print-file-name=include"], "compiler query").strip())
    return Path(run_tool([*tool.argv, "-print-resource-dir"], "compiler query").strip()) / "include"


def _zig_folder() -> Path:
    spec = importlib.util.find_spec("ziglang")
    assert spec is not None and spec.origin is not None, "the zig compiler was found through this package"
    return Path(spec.origin).parent


def _zig_target(target: Target) -> list[str]:
    if target.toolchain.kind == "wasm":
        return ["-target", "wasm32-wasi"]
    if target.toolchain.kind == "macho":
        return ["-target", "aarch64-macos" if "macos" in target.toolchain.triple else "aarch64-ios"]
    android = ["-D__ANDROID__=24", "-fno-builtin-bcmp"] if target.toolchain.libc == "bionic" else []
    cpu = ["-mcpu=generic+v7a+neon"] if target.arch == "armv7a" else []
    return ["-target", _ZIG_TARGETS[target.arch], *cpu, *android]


def compile_file(target: Target, source: Path, out: Path, extra: Sequence[str] = ()) -> None:
    """Compile one ``.c`` or ``.S`` file into the object ``out``. Nothing of the machine's paths gets into it.

    Raises: ToolchainError.
    """
    tool = find_tool("compiler", target)
    argv = [*tool.argv, *compile_flags(tool, target), *extra, "-c", source.name, "-o", str(out.resolve())]
    run_tool(argv, f"compiling {source.name} for {target.name}", cwd=source.parent)
