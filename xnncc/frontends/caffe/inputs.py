"""Static shapes for the inputs: from the prototxt, or from ``--shape``, which replaces them."""

from __future__ import annotations

import math
from pathlib import Path

from ...errors import ShapeError, nearest
from ...ir.plan import TensorInfo
from .convert import MAX_ELEMENTS
from .net import Net

MAX_RANK = 8


def static_inputs(path: Path, net: Net, shapes: dict[str, tuple[int, ...]]) -> tuple[TensorInfo, ...]:
    """Return the inputs in order.

    Raises:
        ShapeError: a shape that is missing, not positive, too large, or for no input.
    """
    known = [name for name, _ in net.inputs]
    for name in shapes:
        if name not in known:
            inputs = ", ".join(f"'{n}'" for n in known)
            raise ShapeError(f"--shape {name}", f"{path} has no such input{nearest(name, known)}", f"Inputs: {inputs}.")
    infos = []
    for name, declared in net.inputs:
        dims = shapes.get(name, declared)
        flag = f"Give its shape: --shape {name}=1,3,224,224"
        if not dims:
            raise ShapeError(f"{path}: input '{name}'", "has no shape", flag)
        if len(dims) > MAX_RANK:
            raise ShapeError(f"{path}: input '{name}'", f"has {len(dims)} dimensions, at most {MAX_RANK} are", flag)
        if any(dim < 1 for dim in dims):
            raise ShapeError(f"{path}: input '{name}'", f"has the shape {list(dims)}, dimensions are at least 1", flag)
        if math.prod(dims) > MAX_ELEMENTS:
            why = f"has the shape {list(dims)}, more than {MAX_ELEMENTS} elements"
            raise ShapeError(f"{path}: input '{name}'", why, flag)
        infos.append(TensorInfo(name, tuple(dims), "float32"))
    return tuple(infos)
