"""QuantizeLinear and DequantizeLinear as plain arithmetic, per tensor and per axis."""

from __future__ import annotations

import numpy as np
from tvm import relax
from tvm.relax import Expr

from .node import Node, Refused
from .registry import converter

R = relax.op


def _along(n: Node, index: int, what: str) -> np.ndarray:
    """Return scale or zero point shaped so that it broadcasts along its axis."""
    value, axis = n.const(index, what), int(n.attr("axis", 1))
    if n.attr("block_size", 0):
        raise Refused("block_size is not supported", "Quantise per tensor or per axis.")
    if value.size == 1:
        return value.reshape(())
    axis = n.axis(axis)
    if value.shape != (n.shape()[axis],):
        raise Refused(f"{what} of shape {list(value.shape)} does not fit axis {axis} of {list(n.shape())}")
    return value.reshape([-1 if i == axis else 1 for i in range(n.rank())])


@converter("DequantizeLinear")
def dequantize(n: Node) -> Expr:
    """(x - zero_point) * scale, in the scale's dtype."""
    n.ignore("output_dtype")
    scale = _along(n, 1, "x_scale")
    dtype = str(scale.dtype)
    if n.dtype() not in ("int8", "uint8", "int16", "uint16", "int32"):
        raise Refused(f"dtype {n.dtype()} is not supported", "Supported: int8, uint8, int16, uint16, int32.")
    x = R.astype(n.expr(0), dtype)  # exact: all of these but large int32 fit float32's 24 bits
    zero = _along(n, 2, "x_zero_point") if n.has(2) else np.zeros((), "int8")
    if zero.any():
        x = R.subtract(x, n.build.constant(zero.astype(dtype)))
    return R.multiply(x, n.build.constant(scale))


@converter("QuantizeLinear")
def quantize(n: Node) -> Expr:
    """saturate(round_half_even(x / scale) + zero_point)."""
    n.ignore("saturate", "output_dtype", "precision")
    scale = _along(n, 1, "y_scale")
    zero = _along(n, 2, "y_zero_point") if n.has(2) else np.zeros((), "uint8")
    dtype = str(zero.dtype)
    if dtype not in ("int8", "uint8", "int16", "uint16"):
        raise Refused(f"dtype {dtype} is not supported", "Supported: int8, uint8, int16, uint16.")
    limits = np.iinfo(dtype)
    steps = R.round(R.divide(n.expr(0), n.build.constant(scale)))
    if zero.any():
        steps = R.add(steps, n.build.constant(zero.astype(scale.dtype)))
    return R.astype(R.clip(steps, float(limits.min), float(limits.max)), dtype)
