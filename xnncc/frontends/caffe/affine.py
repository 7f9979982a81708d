"""y = x * a + b for each channel, folded into whatever computes x when nothing else reads it.

A convolution takes both into weights and bias; a scaling before (BatchNorm, then Scale) is multiplied out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from tvm import relax
from tvm.ir import Call
from tvm.relax import Expr

from ..network import array_in, shape_of
from .node import Node

R = relax.op
_CONVOLUTIONS = ("relax.nn.conv2d", "relax.nn.conv3d", "relax.nn.conv2d_transpose")


def channel_affine(n: Node, a: np.ndarray, b: np.ndarray) -> Expr:
    """Return x * a + b; ``a`` and ``b`` [C] in float64, channels are axis 1 of input 0."""
    if n.only_used_here(0):
        folded = _folded(n, a, b)
        if folded is not None:
            return folded
    return _affine(n, n.expr(0), a, b, n.rank())


def _affine(n: Node, x: Expr, a: np.ndarray, b: np.ndarray, rank: int) -> Expr:
    y = R.multiply(x, _channels(n, a, rank)) if (a != 1).any() else x
    return R.add(y, _channels(n, b, rank)) if b.any() else y


def _channels(n: Node, values: np.ndarray, rank: int) -> Expr:
    return n.build.constant(values.astype("float32").reshape([1, -1] + [1] * (rank - 2)))


def _folded(n: Node, a: np.ndarray, b: np.ndarray) -> Expr | None:
    call: Any = n.build.value_of(n.expr(0))
    old = np.zeros_like(b)
    if _is_call(call, "relax.add"):
        bias = _of_channels(call.args[1], a.size, n.rank())
        if bias is None:
            return None
        old, call = bias, n.build.value_of(call.args[0])
    shift = old * a + b
    if _is_call(call, "relax.multiply"):
        scale = _of_channels(call.args[1], a.size, n.rank())
        return None if scale is None else _affine(n, call.args[0], scale * a, shift, n.rank())
    if call is None or not any(_is_call(call, operator) for operator in _CONVOLUTIONS):
        return None
    weight = array_in(call.args[1])
    if weight is None:
        return None
    scaled = (weight * _of_weights(call, weight, a)).astype("float32")
    y = n.emit(Call(call.op, [call.args[0], n.build.constant(scaled)], call.attrs, call.ty_args))
    return R.add(y, _channels(n, shift, n.rank())) if shift.any() else y


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
    if array is None or array.shape != (1, channels) + (1,) * (rank - 2) or math.prod(shape_of(expr)) != channels:
        return None
    return array.reshape(-1).astype("float64")
