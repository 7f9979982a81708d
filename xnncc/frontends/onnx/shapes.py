"""Static shapes for the inputs: from the model, from ``--shape``, and from names of dimensions that inputs share.

A dimension with a name (``batch``) is one number in the whole model, so a shape given for one input also fixes the
same names in the others. Shapes of all other tensors follow while the nodes are converted: every value there is
either a constant or has a static type, which is shape inference with data propagation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from ...errors import BadModel, ShapeError, UnsupportedModel, nearest
from ...ir.plan import DTYPE_BYTES, TensorInfo

MAX_RANK = 8
MAX_ELEMENTS = 2**28  # of any one tensor, 1 GiB in float32: no network for a device has a larger one
SUPPORTED_DTYPES = tuple(name for name in DTYPE_BYTES if name != "bfloat16")


@dataclass(frozen=True)
class _Declared:
    """An input as the file declares it; a free dimension is its name, or "?"."""

    name: str
    dims: tuple[int | str, ...] | None  # None: not even the rank is known
    dtype: str


def static_inputs(path: Path, graph: onnx.GraphProto, shapes: dict[str, tuple[int, ...]]) -> tuple[TensorInfo, ...]:
    """Return the inputs in order, each with a static shape.

    Raises:
        ShapeError: names the exact ``--shape`` flags to type, or the one that does not fit.
        UnsupportedModel: an input that is no tensor, or of a dtype that cannot be built.
        BadModel: two inputs of one name.
    """
    declared = _declared_inputs(path, graph)
    known = [value.name for value in declared]
    for name in shapes:
        if name not in known:
            inputs = ", ".join(f"'{n}'" for n in known) or "none"
            raise ShapeError(f"--shape {name}", f"{path} has no such input{nearest(name, known)}", f"Inputs: {inputs}.")
    bound = _bind(path, declared, shapes)
    infos = [_resolve(value, shapes.get(value.name), bound) for value in declared]
    if any(info is None for info in infos):
        raise _free_dimensions(path, [v for v, info in zip(declared, infos, strict=True) if info is None], bound)
    return tuple(info for info in infos if info is not None)


def numpy_dtype(elem_type: int) -> str:
    """Return the numpy name of an ONNX element type, or an empty string when there is none that can be built."""
    try:
        name = str(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(elem_type)))
    except (KeyError, TypeError, ValueError):
        return ""
    return name if name in SUPPORTED_DTYPES else ""


def dtype_words(elem_type: int) -> str:
    """Return what ONNX calls an element type, for messages."""
    names = {number: name.lower() for name, number in onnx.TensorProto.DataType.items()}
    return names.get(elem_type, f"{elem_type} (unknown)")


def _declared_inputs(path: Path, graph: onnx.GraphProto) -> list[_Declared]:
    weights = {tensor.name for tensor in graph.initializer}
    declared: list[_Declared] = []
    for value in graph.input:
        if value.name in weights:
            continue  # up to IR version 3 weights are listed as inputs too
        if any(value.name == other.name for other in declared):
            raise BadModel(f"{path}", f"two inputs are called '{value.name}'", "Export the model again.")
        if not value.type.HasField("tensor_type"):
            kind = value.type.WhichOneof("value") or "nothing"
            why = f"input '{value.name}' is a {kind.removesuffix('_type')}, not a tensor"
            raise UnsupportedModel(f"{path}", why, "Only tensors can be inputs.")
        tensor = value.type.tensor_type
        dtype = numpy_dtype(tensor.elem_type)
        if not dtype:
            why = f"input '{value.name}' has dtype {dtype_words(tensor.elem_type)}"
            raise UnsupportedModel(f"{path}", why, f"Supported: {', '.join(SUPPORTED_DTYPES)}.")
        dims = tuple(_dim(d) for d in tensor.shape.dim) if tensor.HasField("shape") else None
        declared.append(_Declared(value.name, dims, dtype))
    return declared


def _dim(dim: onnx.TensorShapeProto.Dimension) -> int | str:
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return int(dim.dim_value)
    return dim.dim_param or "?"  # some exporters write -1


def _bind(path: Path, declared: list[_Declared], shapes: dict[str, tuple[int, ...]]) -> dict[str, int]:
    """Return the number for each named dimension that the given shapes fix; refuse shapes that contradict."""
    bound: dict[str, int] = {}
    giver: dict[str, str] = {}
    for value in declared:
        given = shapes.get(value.name)
        if given is None:
            continue
        flag = _flag(value.name, given)
        if len(given) > MAX_RANK or any(dim <= 0 for dim in given) or np.prod(given, dtype=float) > MAX_ELEMENTS:
            why = f"needs at most {MAX_RANK} dimensions, each at least 1, and at most {MAX_ELEMENTS} elements"
            raise ShapeError(flag, why, f"The model declares {_words(value.dims)}.")
        if value.dims is None:
            continue
        fits = len(value.dims) == len(given)
        if not fits or any(isinstance(d, int) and d != g for d, g in zip(value.dims, given, strict=True)):
            why = f"does not fit input '{value.name}' of {path}, which is {_words(value.dims)}"
            raise ShapeError(flag, why, f"Type {_flag(value.name, _example(value, bound))}.")
        for dim, size in zip(value.dims, given, strict=True):
            if isinstance(dim, int) or dim == "?":
                continue
            if bound.setdefault(dim, size) != size:
                why = f"dimension '{dim}' is {size} here and {bound[dim]} in '{giver[dim]}'"
                raise ShapeError(flag, why, "One name is one number in the whole model.")
            giver.setdefault(dim, value.name)
    return bound


def _resolve(value: _Declared, given: tuple[int, ...] | None, bound: dict[str, int]) -> TensorInfo | None:
    if given is None:
        if value.dims is None:
            return None
        dims = [bound.get(d, d) if isinstance(d, str) else d for d in value.dims]
        if any(isinstance(d, str) for d in dims):
            return None
        given = tuple(int(d) for d in dims)
    return TensorInfo(value.name, tuple(given), value.dtype)


def _free_dimensions(path: Path, free: Iterable[_Declared], bound: dict[str, int]) -> ShapeError:
    free = list(free)
    words = ", ".join(f"input '{value.name}' is {_words(value.dims)}" for value in free)
    flags = " ".join(_flag(value.name, _example(value, bound)) for value in free)
    return ShapeError(f"{path}", f"{words}: xnncc builds for fixed shapes", f"Type for example: {flags}")


def _example(value: _Declared, bound: dict[str, int]) -> tuple[int, ...]:
    """Return a shape of the right form: 1 for a batch, 224 for the sides of a picture, 32 for other free sizes."""
    dims = value.dims if value.dims is not None else ("?",)
    picture = len(dims) == 4

    def size(position: int, dim: int | str) -> int:
        if isinstance(dim, int):
            return dim
        return bound.get(dim, 1 if position == 0 else 224 if picture else 32)

    return tuple(size(position, dim) for position, dim in enumerate(dims))


def _words(dims: tuple[int | str, ...] | None) -> str:
    return "of unknown rank" if dims is None else f"[{', '.join(str(dim) for dim in dims)}]"


def _flag(name: str, shape: Iterable[int]) -> str:
    return f"--shape {name}={','.join(str(dim) for dim in shape)}"
