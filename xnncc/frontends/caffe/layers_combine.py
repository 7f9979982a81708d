"""Layers that bring tensors together or take them apart: Eltwise, Axpy, Concat, Slice, Split, Crop, Tile, Silence."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise

import numpy as np
from tvm import relax
from tvm.relax import Expr

from .node import Node, Value
from .refused import Broken
from .registry import converter

R = relax.op
MAX_INPUTS = 4096


@converter("Eltwise")
def eltwise(n: Node) -> Expr:
    """Product, largest, or sum with a coefficient for each input."""
    n.need(1, MAX_INPUTS)
    p = n.params("eltwise_param")
    p.ignore("stable_prod_grad")
    words = {"0": "PROD", "1": "SUM", "2": "MAX"}
    operation = p.choice("operation", "SUM", {**words, **{w: w for w in words.values()}})
    for index in range(1, len(n)):
        if n.shape(index) != n.shape():
            raise Broken(f"its inputs {list(n.shape())} and {list(n.shape(index))} differ")
    coefficients = p.numbers("coeff")
    if coefficients and (operation != "SUM" or len(coefficients) != len(n)):
        raise Broken(f"{len(coefficients)} coefficients do not fit {operation} of {len(n)} inputs")
    parts = [n.expr(index) for index in range(len(n))]
    if operation == "SUM":
        scaled = [
            part if c == 1 else R.multiply(part, n.scalar(c))
            for part, c in zip(parts, coefficients or [1.0] * len(parts), strict=True)
        ]
        return reduce(R.add, scaled)
    return reduce(R.multiply if operation == "PROD" else R.maximum, parts)


@converter("Axpy")
def axpy(n: Node) -> Expr:
    """a * x + y with a: [N, C] or [N, C, 1, 1], x and y: [N, C, H, W] (squeeze-and-excitation networks)."""
    n.need(3)
    a, x, y = (n.shape(index) for index in range(3))
    if x != y or len(x) != 4 or a[:2] != x[:2] or len(a) not in (2, 4) or any(dim != 1 for dim in a[2:]):
        raise Broken(f"its inputs {list(a)}, {list(x)}, {list(y)} do not fit")
    return R.add(R.multiply(n.reshaped(n.expr(0), (*x[:2], 1, 1)), n.expr(1)), n.expr(2))


@converter("Concat")
def concat(n: Node) -> Value:
    n.need(1, MAX_INPUTS)
    p = n.params("concat_param")
    axis = n.axis(p.whole("concat_dim", 1) if p.has("concat_dim") else p.whole("axis", 1, -8))
    for index in range(1, len(n)):
        if _without(n.shape(index), axis) != _without(n.shape(), axis) or n.rank(index) != n.rank():
            raise Broken(f"its inputs {list(n.shape())} and {list(n.shape(index))} differ beside axis {axis}")
    if len(n) == 1:
        return n.values[0]
    if all(isinstance(value, np.ndarray) for value in n.values):  # prior boxes
        return np.concatenate([np.asarray(value) for value in n.values], axis)
    return R.concat([n.expr(index) for index in range(len(n))], axis)


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


@converter("Slice")
def slices(n: Node) -> list[Expr]:
    """Equal parts, or parts that end at the slice points."""
    n.need(1)
    p = n.params("slice_param")
    axis = n.axis(p.whole("slice_dim", 1) if p.has("slice_dim") else p.whole("axis", 1, -8))
    size, count = n.shape()[axis], len(n.layer.outputs)
    points = p.wholes("slice_point", 1)
    if not points:
        if size % count:
            raise Broken(f"{size} elements cannot be cut into {count} equal parts")
        points = [size // count * part for part in range(1, count)]
    bounds = [0, *points, size]
    if len(points) != count - 1 or any(a >= b for a, b in pairwise(bounds)):
        raise Broken(f"slice points {points} do not cut {size} elements into {count} parts")
    if count == 1:
        return [n.expr()]
    return [R.strided_slice(n.expr(), axes=[axis], begin=[a], end=[b]) for a, b in pairwise(bounds)]


@converter("Split")
def split(n: Node) -> list[Expr]:
    """Every top is the bottom."""
    n.need(1)
    return [n.expr()] * len(n.layer.outputs)


@converter("Silence")
def silence(n: Node) -> list[Expr]:
    """Reads a blob so that it is no output of the network."""
    return []


@converter("Crop")
def crop(n: Node) -> Expr:
    """The first input cut to the second's size, from ``axis`` on, at the offsets."""
    n.need(2)
    p = n.params("crop_param")
    axis = n.axis(p.whole("axis", 2, -8))
    offsets, axes = p.wholes("offset"), list(range(axis, n.rank()))
    if n.rank(1) != n.rank() or len(offsets) not in (0, 1, len(axes)):
        raise Broken(f"{len(offsets)} offsets from axis {axis} do not fit {list(n.shape())} and {list(n.shape(1))}")
    offsets = offsets * len(axes) if len(offsets) == 1 else offsets or [0] * len(axes)
    ends = [offset + n.shape(1)[a] for offset, a in zip(offsets, axes, strict=True)]
    if any(end > n.shape()[a] for end, a in zip(ends, axes, strict=True)):
        raise Broken(f"{list(n.shape(1))} at offsets {offsets} is beyond {list(n.shape())}")
    if all(not offset for offset in offsets) and ends == [n.shape()[a] for a in axes]:
        return n.expr()
    return R.strided_slice(n.expr(), axes=axes, begin=offsets, end=ends)


@converter("Tile")
def tile(n: Node) -> Expr:
    n.need(1)
    p = n.params("tile_param")
    axis, times = n.axis(p.whole("axis", 1, -8)), p.whole("tiles", 0, 0)
    if times < 1:
        raise Broken(f"{p.name} gives no tiles")
    return R.tile(n.expr(), [times if i == axis else 1 for i in range(n.rank())])
