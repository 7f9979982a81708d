"""Apple's object format: the macOS dylib, and the module map beside an iOS archive."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from xnncc.codegen.compile import SYSROOT
from xnncc.codegen.toolchain import find_tool, run_tool
from xnncc.ir.names import c_identifier
from xnncc.target import Target

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def link_dylib(target: Target, objects: Sequence[Path], graph_symbol: str, stem: str, out: Path) -> Path:
    """Write ``out/lib<stem>.dylib`` with an ad-hoc signature and return it.

    Raises: ToolchainError.
    """
    library = out / f"lib{stem}.dylib"
    platform, version = apple_platform(target)
    linker = find_tool("linker", target)
    with tempfile.TemporaryDirectory(prefix="xnncc-") as scratch:
        exports, stub = Path(scratch) / "exports.txt", Path(scratch) / "libSystem.tbd"
        exports.write_text(f"_{graph_symbol}\n_xnnrt_*\n", encoding="utf-8")
        stub.write_text(libsystem_stub(platform), encoding="utf-8")
        argv: list[str | Path] = [
            *linker.argv, "-arch", "arm64", "-platform_version", platform, version, version, "-dylib",
            "-install_name", f"@rpath/{library.name}", "-dead_strip", "-S", "-x", "-adhoc_codesign",
            "-exported_symbols_list", exports, *objects, stub, "-o", library.resolve(),
        ]  # fmt: skip
        run_tool(argv, f"linking {library.name} for {target.name}")
    return library


def apple_platform(target: Target) -> tuple[str, str]:
    """Return platform and oldest system of the triple: ("macos", "11.0")."""
    system = target.toolchain.triple.split("-")[2]
    name = system.rstrip("0123456789.")
    return name, system[len(name) :]


def libsystem_stub(platform: str) -> str:
    """Return a text stub of libSystem: https://github.com/apple/tapi, format 4."""
    data = tomllib.loads((SYSROOT / "symbols.toml").read_text(encoding="utf-8"))
    extra, functions = data["darwin"]["extra"]["libSystem"], data["functions"]
    names = sorted({*functions["libc"], *functions["libm"], *functions["libdl"], *extra} - {"dyld_stub_binder"})
    return (
        f"--- !tapi-tbd\ntbd-version: 4\ntargets: [ arm64-{platform} ]\n"
        f"install-name: '{data['darwin']['soname']['libSystem']}'\ncurrent-version: 1\nexports:\n"
        f"  - targets: [ arm64-{platform} ]\n"
        f"    symbols: [ dyld_stub_binder, {', '.join('_' + name for name in names)} ]\n...\n"
    )


def write_module_map(stem: str, out: Path) -> Path:
    """Write ``out/module.modulemap``, by which Swift and ``@import`` find the headers, and return it."""
    path = out / "module.modulemap"
    path.write_text(
        f"module {c_identifier(stem)} {{\n"
        f'    header "xnnrt.h"\n    header "{stem}.h"\n    link "{stem}"\n    export *\n}}\n',
        encoding="utf-8",
    )
    return path
