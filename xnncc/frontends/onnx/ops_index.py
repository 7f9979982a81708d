"""Operators that read at positions: Gather and its kin. Positions below zero count from the end, as ONNX says."""

from __future__ import annotations

import math

import numpy as np
from tvm import relax
from tvm.relax import Expr

from .node import Node, Refused
from .registry import converter

R = relax.op


@converter("Gather")
def gather(n: Node) -> Expr:
    """Constant positions in even steps are a strided slice, others ``take``.

    Positions known only at run time are clamped into the table, so a wrong one cannot read outside of it.
    """
    axis, shape = n.axis(int(n.attr("axis", 0))), n.shape()
    size = shape[axis]
    if not n.is_const(1):
        return R.take(n.expr(0), _from_front(n, n.expr(1), size), axis, mode="clip")
    positions = n.const(1, "indices").astype("int64")
    if positions.size == 0 or positions.min() < -size or positions.max() >= size:
        raise Refused(f"indices {_few(positions)} are out of range for dimension {axis} of size {size}")
    positions = np.where(positions < 0, positions + size, positions)
    flat, steps = positions.reshape(-1), np.unique(np.diff(positions.reshape(-1)))
    result = shape[:axis] + positions.shape + shape[axis + 1 :]
    if flat.size == 1 or (steps.size == 1 and steps[0] > 0):
        step = int(steps[0]) if flat.size > 1 else 1
        if flat.size == size:
            return n.reshaped(n.expr(0), result)
        cut = R.strided_slice(n.expr(0), [axis], [int(flat[0])], [int(flat[-1]) + 1], [step])
        return n.reshaped(cut, result)
    return R.take(n.expr(0), n.build.constant(positions), axis, mode="clip")


def _from_front(n: Node, indices: Expr, size: int) -> Expr:
    """Return run-time indices with the negative ones counted from the front."""
    dtype = n.dtype(1)
    indices = n.emit(indices)
    return R.where(R.less(indices, n.scalar(0, dtype)), R.add(indices, n.scalar(size, dtype)), indices)


def _few(values: np.ndarray) -> str:
    return f"{values.reshape(-1)[:8].tolist()}{'...' if values.size > 8 else ''}"


@converter("GatherElements")
def gather_elements(n: Node) -> Expr:
    axis = n.axis(int(n.attr("axis", 0)))
    size = n.shape()[axis]
    if n.is_const(1):
        positions = n.const(1, "indices").astype("int64")
        return R.gather_elements(n.expr(0), n.build.constant(positions % size), axis)
    inside = R.clip(_from_front(n, n.expr(1), size), 0, size - 1)
    return R.gather_elements(n.expr(0), inside, axis)


@converter("GatherND")
def gather_nd(n: Node) -> Expr:
    """Flatten the indexed dimensions and take: [B.., I.., rest] at positions [B.., K.., len(I)]."""
    batch = int(n.attr("batch_dims", 0))
    shape, where = n.shape(), n.shape(1)
    depth = where[-1]
    sizes = shape[batch : batch + depth]
    rest = shape[batch + depth :]
    result = where[:-1] + rest
    strides = [math.prod(sizes[i + 1 :]) for i in range(depth)]
    groups, picks = math.prod(shape[:batch]), math.prod(where[batch:-1])
    if n.is_const(1):
        positions = n.const(1, "indices").astype("int64")
        positions = np.where(positions < 0, positions + np.array(sizes), positions)
        flat = (positions * np.array(strides)).sum(-1).reshape(groups, picks)
        flat = (flat + np.arange(groups)[:, None] * math.prod(sizes)).reshape(-1)
        rows = n.build.constant(flat)
    else:
        positions = n.emit(_from_front(n, n.expr(1), 0)) if depth == 0 else n.emit(n.expr(1))
        scale = n.build.constant(np.array(sizes, n.dtype(1)))
        positions = n.emit(R.where(R.less(positions, n.scalar(0, n.dtype(1))), R.add(positions, scale), positions))
        rows = R.sum(R.multiply(positions, n.build.constant(np.array(strides, n.dtype(1)))), axis=[-1])
        offsets = np.arange(groups, dtype=n.dtype(1))[:, None] * math.prod(sizes)
        rows = R.add(n.reshaped(rows, [groups, picks]), n.build.constant(offsets.astype(n.dtype(1))))
        rows = n.reshaped(rows, [groups * picks])
    table = n.reshaped(n.expr(0), [groups * math.prod(sizes), math.prod(rest)])
    return n.reshaped(R.take(table, rows, 0, mode="clip"), list(result))


@converter("OneHot")
def one_hot(n: Node) -> Expr:
    """``values`` = [off, on]; a position outside [-depth, depth) gives a row of off."""
    depth = n.ints(1, "depth")[0]
    off, on = (n.build.constant(v.reshape(())) for v in np.split(n.const(2, "values"), 2))
    axis = n.axis(int(n.attr("axis", -1)), n.rank() + 1)
    shape = list(n.shape())
    wide = n.emit(n.reshaped(n.expr(0), [*shape[:axis], 1, *shape[axis:]]))
    zero, size = n.scalar(0), n.scalar(depth)
    wide = R.where(R.less(wide, zero), R.add(wide, size), wide)
    places = np.arange(depth).astype(n.dtype()).reshape([-1 if i == axis else 1 for i in range(len(shape) + 1)])
    return R.where(R.equal(wide, n.build.constant(places)), on, off)


def _arg(n: Node, largest: bool) -> Expr:
    """Return the position of the first (``select_last_index``: last) extreme along an axis."""
    axis, keep = n.axis(int(n.attr("axis", 0))), bool(n.attr("keepdims", 1))
    function = R.argmax if largest else R.argmin
    if not n.attr("select_last_index", 0):
        return function(n.expr(0), axis, keepdims=keep)
    found = function(R.flip(n.expr(0), axis), axis, keepdims=keep)
    return R.subtract(n.scalar(n.shape()[axis] - 1, "int64"), found)


@converter("ArgMax")
def arg_max(n: Node) -> Expr:
    return _arg(n, largest=True)


@converter("ArgMin")
def arg_min(n: Node) -> Expr:
    return _arg(n, largest=False)


@converter("CumSum")
def cum_sum(n: Node) -> Expr:
    """Running sum along a constant axis; ``reverse`` runs from the end, ``exclusive`` leaves the element itself out."""
    axis = n.axis(n.ints(1, "axis")[0])
    exclusive = bool(n.attr("exclusive", 0))
    if n.attr("reverse", 0):
        return R.flip(R.cumsum(R.flip(n.expr(0), axis), axis, exclusive=exclusive), axis)
    return R.cumsum(n.expr(0), axis, exclusive=exclusive)
