"""Operators that write at positions. Negative ones count from the end; others are clamped inside."""

from __future__ import annotations

import math

import numpy as np
from tvm import relax
from tvm.relax import Expr

from .node import Node, Refused
from .registry import converter

R = relax.op
_REDUCTIONS = {"none": "update", "add": "add", "mul": "mul", "min": "min", "max": "max"}


def _reduction(n: Node) -> str:
    return _REDUCTIONS[n.choice("reduction", "none", tuple(_REDUCTIONS))]


def _from_front(n: Node, index: int, sizes: int | np.ndarray) -> Expr:
    """Return positions of input ``index`` as int64 with the negative ones counted from the front and all inside."""
    if n.is_const(index):
        positions = n.const(index, "indices").astype("int64")
        positions = np.where(positions < 0, positions + sizes, positions)
        if positions.size and (positions.min() < 0 or (positions >= sizes).any()):
            raise Refused("indices are out of range")
        return n.build.constant(positions)
    x = n.emit(R.astype(n.expr(index), "int64") if n.dtype(index) != "int64" else n.expr(index))
    bound = n.build.constant(np.asarray(sizes, "int64"))
    zero = n.scalar(0, "int64")
    x = n.emit(R.where(R.less(x, zero), R.add(x, bound), x))
    last = n.build.constant(np.asarray(sizes, "int64") - 1)
    return n.emit(R.minimum(R.maximum(x, zero), last))


@converter("ScatterElements", "Scatter")
def scatter_elements(n: Node) -> Expr:
    """y = x; y[.., index[.., i, ..], ..] = updates[.., i, ..] along ``axis``."""
    axis = n.axis(int(n.attr("axis", 0)))
    reduction = _reduction(n)
    if n.shape(1) != n.shape(2):
        raise Refused(f"indices {list(n.shape(1))} and updates {list(n.shape(2))} differ in shape")
    return R.scatter_elements(n.expr(0), _from_front(n, 1, n.shape()[axis]), n.expr(2), axis, reduction)


@converter("ScatterND")
def scatter_nd(n: Node) -> Expr:
    """y = x; y[indices[k]] = updates[k], slices of what ``indices`` leaves open."""
    reduction, shape, where = _reduction(n), n.shape(), n.shape(1)
    depth = where[-1]
    if depth > len(shape) or n.shape(2) != where[:-1] + shape[depth:]:
        raise Refused(f"indices {list(where)} and updates {list(n.shape(2))} do not fit input {list(shape)}")
    sizes = np.array(shape[:depth], "int64")
    positions = _from_front(n, 1, sizes)
    strides = np.array([math.prod(shape[i + 1 : depth]) for i in range(depth)], "int64")
    if n.is_const(1):
        known = n.const(1, "indices").astype("int64")
        rows = np.where(known < 0, known + sizes, known) @ strides
        flat = n.build.constant(rows.reshape(-1, 1))
    else:
        rows = R.sum(R.multiply(positions, n.build.constant(strides)), axis=[-1])
        flat = n.emit(n.reshaped(rows, [math.prod(where[:-1]), 1]))
    rest = math.prod(shape[depth:])
    table = n.reshaped(n.expr(0), [math.prod(shape[:depth]), rest])
    updates = n.emit(n.reshaped(n.expr(2), [math.prod(where[:-1]), rest]))
    wide = n.emit(R.broadcast_to(flat, [math.prod(where[:-1]), rest]))
    return n.reshaped(R.scatter_elements(n.emit(table), wide, updates, 0, reduction), list(shape))


@converter("TensorScatter")
def tensor_scatter(n: Node) -> Expr:
    """Write a step of keys or values into a cache [batch, ..] at ``write_indices`` [batch] along ``axis``."""
    axis, mode = n.axis(int(n.attr("axis", -2))), n.choice("mode", "linear", ("linear", "circular"))
    shape, step = n.shape(), n.shape(1)
    size, count = shape[axis], step[axis]
    offsets = np.arange(count, dtype="int64").reshape([-1 if i == axis else 1 for i in range(len(shape))])
    if n.has(2):
        column = [shape[0] if i == 0 else 1 for i in range(len(shape))]
        start = n.reshaped(R.astype(n.expr(2), "int64"), column)
        at = R.add(start, n.build.constant(offsets))
    else:
        at = n.build.constant(offsets)
    if mode == "circular":
        at = R.floor_mod(n.emit(at), n.scalar(size, "int64"))
    at = n.emit(R.broadcast_to(n.emit(at), list(step)))
    return R.scatter_elements(n.expr(0), at, n.expr(1), axis, "update")
