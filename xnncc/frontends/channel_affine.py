"""y = x * a + b for each channel, folded into whatever computes x when nothing else reads it.

Batch norm and Caffe's Scale and Bias are of this form. A convolution takes both into weights and bias, with
x = conv(w) + c: conv(w * a) + (c * a + b); a scaling before it is multiplied out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from tvm import relax
from tvm.ir import Call
from tvm.relax import Expr

from .network import NetworkBuilder, array_in, dtype_of, shape_of

R = relax.op
_CONVOLUTIONS = ("relax.nn.conv2d", "relax.nn.conv3d", "relax.nn.conv2d_transpose")


def channel_affine(build: NetworkBuilder, x: Expr, a: np.ndarray, b: np.ndarray, *, is_read_once: bool) -> Expr:
    """Return x * a + b; x: [N, C, spatial...] (or [C]), ``a`` and ``b``: [C] float64."""
    folded = _folded(build, x, a, b) if is_read_once else None
    return _affine(build, x, a, b) if folded is None else folded


def _affine(build: NetworkBuilder, x: Expr, a: np.ndarray, b: np.ndarray) -> Expr:
    y = R.multiply(x, _channels(build, a, x)) if (a != 1).any() else x
    return R.add(y, _channels(build, b, x)) if b.any() else y


def _shape(channels: int, rank: int) -> tuple[int, ...]:
    """Return the shape in which [C] broadcasts along axis 1."""
    return (1, channels, *[1] * (rank - 2)) if rank > 1 else (channels,)


def _channels(build: NetworkBuilder, values: np.ndarray, x: Expr) -> Expr:
    return build.constant(values.astype(dtype_of(x)).reshape(_shape(values.size, len(shape_of(x)))))


def _folded(build: NetworkBuilder, x: Expr, a: np.ndarray, b: np.ndarray) -> Expr | None:
    call: Any = build.value_of(x)
    rank, old = len(shape_of(x)), np.zeros_like(b)
    if _is_call(call, "relax.add"):
        bias = _of_channels(call.args[1], a.size, rank)
        if bias is None:
            return None
        old, call = bias, build.value_of(call.args[0])
    shift = old * a + b
    if _is_call(call, "relax.multiply"):
        scale = _of_channels(call.args[1], a.size, rank)
        return None if scale is None else _affine(build, call.args[0], scale * a, shift)
    if call is None or not any(_is_call(call, operator) for operator in _CONVOLUTIONS):
        return None
    weight = array_in(call.args[1])
    if weight is None:
        return None
    scaled = (weight * _of_weights(call, weight, a)).astype(weight.dtype)
    y = build.emit(Call(call.op, [call.args[0], build.constant(scaled)], call.attrs, call.ty_args))
    return R.add(y, _channels(build, shift, y)) if shift.any() else y


def _of_weights(call: Call, weight: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Return ``a`` so that it multiplies the output channels of ``weight``."""
    if call.op.name != "relax.nn.conv2d_transpose":
        return a.reshape(-1, *[1] * (weight.ndim - 1))
    groups = int(call.attrs.groups)  # weight: [C, O/G, KH, KW], the G groups of C one after the other
    per_group = np.repeat(a.reshape(groups, 1, -1), weight.shape[0] // groups, axis=1)
    return per_group.reshape(weight.shape[0], -1, *[1] * (weight.ndim - 2))


def _is_call(value: Any, operator: str) -> bool:
    return isinstance(value, Call) and getattr(value.op, "name", "") == operator


def _of_channels(expr: Expr, channels: int, rank: int) -> np.ndarray | None:
    """Return a constant [1, C, 1, ...] as [C] in float64."""
    array = array_in(expr)
    if array is None or array.shape != _shape(channels, rank) or math.prod(array.shape) != channels:
        return None
    return array.reshape(-1).astype("float64")
