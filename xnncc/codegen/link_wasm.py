"""WebAssembly modules that import nothing: memory, allocator and maths are inside."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from xnncc.codegen.toolchain import Tool, find_tool, find_wasi_libc, run_tool
from xnncc.errors import ToolchainError
from xnncc.target import Target

STACK_BYTES = 256 * 1024  # at address 0, so that an overflow traps instead of overwriting data
EXPORTS = (
    "aligned_alloc", "free", "xnnrt_open_memory", "xnnrt_run", "xnnrt_run_ops", "xnnrt_op_count", "xnnrt_arena",
    "xnnrt_reset", "xnnrt_variant_count", "xnnrt_use_variant", "xnnrt_set_shapes",
    "xnnrt_close", "xnnrt_strerror", "xnnrt_abi",
)  # fmt: skip


def link_module(target: Target, objects: Sequence[Path], graph_symbol: str, stem: str, out: Path) -> Path:
    """Write ``out/<stem>.wasm`` and return it.

    The function table can grow and is exported, so that JavaScript can hand the graph function to xnnrt_open_memory.
    Raises: ToolchainError, also for a module that would import something.
    """
    module = out / f"{stem}.wasm"
    options = [
        "--no-entry", "--gc-sections", "--strip-all", "--stack-first", "--export-table", "--growable-table",
        f"-zstack-size={STACK_BYTES}", *(f"--export={name}" for name in (graph_symbol, *EXPORTS)),
    ]  # fmt: skip
    linker, wasi = find_tool("linker", target), find_wasi_libc()
    if linker.family == "zig":  # its driver adds its own wasi-libc, and has a way of its own with stacks
        known = [option for option in options if "stack" not in option]
        driver = ["-target", "wasm32-wasi", "-mexec-model=reactor", *(f"-Wl,{option}" for option in known)]
        argv: list[str | Path] = [*linker.argv, *driver, *objects]
    else:
        assert wasi is not None, "without it the linker would have been zig's"
        argv = [*linker.argv, *options, *objects, wasi.archive, *_builtins(linker)]
    run_tool([*argv, "-o", module.resolve()], f"linking {module.name}")
    imports = imported_names(module.read_bytes())
    if imports:
        raise ToolchainError(f"{module.name}", f"it would import {', '.join(imports)}", "This is a fault of xnncc.")
    return module


def _builtins(linker: Tool) -> list[Path]:
    """Return compiler-rt for wasm beside the linker, when it is installed: only 128-bit and half floats need it."""
    folder = Path(linker.argv[0]).resolve().parent.parent / "lib" / "clang"
    return sorted(folder.glob("*/lib/wasi/libclang_rt.builtins-wasm32.a"))[-1:]


def imported_names(module: bytes) -> list[str]:
    """Return "module.name" of every import of a WebAssembly module (core specification, section 5.5.5)."""
    position, names = 8, []
    while position < len(module):
        kind = module[position]
        length, start = _leb(module, position + 1)
        if kind == 2:
            count, at = _leb(module, start)
            for _ in range(count):
                parts = []
                for _ in range(2):
                    size, at = _leb(module, at)
                    parts.append(module[at : at + size].decode())
                    at += size
                names.append(".".join(parts))
                at = _skip_description(module, at)
        position = start + length
    return names


def _leb(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return value, at


def _skip_description(module: bytes, at: int) -> int:
    """Return the position after an import's description: function, table, memory, global or tag."""
    kind, at = module[at], at + 1
    if kind in (0, 4):
        return _leb(module, at + (kind == 4))[1]
    if kind == 3:
        return at + 2
    flags, at = _leb(module, at + (kind == 1))
    for _ in range(2 if flags & 1 else 1):
        _, at = _leb(module, at)
    return at
