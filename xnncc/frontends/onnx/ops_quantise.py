"""QuantizeLinear and DequantizeLinear as plain arithmetic: per tensor, per axis and per block."""

from __future__ import annotations

import numpy as np
from tvm import relax
from tvm.relax import Expr

from .node import Node, Refused
from .registry import converter
from .shapes import numpy_dtype

R = relax.op
_QUANTISED = ("int8", "uint8", "int16", "uint16", "int32")


def _along(n: Node, index: int, what: str) -> np.ndarray | Expr:
    """Return scale or zero point shaped so that it broadcasts against input 0."""
    shape, block = n.shape(index), int(n.attr("block_size", 0))
    axis = int(n.attr("axis", 1))
    size = int(np.prod(shape))
    if block:
        return _per_element(n, index, what, n.axis(axis), block)
    if size == 1:
        return _shaped(n, index, ())
    axis = n.axis(axis)
    if shape != (n.shape()[axis],):
        raise Refused(f"{what} of shape {list(shape)} does not fit axis {axis} of {list(n.shape())}")
    return _shaped(n, index, tuple(size if i == axis else 1 for i in range(n.rank())))


def _shaped(n: Node, index: int, shape: tuple[int, ...]) -> np.ndarray | Expr:
    if n.is_const(index):
        return n.const(index, "").reshape(shape)
    return n.reshaped(n.expr(index), shape)


def _per_element(n: Node, index: int, what: str, axis: int, block: int) -> np.ndarray | Expr:
    """Return a value for each element: each of ``index`` holds for ``block`` elements along ``axis``."""
    shape, size = n.shape(index), n.shape()[axis]
    wanted = tuple(-(-size // block) if i == axis else dim for i, dim in enumerate(n.shape()))
    if shape != wanted:
        raise Refused(f"{what} of shape {list(shape)} does not fit blocks of {block} along axis {axis}")
    if n.is_const(index):
        return np.repeat(n.const(index, what), block, axis).take(range(size), axis)
    positions = np.arange(size, dtype="int64") // block
    return n.emit(R.take(n.expr(index), n.build.constant(positions), axis, mode="clip"))


def _as_expr(n: Node, value: np.ndarray | Expr, dtype: str) -> Expr:
    if isinstance(value, np.ndarray):
        return n.build.constant(value.astype(dtype))
    return R.astype(value, dtype)


def _is_zero(value: np.ndarray | Expr | None) -> bool:
    return value is None or (isinstance(value, np.ndarray) and not value.any())


@converter("DequantizeLinear", "com.microsoft.DequantizeLinear")
def dequantize(n: Node) -> Expr:
    """(x - zero_point) * scale, in the scale's dtype."""
    n.ignore("output_dtype")
    scale = _along(n, 1, "x_scale")
    if n.dtype() not in _QUANTISED:
        raise Refused(f"dtype {n.dtype()} is not supported", f"Supported: {', '.join(_QUANTISED)}.")
    dtype = n.dtype(1)
    x = R.astype(n.expr(0), dtype)  # exact: all of these but large int32 fit float32's 24 bits
    zero = _along(n, 2, "x_zero_point") if n.has(2) else None
    if not _is_zero(zero):
        x = R.subtract(x, _as_expr(n, zero, dtype))  # type: ignore[arg-type]
    return R.multiply(x, _as_expr(n, scale, dtype))


@converter("QuantizeLinear", "com.microsoft.QuantizeLinear")
def quantize(n: Node) -> Expr:
    """saturate(round_half_even(x / scale) + zero_point)."""
    n.ignore("saturate", "precision")
    scale = _along(n, 1, "y_scale")
    zero = _along(n, 2, "y_zero_point") if n.has(2) else None
    given = int(n.attr("output_dtype", 0))
    dtype = n.dtype(2) if n.has(2) else numpy_dtype(given) if given else "uint8"
    if dtype not in _QUANTISED[:4]:
        raise Refused(f"dtype {dtype or given} is not supported", f"Supported: {', '.join(_QUANTISED[:4])}.")
    limits = np.iinfo(dtype)
    x = n.expr(0) if n.dtype().startswith("float") else R.astype(n.expr(0), "float32")
    wide = "float64" if n.dtype() == "float64" else "float32"
    steps = R.round(R.divide(x, _as_expr(n, scale, wide)))
    if not _is_zero(zero):
        steps = R.add(steps, _as_expr(n, zero, wide))  # type: ignore[arg-type]
    return R.astype(R.clip(steps, float(limits.min), float(limits.max)), dtype)
