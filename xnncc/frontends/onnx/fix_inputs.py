"""Inputs that are given at build time: their values become weights, and the artefact has no such input.

A library is compiled for fixed shapes, so what decides a shape (the axes of a reduction, the sizes of a slice) must be
known then. A model that takes such a thing as an input can still be built for one value of it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx

from ...errors import BadInput, nearest
from .shapes import SUPPORTED_DTYPES, dtype_words, numpy_dtype

MAX_ELEMENTS = 2**20  # of one input: it is written into the manifest too


def fix_inputs(
    model: onnx.ModelProto, fixed: Mapping[str, np.ndarray]
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Return a copy of ``model`` in which the named inputs are constants, and these as the model has them.

    A flat list of numbers fills an input of as many elements, whatever its shape. Whole numbers go into any dtype that
    holds them, fractions into any float.

    Raises:
        BadInput: no such input, or values that do not fit its dtype or shape.
    """
    result, constants = onnx.ModelProto(), {}
    result.CopyFrom(model)
    for name, value in fixed.items():
        names = [info.name for info in result.graph.input]
        if name not in names:
            raise BadInput(f"--fix {name}", f"the model has no such input{nearest(name, names)}", _names(names))
        info = result.graph.input[names.index(name)]
        constants[name] = _fitting(name, np.asarray(value), info.type.tensor_type)
        result.graph.input.remove(info)
        weights = [tensor for tensor in result.graph.initializer if tensor.name != name]  # a default value goes
        del result.graph.initializer[:]
        result.graph.initializer.extend([*weights, onnx.numpy_helper.from_array(constants[name], name)])
    return result, constants


def _fitting(name: str, value: np.ndarray, declared: onnx.TypeProto.Tensor) -> np.ndarray:
    """Return ``value`` in the dtype and shape that the model declares."""
    dtype = numpy_dtype(declared.elem_type)
    if not dtype:
        why = f"the input has dtype {dtype_words(declared.elem_type)}"
        raise BadInput(f"--fix {name}", why, f"Supported: {', '.join(SUPPORTED_DTYPES)}.")
    if value.size > MAX_ELEMENTS:
        why = f"{value.size} elements, at most {MAX_ELEMENTS} can be fixed"
        raise BadInput(f"--fix {name}", why, "Put it into the model as a weight.")
    with np.errstate(all="ignore"):
        cast = value.astype(dtype)
    both_floats = value.dtype.kind == "f" and cast.dtype.kind == "f"
    if not both_floats and not np.array_equal(cast.astype(value.dtype), value):
        raise BadInput(f"--fix {name}", f"its values do not fit {dtype}, which the model takes", "Give other values.")
    if not declared.HasField("shape"):
        return cast
    dims = [dim.dim_value if dim.HasField("dim_value") and dim.dim_value > 0 else None for dim in declared.shape.dim]
    if cast.ndim == 1 and None not in dims and cast.size == int(np.prod(dims, dtype=np.int64)):  # type: ignore[arg-type]
        return cast.reshape(dims)  # type: ignore[arg-type]
    if cast.ndim != len(dims) or any(d not in (None, size) for d, size in zip(dims, cast.shape, strict=True)):
        words = ", ".join("?" if dim is None else str(dim) for dim in dims)
        raise BadInput(f"--fix {name}", f"values of shape {list(cast.shape)}, the model takes [{words}]", "")
    return cast


def _names(names: list[str]) -> str:
    return f"Inputs: {', '.join(repr(name) for name in names) or 'none'}."
