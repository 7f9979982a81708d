"""Layers that only move elements: Flatten, Reshape, Permute, ShuffleChannel."""

from __future__ import annotations

import math

import numpy as np
from tvm import relax
from tvm.relax import Expr

from .node import Node, Value
from .params import Params
from .refused import Broken
from .registry import converter

R = relax.op
MAX_RANK = 8


@converter("Flatten")
def flatten(n: Node) -> Value:
    """Dimensions ``axis`` to ``end_axis`` become one."""
    n.need(1)
    p = n.params("flatten_param")
    first, last = n.axis(p.whole("axis", 1, -8)), n.axis(p.whole("end_axis", -1, -8))
    if first > last:
        raise Broken(f"{p.name} axis {first} lies behind end_axis {last}")
    shape = n.shape()
    return _reshaped(n, (*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :]))


def _reshaped(n: Node, shape: tuple[int, ...]) -> Value:
    value = n.values[0]
    return value.reshape(shape) if isinstance(value, np.ndarray) else n.reshaped(value, shape)


@converter("Reshape")
def reshape(n: Node) -> Value:
    """0 keeps a dimension, -1 takes what is left; ``axis`` and ``num_axes`` say which dimensions are replaced."""
    n.need(1)
    p = n.params("reshape_param")
    shape = n.shape()
    start = _start(p, n.rank())
    count = p.whole("num_axes", -1, -1)
    end = n.rank() if count == -1 else start + count
    if end > n.rank():
        raise Broken(f"{p.name} axis {start} and num_axes {count} are beyond input {list(shape)}")
    given = p.message_of("shape")
    dims = given.wholes("dim", -1) if given else []
    if len(dims) + n.rank() > 2 * MAX_RANK or dims.count(-1) > 1:
        raise Broken(f"shape {dims[:16]} has too many dimensions, or -1 more than once")
    return _reshaped(n, _resolved(shape, dims, start, end))


def _start(p: Params, rank: int) -> int:
    axis = p.whole("axis", 0, -MAX_RANK)
    start = axis if axis >= 0 else rank + axis + 1  # -1 is behind the last dimension
    if not 0 <= start <= rank:
        raise Broken(f"{p.name} axis {axis} is out of range for {rank} dimensions")
    return start


def _resolved(shape: tuple[int, ...], dims: list[int], start: int, end: int) -> tuple[int, ...]:
    middle = list(dims)
    for index, dim in enumerate(dims):
        if dim == 0:
            if start + index >= len(shape):
                raise Broken(f"dimension {index} of shape {dims} is 0, but input {list(shape)} has none there")
            middle[index] = shape[start + index]
    whole = math.prod(shape)
    if -1 in middle:
        known = math.prod(dim for dim in middle if dim != -1) * math.prod(shape[:start]) * math.prod(shape[end:])
        if not known or whole % known:
            raise Broken(f"input {list(shape)} cannot become {dims}")
        middle[middle.index(-1)] = whole // known
    result = (*shape[:start], *middle, *shape[end:])
    if math.prod(result) != whole:
        raise Broken(f"input {list(shape)} cannot become {list(result)}")
    return result


@converter("Permute")
def permute(n: Node) -> Expr:
    """Dimensions in another order; those not named follow in their own."""
    n.need(1)
    order = n.params("permute_param").wholes("order")
    if len(set(order)) != len(order) or any(axis >= n.rank() for axis in order):
        raise Broken(f"order {order} does not fit {n.rank()} dimensions")
    order += [axis for axis in range(n.rank()) if axis not in order]
    return n.expr() if order == list(range(n.rank())) else R.permute_dims(n.expr(), order)


@converter("ShuffleChannel")
def shuffle_channel(n: Node) -> Expr:
    """Channels as a [group, C / group] matrix, transposed."""
    n.need(1)
    group, shape = n.params("shuffle_channel_param").whole("group", 1, 1), n.shape()
    if n.rank() < 2 or shape[1] % group:
        raise Broken(f"input {list(shape)} cannot be cut into {group} groups of channels")
    inner = math.prod(shape[2:])
    parted = n.emit(n.reshaped(n.expr(), (shape[0], group, shape[1] // group, inner)))
    return n.reshaped(R.permute_dims(parted, [0, 2, 1, 3]), shape)
