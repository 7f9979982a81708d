"""Links single objects with stand-ins in C and loads them into this process."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path

from xnncc.codegen.compile import compile_file
from xnncc.codegen.toolchain import find_tool, run_tool
from xnncc.target import load_target

DATA = Path(__file__).parent / "data"


def load_objects(folder: Path, objects: Sequence[Path], stand_in: str) -> ctypes.CDLL:
    """Return ``objects`` and ``tests/data/<stand_in>`` as one loaded library."""
    host = load_target("host")
    other, library = folder / f"{stand_in}.o", folder / "lib.so"
    compile_file(host, DATA / stand_in, other, ["-fvisibility=default"])
    linker = find_tool("linker", host)
    run_tool([*linker.argv, "-shared", "-Bsymbolic", "-o", library, *objects, other], "linking")
    return ctypes.CDLL(str(library))
