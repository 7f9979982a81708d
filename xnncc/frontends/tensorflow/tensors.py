"""Weights: TensorProto -> numpy, and TensorFlow's numbers for dtypes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...ir.plan import DTYPE_BYTES
from ..refused import Refused

MAX_RANK = 8
MAX_ELEMENTS = 2**28  # of any one tensor, 1 GiB in float32: no network for a device has a larger one
SUPPORTED_DTYPES = tuple(name for name in DTYPE_BYTES if name != "bfloat16")

# DataType of tensorflow/core/framework/types.proto
DTYPES = {
    1: "float32", 2: "float64", 3: "int32", 4: "uint8", 5: "int16", 6: "int8", 7: "string", 8: "complex64", 9: "int64",
    10: "bool", 11: "qint8", 12: "quint8", 13: "qint32", 14: "bfloat16", 17: "uint16", 18: "complex128",
    19: "float16", 20: "resource", 21: "variant", 22: "uint32", 23: "uint64",
}  # fmt: skip
_FIELDS = {
    "float32": "float_val", "float64": "double_val", "int32": "int_val", "uint8": "int_val", "int16": "int_val",
    "int8": "int_val", "uint16": "int_val", "int64": "int64_val", "bool": "bool_val", "uint32": "uint32_val",
    "uint64": "uint64_val",
}  # fmt: skip


def dtype_name(number: int) -> str:
    """Return the name of a DataType; numbers above 100 are references to variables of that type."""
    return DTYPES.get(number % 100, f"{number} (unknown)")


def array_of(tensor: Any, what: str) -> np.ndarray:
    """Return a TensorProto as numpy; ``what`` names it in messages.

    Values shorter than the shape repeat their last one, as TensorFlow stores constant tensors.

    Raises:
        Refused: a dtype that cannot be built, a shape that is none, bytes that do not fill it.
    """
    dtype = dtype_name(tensor.dtype)
    if dtype not in SUPPORTED_DTYPES:
        raise Refused(f"dtype {dtype} of {what} is not supported", f"Supported: {', '.join(SUPPORTED_DTYPES)}.")
    shape = tuple(dim.size for dim in tensor.tensor_shape.dim)
    if tensor.tensor_shape.unknown_rank or any(size < 0 for size in shape) or len(shape) > MAX_RANK:
        raise Refused(f"{what} has no static shape: {list(shape)}", "The file is damaged; export it again.")
    count = math.prod(shape)
    if count > MAX_ELEMENTS:
        raise Refused(f"{what} {list(shape)} has more than {MAX_ELEMENTS} elements")
    if tensor.tensor_content:
        if len(tensor.tensor_content) != count * np.dtype(dtype).itemsize:
            found = f"{len(tensor.tensor_content)} bytes, its shape {list(shape)} needs"
            raise Refused(f"{what} has {found} {count * np.dtype(dtype).itemsize}", "Copy or export the file again.")
        return np.frombuffer(tensor.tensor_content, np.dtype(dtype).newbyteorder("<")).astype(dtype).reshape(shape)
    values = _listed(tensor, dtype, what)
    if values.size > count or (count and not values.size and _is_cut(tensor)):
        raise Refused(f"{what} has {values.size} values, its shape {list(shape)} needs {count}")
    if values.size < count:
        last = values[-1] if values.size else np.zeros((), dtype)[()]
        values = np.concatenate([values, np.full(count - values.size, last, dtype)])
    return values.reshape(shape)


def _listed(tensor: Any, dtype: str, what: str) -> np.ndarray:
    if dtype == "float16":
        return np.array(tensor.half_val, "int64").astype("uint16").view("float16")
    try:
        return np.array(getattr(tensor, _FIELDS[dtype])).astype(dtype)
    except (OverflowError, ValueError) as error:
        raise Refused(f"{what} has values that are no {dtype}", "The file is damaged; export it again.") from error


def _is_cut(tensor: Any) -> bool:
    """Return whether the values stand in a field of another dtype: a tensor without any value means zeros."""
    return any(len(getattr(tensor, field)) for field in {*_FIELDS.values(), "half_val", "string_val"})
