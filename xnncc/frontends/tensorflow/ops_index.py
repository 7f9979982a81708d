"""Operators that read parts and positions: slices, splits, gathers, one-hot rows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from tvm import relax
from tvm.relax import Expr, TupleGetItem

from ..refused import Refused
from .meaning_layout import split_sizes, strided_index
from .node import Node
from .registry import converter

R = relax.op


def _cut(n: Node, picked: list[range], shape: list[int]) -> Expr:
    """Return the elements at ``picked`` of each dimension, reshaped; a range that runs backwards is a slice and a
    flip."""
    cuts, flips = [], []
    for axis, (places, size) in enumerate(zip(picked, n.shape(), strict=True)):
        if not len(places):
            raise Refused("its result has no elements")
        if places.step < 0:
            places = places[::-1]
            flips.append(axis)
        if len(places) != size:
            cuts.append((axis, places[0], places[-1] + 1, places.step))
    x = n.expr(0)
    if cuts:
        x = R.strided_slice(x, *[list(column) for column in zip(*cuts, strict=True)])
    for axis in flips:
        x = R.flip(x, axis)
    return n.reshaped(x, shape)


@converter("Slice")
def slice_(n: Node) -> Expr:
    begin, size = n.ints(1, "begin"), n.ints(2, "size")
    if not len(begin) == len(size) == n.rank():
        raise Refused(f"begin {begin} and size {size} do not fit input {list(n.shape())}")
    picked = [range(b, full if s == -1 else b + s) for b, s, full in zip(begin, size, n.shape(), strict=True)]
    if any(p.start < 0 or p.stop > full for p, full in zip(picked, n.shape(), strict=True)):
        raise Refused(f"begin {begin} and size {size} reach outside of the input {list(n.shape())}")
    return _cut(n, picked, [len(p) for p in picked])


@converter("StridedSlice")
def strided_slice(n: Node) -> Expr:
    """Masks as TensorFlow defines them; see ``strided_index``."""
    given = [n.const(i, what).reshape(-1) for i, what in ((1, "begin"), (2, "end"), (3, "strides"))]
    if len({len(part) for part in given}) != 1:
        raise Refused("begin, end and strides have different lengths")
    index = strided_index(n.operation, *given)
    picked: list[range] = []
    shape: list[int] = []
    for entry in _spelled_out(index, n.rank()):
        if entry is None:
            shape.append(1)
            continue
        size = n.shape()[len(picked)]
        if isinstance(entry, int):
            if not -size <= entry < size:
                raise Refused(f"position {entry} is out of range for a dimension of {size}")
            picked.append(range(entry % size, entry % size + 1))
        else:
            picked.append(range(size)[entry])
            shape.append(len(picked[-1]))
    return _cut(n, picked, shape)


def _spelled_out(index: tuple[Any, ...], rank: int) -> list[Any]:
    """Return the index with an ellipsis, or a missing end, as full slices."""
    used = sum(entry is not None and entry is not Ellipsis for entry in index)
    if used > rank or sum(entry is Ellipsis for entry in index) > 1:
        raise Refused(f"{used} positions do not fit {rank} dimensions")
    rest = [slice(None)] * (rank - used)
    if not any(entry is Ellipsis for entry in index):
        return [*index, *rest]
    at = next(i for i, entry in enumerate(index) if entry is Ellipsis)
    return [*index[:at], *rest, *index[at + 1 :]]


def _parts(n: Node, x: Expr, sizes: list[int], axis: int) -> list[Expr]:
    if len(sizes) == 1:
        return [x]
    whole = n.emit(R.split(x, [int(end) for end in np.cumsum(sizes)[:-1]], axis))
    return [TupleGetItem(whole, i) for i in range(len(sizes))]


@converter("Split")
def split(n: Node) -> list[Expr]:
    axis, count = n.axis(n.integer(0, "axis"), n.rank(1)), int(n.attr("num_split", 1))
    size = n.shape(1)[axis]
    if count < 1 or size % count:
        raise Refused(f"a dimension of {size} cannot be cut into {count} equal parts")
    return _parts(n, n.expr(1), [size // count] * count, axis)


@converter("SplitV")
def split_v(n: Node) -> list[Expr]:
    axis = n.axis(n.integer(2, "axis"))
    return _parts(n, n.expr(0), split_sizes(n.const(1, "sizes"), n.shape()[axis]), axis)


@converter("Unpack")
def unpack(n: Node) -> list[Expr]:
    axis, shape = n.axis(int(n.attr("axis", 0))), list(n.shape())
    rest = [*shape[:axis], *shape[axis + 1 :]]
    return [n.reshaped(part, rest) for part in _parts(n, n.expr(0), [1] * shape[axis], axis)]


@converter("Gather", "GatherV2", "ResourceGather")
def gather(n: Node) -> Expr:
    """Constant positions in even steps are a strided slice, others ``take``.

    Positions known only at run time are clamped into the table, so a wrong one cannot read outside of it.
    """
    axis = n.axis(n.integer(2, "axis")) if len(n) > 2 else 0
    if n.attr("batch_dims", 0):
        raise Refused(f"batch_dims {n.attr('batch_dims')} is not supported", "Supported: 0.")
    shape = n.shape()
    if not n.is_const(1):
        return R.take(n.expr(0), n.expr(1), axis, mode="clip")
    positions = n.const(1, "indices").astype("int64")
    if positions.size == 0 or positions.min() < 0 or positions.max() >= shape[axis]:
        raise Refused(f"its indices are out of range for dimension {axis} of size {shape[axis]}")
    result = [*shape[:axis], *positions.shape, *shape[axis + 1 :]]
    flat = positions.reshape(-1).tolist()
    steps = {b - a for a, b in pairwise(flat)}
    if len(steps) <= 1 and min(steps, default=1) > 0:
        step = min(steps, default=1)
        picked = [range(size) for size in shape]
        picked[axis] = range(flat[0], flat[-1] + 1, step)
        return _cut(n, picked, result)
    return R.take(n.expr(0), n.build.constant(positions), axis, mode="clip")


@converter("OneHot")
def one_hot(n: Node) -> Expr:
    """A position outside [0, depth) gives a row of off."""
    depth = n.integer(1, "depth")
    axis = n.axis(int(n.attr("axis", -1)), n.rank() + 1)
    shape = list(n.shape())
    wide = n.reshaped(n.expr(0), [*shape[:axis], 1, *shape[axis:]])
    places = np.arange(depth).astype(n.dtype()).reshape([-1 if i == axis else 1 for i in range(len(shape) + 1)])
    return R.where(R.equal(wide, n.build.constant(places)), n.expr(2), n.expr(3))
