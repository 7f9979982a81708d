"""A whole artefact without the compiler: the hand-written model of data/tiny_model.c, linked, packed and described."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from xnncc.bindings import write_bindings
from xnncc.codegen.compile import compile_file
from xnncc.codegen.link import link_library
from xnncc.ir.plan import TensorInfo
from xnncc.pack import Package, Tensor, write, write_manifest
from xnncc.target import Target

SOURCE = Path(__file__).parent / "data" / "tiny_model.c"
COUNT = 64
BUILD_ID = 0x1234_5678_9ABC_DEF0
WEIGHTS = np.linspace(-1, 1, COUNT, dtype="float32")
INPUT = np.linspace(0, 2, COUNT, dtype="float32").reshape(1, COUNT)
EXPECTED = np.exp(INPUT * WEIGHTS)


def tiny_objects(target: Target, folder: Path, stem: str = "tiny", defines: tuple[str, ...] = ()) -> list[Path]:
    """Return the model's object for ``target``."""
    out = folder / f"xnn_{stem}.o"
    extra = [f"-DSTEM={stem}", f"-DBUILD_ID={BUILD_ID}", "-fvisibility=default", *(f"-D{d}" for d in defines)]
    compile_file(target, SOURCE, out, extra)
    return [out]


def tiny_artefact(target: Target, folder: Path, stem: str = "tiny", defines: tuple[str, ...] = ()) -> Path:
    """Return ``folder`` as 'xnncc build' would fill it."""
    folder.mkdir(parents=True, exist_ok=True)
    objects = tiny_objects(target, folder, stem, defines)
    files = link_library(target, objects, f"xnn_{stem}_graph", stem, folder)
    objects[0].unlink()
    if target.toolchain.kind == "wasm":
        ends = [(TensorInfo(name, (1, COUNT), "float32"),) for name in ("x:0", "y")]
        write_bindings("js", folder, stem, *ends)
    tensors = {"inputs": [{"name": "x:0", "shape": [1, COUNT], "dtype": "float32"}],
               "outputs": [{"name": "y", "shape": [1, COUNT], "dtype": "float32"}]}  # fmt: skip
    write(
        folder / f"{stem}.xnn",
        Package(
            name=stem, target=target.name, build_id=BUILD_ID, arena_bytes=4 * COUNT, thread_scratch_bytes=0, op_count=2,
            inputs=(Tensor("x:0", (1, COUNT), "float32"),), outputs=(Tensor("y", (1, COUNT), "float32"),),
            weights=WEIGHTS.tobytes(),
        ),
    )  # fmt: skip
    region = {"offset": 0, "size": 4 * COUNT, "shape": [1, COUNT], "dtype": "float32", "layout": "plain", "index": 0}
    manifest: dict[str, Any] = {
        "format": 1, "name": stem, "target": target.name, "build_id": BUILD_ID, "graph_symbol": f"xnn_{stem}_graph",
        **tensors, "op_count": 2, "arena_bytes": 4 * COUNT, "thread_scratch_bytes": 0, "weights_bytes": 4 * COUNT,
        "files": [
            {"path": f.name, "bytes": f.stat().st_size, "sha256": "0" * 64, "role": "library"} for f in files[:1]
        ],
        "tools": {}, "source": {"file": "tiny.onnx", "sha256": "0" * 64},
        "ops": [
            {"index": 0, "kernel": "scale", "rule": "", "source": ["t"], "outputs": [{**region, "space": "arena"}]},
            {"index": 1, "kernel": "exp", "rule": "", "source": ["y"], "outputs": [{**region, "space": "output"}]},
        ],
    }  # fmt: skip
    write_manifest(folder / "manifest.json", manifest)
    return folder
