"""``.xq`` -> Imported: a network that ``xnncc compress`` wrote, with its weights still coded.

Such a file has no runtime of its own; it is judged by numpy on its own graph, from the very constants that are
built in. How far it is from the network that it was made of was measured when it was made, and stands in the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import BadModel, ShapeError, nearest
from ..ir.coded import CodedTensor, coded_table
from ..ir.graph_records import module_of
from ..ir.plan import TensorInfo
from ..pack.xq_file import XqFile, read_xq
from .evaluate import evaluate
from .imported import Imported

if TYPE_CHECKING:
    import tvm


class XqReference:
    """See ``frontends.imported.Reference``."""

    def __init__(self, mod: tvm.IRModule, inputs: tuple[TensorInfo, ...], outputs: tuple[TensorInfo, ...]) -> None:
        self._mod, self._inputs, self._outputs = mod, inputs, outputs

    @property
    def name(self) -> str:
        """What judges, for messages."""
        return f"numpy {np.__version__} on the compressed graph"

    def run(self, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the outputs by name."""
        results, _ = evaluate(self._mod, [feeds[info.name] for info in self._inputs])
        return {info.name: array for info, array in zip(self._outputs, results, strict=True)}

    def tensors(self, feeds: dict[str, np.ndarray], names: Iterable[str]) -> dict[str, np.ndarray]:
        """Return tensors by name; names that the graph has not are left out."""
        return evaluate(self._mod, [feeds[info.name] for info in self._inputs], names)[1]


def load_xq(
    path: Path,
    shapes: dict[str, tuple[int, ...]],
    samples: dict[str, np.ndarray] | None,
    *,
    check: bool = True,
) -> Imported:
    """Return the network in ``path``. Its shapes are fixed: ``shapes`` may only repeat them. There is nothing to check.

    Raises: BadModel, ShapeError.
    """
    return imported_xq(read_xq(path), path, shapes)


def imported_xq(file: XqFile, path: Path, shapes: Mapping[str, tuple[int, ...]] | None = None) -> Imported:
    """Return the network in ``file``, which was read from ``path``."""
    arrays = [one.values() if isinstance(one, CodedTensor) else one for one in file.constants]
    mod, own = module_of(file.records, arrays, str(path))
    inputs = tuple(_info(var.name, var.ty) for var in mod["main"].params)
    _check_shapes(inputs, shapes or {}, path)
    results = mod["main"].ret_ty.fields
    names = file.facts.get("outputs", [])
    if not isinstance(names, list) or len(names) != len(results) or not all(isinstance(name, str) for name in names):
        raise BadModel(f"{path}", f"{len(results)} outputs and the names {names!r}", "Get the file again.")
    outputs = tuple(_info(name, ty) for name, ty in zip(names, results, strict=True))
    coded = coded_table([one for one in file.constants if isinstance(one, CodedTensor)])
    return Imported(mod, inputs, outputs, path, own, XqReference(mod, inputs, outputs), coded=coded)


def _info(name: str, ty: Any) -> TensorInfo:
    return TensorInfo(str(name), tuple(int(dim) for dim in ty.shape.values), str(ty.dtype))


def _check_shapes(inputs: tuple[TensorInfo, ...], shapes: Mapping[str, tuple[int, ...]], path: Path) -> None:
    known = {info.name: info.shape for info in inputs}
    for name, shape in shapes.items():
        if name not in known:
            names = ", ".join(known)
            raise ShapeError(
                f"--shape {name}", f"{path} has no such input{nearest(name, list(known))}", f"Inputs: {names}."
            )
        if tuple(shape) != known[name]:
            why = f"{path} was compressed for {list(known[name])}"
            raise ShapeError(
                f"--shape {name}={','.join(map(str, shape))}", why, "Compress the original for this shape."
            )
