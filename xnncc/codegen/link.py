"""From objects to the library that the user ships: the one door, and what all object formats share.

<model>.o ...  +  runtime objects  ->  lib<stem>.so | lib<stem>.dylib | lib<stem>.a | <stem>.wasm
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from xnncc.codegen.build_runtime import runtime_objects
from xnncc.codegen.link_elf import link_shared_elf
from xnncc.codegen.link_macho import link_dylib, write_module_map
from xnncc.codegen.link_wasm import link_module
from xnncc.codegen.toolchain import find_tool, run_tool
from xnncc.target import Target


def link_library(target: Target, objects: Sequence[Path], graph_symbol: str, stem: str, out: Path) -> list[Path]:
    """Link the model's objects and the runtime into folder ``out``; return the files written.

    Only ``graph_symbol`` and ``xnnrt_*`` can be seen from outside. The same objects give the same bytes.
    Raises: ToolchainError.
    """
    written: list[Path] = []
    everything = [*objects, *runtime_objects(target)]
    for output in target.toolchain.output:
        if output == "so":
            written.append(link_shared_elf(target, everything, graph_symbol, stem, out))
        elif output == "dylib":
            written.append(link_dylib(target, everything, graph_symbol, stem, out))
        elif output == "wasm":
            written.append(link_module(target, everything, graph_symbol, stem, out))
        else:
            written.append(archive(target, everything, out / f"lib{stem}.a"))
            if target.toolchain.kind == "macho":
                written.append(write_module_map(stem, out))
    return written


def archive(target: Target, objects: Sequence[Path], out: Path) -> Path:
    """Write a static library: debug information dropped, no times, no owners, no paths.

    Raises: ToolchainError.
    """
    archiver, stripper = find_tool("archiver", target), find_tool("stripper", target)
    with tempfile.TemporaryDirectory(prefix="xnncc-") as scratch:
        members = []
        for path in objects:
            member = Path(scratch) / path.name
            assert not member.exists(), f"two objects are called {path.name}"
            shutil.copyfile(path, member)
            members.append(member.name)
        run_tool([*stripper.argv, "--strip-debug", *members], f"stripping for {out.name}", cwd=Path(scratch))
        out.unlink(missing_ok=True)  # an archiver adds to what is there
        run_tool([*archiver.argv, "rcsD", out.resolve(), *members], f"writing {out.name}", cwd=Path(scratch))
    return out
