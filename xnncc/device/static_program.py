"""Candidates and measure.c in one static executable, for devices that load no libraries."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from xnncc.codegen.build_runtime import RUNTIME, runtime_objects
from xnncc.codegen.compile import compile_file
from xnncc.codegen.link_static import link_static, static_twin
from xnncc.target import Target


def static_measure(target: Target, objects: Sequence[Path], graph_symbol: str) -> bytes:
    """Return an executable that is called as measure.c is, and has the candidates' ``objects`` in it.

    Raises: ToolchainError.
    """
    twin = static_twin(target)
    with tempfile.TemporaryDirectory(prefix="xnncc-") as scratch:
        out = Path(scratch) / "measure.o"
        compile_file(twin, RUNTIME / "tools" / "measure.c", out, ["-I../include", f"-DXNN_LINKED_GRAPH={graph_symbol}"])
        program = link_static(twin, [out, *objects, *runtime_objects(twin)], Path(scratch) / "measure")
        return program.read_bytes()
