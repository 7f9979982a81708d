"""Static shapes for the placeholders: from the graph, and from ``--shape``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ...errors import ShapeError, UnsupportedModel, nearest
from ...ir.plan import TensorInfo
from .graph import Operation
from .tensors import MAX_ELEMENTS, MAX_RANK, SUPPORTED_DTYPES


def static_inputs(
    path: Path, placeholders: Sequence[Operation], shapes: Mapping[str, tuple[int, ...]]
) -> tuple[TensorInfo, ...]:
    """Return the inputs in order, each with a static shape.

    Raises:
        ShapeError: names the exact ``--shape`` flags to type, or the one that does not fit.
        UnsupportedModel: an input of a dtype that cannot be built.
    """
    known = [operation.name for operation in placeholders]
    for name in shapes:
        if name not in known:
            inputs = ", ".join(f"'{n}'" for n in known) or "none"
            raise ShapeError(f"--shape {name}", f"{path} has no such input{nearest(name, known)}", f"Inputs: {inputs}.")
    infos, free = [], []
    for operation in placeholders:
        dtype = str(operation.attr("dtype", "none"))
        if dtype not in SUPPORTED_DTYPES:
            why = f"input '{operation.name}' has dtype {dtype}"
            raise UnsupportedModel(f"{path}", why, f"Supported: {', '.join(SUPPORTED_DTYPES)}.")
        declared = _declared(operation)
        given = shapes.get(operation.name)
        if given is not None:
            _check_given(path, operation.name, declared, given)
        elif declared is not None and all(size >= 0 for size in declared):
            given = declared
        if given is None:
            free.append((operation.name, declared))
        else:
            infos.append(TensorInfo(operation.name, tuple(given), dtype))
    if free:
        words = ", ".join(f"input '{name}' is {_words(declared)}" for name, declared in free)
        flags = " ".join(_flag(name, _example(declared)) for name, declared in free)
        raise ShapeError(f"{path}", f"{words}: xnncc builds for fixed shapes", f"Type for example: {flags}")
    return tuple(infos)


def _declared(operation: Operation) -> tuple[int, ...] | None:
    """Return the shape with -1 for free dimensions, None for an unknown rank."""
    shape = operation.attr("shape")
    if shape is None or shape == []:
        shape = (operation.attr("_output_shapes") or [None])[0]
    return shape


def _check_given(path: Path, name: str, declared: tuple[int, ...] | None, given: tuple[int, ...]) -> None:
    if len(given) > MAX_RANK or any(size <= 0 for size in given) or np.prod(given, dtype=float) > MAX_ELEMENTS:
        why = f"needs at most {MAX_RANK} dimensions, each at least 1, and at most {MAX_ELEMENTS} elements"
        raise ShapeError(_flag(name, given), why, f"The model declares {_words(declared)}.")
    if declared is None:
        return
    if len(given) != len(declared) or any(d not in (-1, g) for d, g in zip(declared, given, strict=True)):
        why = f"does not fit input '{name}' of {path}, which is {_words(declared)}"
        raise ShapeError(_flag(name, given), why, f"Type {_flag(name, _example(declared))}.")


def _example(declared: tuple[int, ...] | None) -> tuple[int, ...]:
    """Return a shape of the right form: 1 for a batch, 224 for the sides of a picture, 32 for other free sizes."""
    sizes = declared if declared is not None else (-1,)
    other = 224 if len(sizes) == 4 else 32
    return tuple(size if size >= 0 else 1 if i == 0 else other for i, size in enumerate(sizes))


def _words(declared: tuple[int, ...] | None) -> str:
    if declared is None:
        return "of unknown rank"
    return f"[{', '.join('?' if size < 0 else str(size) for size in declared)}]"


def _flag(name: str, shape: Sequence[int]) -> str:
    return f"--shape {name}={','.join(str(size) for size in shape)}"
