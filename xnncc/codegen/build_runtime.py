"""The runtime's objects for one target, compiled once per machine and kept in the user's cache."""

from __future__ import annotations

from pathlib import Path

from xnncc.codegen.cache import cached, content_key
from xnncc.codegen.compile import SYSROOT, compile_file, compile_flags
from xnncc.codegen.toolchain import find_tool
from xnncc.target import Target

RUNTIME = Path(__file__).resolve().parent.parent / "runtime"
_WASM_MACROS = ("-DXNNRT_NO_THREADS", "-DXNNRT_NO_FILE", "-DXNNRT_NO_MMAP")


def runtime_objects(target: Target, runtime: Path = RUNTIME) -> list[Path]:
    """Return the object files of ``runtime/src``, sorted by name; compiled when the cache lacks them.

    Raises: ToolchainError, OutputError.
    """
    sources = sorted((runtime / "src").glob("*.c"))
    extra = [*(_WASM_MACROS if target.toolchain.kind == "wasm" else ()), "-I../include"]
    arm = [SYSROOT / "arm_builtins.c"] if target.arch == "armv7a" else []
    tool = find_tool("compiler", target)
    headers = sorted([*runtime.rglob("*.h"), *SYSROOT.rglob("*.h")])
    flags = [f.replace(str(SYSROOT), "sysroot") for f in compile_flags(tool, target)]
    names = [p.name for p in [*sources, *arm, *headers]]
    key = content_key([tool.version, *flags, *extra, *names, *sources, *arm, *headers])

    def make(folder: Path) -> None:
        for source in [*sources, *arm]:
            own = [*extra, "-ffreestanding"] if source in arm else extra
            compile_file(target, source, folder / f"xnnrt_{source.stem}.o", own)

    folder = cached("runtime", f"{target.toolchain.triple}-{key}", make)
    return sorted(folder.glob("*.o"))
