"""Integer convolutions and matrix products: int32 sums of (x - zero) * (w - zero), exact, then one rounding.

A quantised result is saturate(round_half_even(sum * (x_scale * w_scale / y_scale)) + y_zero), in float32 as the
standard's operators have it.
"""

from __future__ import annotations

import numpy as np
from tvm import relax
from tvm.relax import Expr

from ..network import shape_of
from .node import Node, Refused
from .registry import converter
from .windows import windows_of

R = relax.op
_BYTES = ("int8", "uint8")


def shifted(n: Node, index: int, zero: int, axis: int | None = None) -> Expr:
    """Return integer input ``index`` as int32 with its zero point taken off; ``axis``: where a zero per channel lies.

    A constant whose zero point is zero stays a cast of the small constant.
    """
    if n.dtype(index) not in _BYTES:
        raise Refused(f"input {index} has dtype {n.dtype(index)}", "Supported: int8, uint8.")
    x = R.astype(n.expr(index), "int32")
    if not n.has(zero) or (n.is_const(zero) and not n.const(zero, "zero point").any()):
        return n.emit(x)
    return n.emit(R.subtract(x, R.astype(_along(n, zero, axis, n.rank(index)), "int32")))


def _along(n: Node, index: int, axis: int | None, rank: int) -> Expr:
    """Return a scalar or a vector along ``axis`` (from the end when negative) of ``rank`` dimensions."""
    shape = n.shape(index)
    if int(np.prod(shape)) == 1:
        return n.reshaped(n.expr(index), [])
    if len(shape) == 1 and axis is not None:
        return n.reshaped(n.expr(index), _column(shape[0], axis % rank, rank))
    return n.expr(index)


def _column(size: int, axis: int, rank: int) -> list[int]:
    return [size if i == axis else 1 for i in range(rank)]


def requantised(n: Node, total: Expr, factor: Expr, zero: int) -> Expr:
    """Return int32 (or float) ``total`` times ``factor``, rounded to the dtype of zero point ``zero``."""
    steps = R.round(R.multiply(R.astype(total, "float32"), factor))
    return saturated(n, steps, zero)


def saturated(n: Node, steps: Expr, zero: int) -> Expr:
    """Return whole float ``steps`` shifted by zero point ``zero`` and cut to its dtype (uint8 when not given)."""
    dtype = n.dtype(zero) if n.has(zero) else "uint8"
    limits = np.iinfo(dtype)
    if n.has(zero):
        steps = R.add(steps, R.astype(n.reshaped(n.expr(zero), []), "float32"))
    return R.astype(R.clip(steps, float(limits.min), float(limits.max)), dtype)


def scale_of(n: Node, index: int) -> Expr:
    """Return a scalar scale as float32."""
    scale = n.reshaped(n.expr(index), [])
    return scale if n.dtype(index) == "float32" else R.astype(scale, "float32")


def _integer_conv(n: Node, x: Expr, w: Expr, weights: int) -> Expr:
    kernel = tuple(n.attr("kernel_shape") or n.shape(weights)[2:])
    win = windows_of(n, kernel, n.shape()[2:])
    rank, groups = len(kernel), int(n.attr("group", 1))
    if rank not in (1, 2):
        raise Refused(f"{rank} spatial dimensions are not supported", "Supported: 1, 2.")
    strides, dilations, pads = win.strides, win.dilations, win.begin + win.end
    if rank == 1:
        x, w = (n.reshaped(v, [*shape_of(v)[:2], 1, shape_of(v)[2]]) for v in (x, w))
        strides, dilations, pads = (1, *strides), (1, *dilations), (0, pads[0], 0, pads[1])
    y = n.emit(R.nn.conv2d(x, w, strides, pads, dilations, groups, out_dtype="int32"))
    return n.reshaped(y, [shape_of(y)[0], shape_of(y)[1], shape_of(y)[3]]) if rank == 1 else y


@converter("ConvInteger")
def conv_integer(n: Node) -> Expr:
    """Pads are zero after the zero point is taken off."""
    return _integer_conv(n, shifted(n, 0, 2), shifted(n, 1, 3, 0), 1)


@converter("QLinearConv")
def qlinear_conv(n: Node) -> Expr:
    """Inputs: x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias in int32."""
    y = _integer_conv(n, shifted(n, 0, 2), shifted(n, 3, 5, 0), 3)
    y = n.emit(y)
    rank = len(shape_of(y))
    if n.has(8):
        y = n.emit(R.add(y, n.reshaped(n.expr(8), _column(n.shape(8)[0], 1, rank))))
    w_scale = _along(n, 4, 1, rank)
    factor = R.divide(R.multiply(scale_of(n, 1), w_scale), scale_of(n, 6))
    return requantised(n, y, factor, 7)


@converter("MatMulInteger")
def matmul_integer(n: Node) -> Expr:
    """Zero points are scalars, or per row of the first and per column of the second matrix."""
    a, b = shifted(n, 0, 2, -2), shifted(n, 1, 3, -1)
    return R.matmul(a, b, out_dtype="int32")


@converter("QLinearMatMul")
def qlinear_matmul(n: Node) -> Expr:
    """Inputs: a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero."""
    a, b = shifted(n, 0, 2, -2), shifted(n, 3, 5, -1)
    y = n.emit(R.matmul(a, b, out_dtype="int32"))
    rank = len(shape_of(y))
    a_scale, b_scale = _along(n, 1, -2, rank), _along(n, 4, -1, rank)
    factor = R.divide(R.multiply(R.astype(a_scale, "float32"), R.astype(b_scale, "float32")), scale_of(n, 6))
    return requantised(n, y, factor, 7)
