"""Stub libraries: empty functions under the right names and versions, all that a linker wants of a C library."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from xnncc.codegen.cache import cached, content_key
from xnncc.codegen.compile import SYSROOT, compile_file
from xnncc.codegen.toolchain import find_ndk, find_tool, run_tool
from xnncc.target import Target

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_ARM_SYNTAX = "%"  # '@' starts a comment in Arm assembler, so '.type' takes '%function' there; every other takes both


def c_library(target: Target) -> list[Path]:
    """Return the shared libraries to link an ELF target against: the NDK's, or stubs built and cached here.

    Raises: ToolchainError.
    """
    ndk = find_ndk() if target.toolchain.libc == "bionic" else None
    if ndk is not None:
        triple, level = _ndk_triple(target.toolchain.triple)
        folder = ndk / "sysroot" / "usr" / "lib" / triple / level
        return [folder / f"{name}.so" for name in ("libc", "libm", "libdl")]
    table = stub_table(target)
    key = content_key([repr(sorted(table.items())), target.toolchain.triple, find_tool("linker", target).version])
    folder = cached("stubs", f"{target.toolchain.libc}-{target.arch}-{key}", lambda aside: _build(target, table, aside))
    return [folder / f"{name}.so" for name in table]


def _ndk_triple(triple: str) -> tuple[str, str]:
    """Return the folder names of an Android triple: ("aarch64-linux-android", "24")."""
    bare = triple.rstrip("0123456789")
    return bare.replace("armv7a-", "arm-"), triple[len(bare) :]


def stub_table(target: Target) -> dict[str, dict[str, Any]]:
    """Return, for each library, its soname and the version of each function."""
    data = tomllib.loads((SYSROOT / "symbols.toml").read_text(encoding="utf-8"))
    family = data[target.toolchain.libc]
    arch = family[target.arch]
    return {
        library: {
            "soname": soname,
            "functions": {
                name: arch.get("since", {}).get(name, arch["version"])
                for name in sorted([*data["functions"][library], *family.get("extra", {}).get(library, [])])
            },
        }
        for library, soname in family["soname"].items()
    }


def _build(target: Target, table: dict[str, dict[str, Any]], folder: Path) -> None:
    for library, content in table.items():
        functions: dict[str, str] = content["functions"]
        shared_library(target, library, content["soname"], functions, _empty_functions(functions), [], folder)


def _empty_functions(functions: dict[str, str]) -> str:
    return "".join(
        f".globl {name}\n.type {name}, {_ARM_SYNTAX}function\n{name}:\n.word 0\n.size {name}, .-{name}\n"
        for name in functions
    )


def shared_library(
    target: Target,
    stem: str,
    soname: str,
    functions: dict[str, str],
    assembly: str,
    needed: list[Path],
    folder: Path,
) -> Path:
    """Assemble and link ``folder/<stem>.so`` that defines ``functions`` under their versions, and return it."""
    versions = sorted(set(functions.values()))
    script = "".join(
        f"{version} {{ global: {' '.join(f'{name};' for name, v in functions.items() if v == version)} }};\n"
        for version in versions
    )
    source, object_file, map_file = folder / f"{stem}.S", folder / f"{stem}.o", folder / f"{stem}.map"
    source.write_text(f'.text\n{assembly}.section .note.GNU-stack,"",{_ARM_SYNTAX}progbits\n', encoding="utf-8")
    map_file.write_text(script, encoding="utf-8")
    compile_file(target, source, object_file)
    linker = find_tool("linker", target)
    argv: list[str | Path] = [
        *linker.argv,
        "-shared",
        "-soname",
        soname,
        "--hash-style=gnu",
        "--version-script",
        map_file,
    ]
    run_tool([*argv, object_file, *needed, "-o", folder / f"{stem}.so"], f"linking the stub {stem}.so")
    return folder / f"{stem}.so"
