"""Operators that move elements without computing: reshape, transpose, join, pad, tile, space and depth."""

from __future__ import annotations

import math

import numpy as np
from tvm import relax
from tvm.relax import Expr

from ..network import shape_of
from ..refused import Refused
from .node import Node
from .registry import converter

R = relax.op


@converter("Reshape")
def reshape(n: Node) -> Expr:
    """-1 takes what is left."""
    shape, source = n.ints(1, "shape"), n.shape()
    if shape.count(-1) == 1:
        known = math.prod(size for size in shape if size != -1)
        shape[shape.index(-1)] = math.prod(source) // known if known else 0
    if math.prod(shape) != math.prod(source) or any(size < 0 for size in shape):
        raise Refused(f"{list(source)} cannot become {n.ints(1, 'shape')}")
    return n.reshaped(n.expr(0), shape)


@converter("Squeeze")
def squeeze(n: Node) -> Expr:
    shape, axes = n.shape(), n.attr("squeeze_dims") or n.attr("axis")
    drop = {n.axis(a) for a in axes} if axes else {i for i, size in enumerate(shape) if size == 1}
    if any(shape[i] != 1 for i in drop):
        raise Refused(f"axes {sorted(drop)} of {list(shape)} are not all 1")
    return n.reshaped(n.expr(0), [size for i, size in enumerate(shape) if i not in drop])


@converter("ExpandDims")
def expand_dims(n: Node) -> Expr:
    shape = list(n.shape())
    axis = n.axis(n.integer(1, "axis"), len(shape) + 1)
    return n.reshaped(n.expr(0), [*shape[:axis], 1, *shape[axis:]])


@converter("Transpose")
def transpose(n: Node) -> Expr:
    """A permutation that only moves dimensions of size 1 is a reshape."""
    shape, perm = n.shape(), n.ints(1, "perm")
    if sorted(perm) != list(range(len(shape))):
        raise Refused(f"perm {perm} is no permutation of {len(shape)} dimensions")
    order = [axis for axis in perm if shape[axis] != 1]
    if order == sorted(order):
        return n.reshaped(n.expr(0), [shape[axis] for axis in perm])
    return R.permute_dims(n.expr(0), perm)


def _joined(n: Node, parts: list[Expr], axis: int) -> Expr:
    """Return the parts joined; those without elements are left out."""
    full = [part for part in parts if math.prod(shape_of(part)) > 0] or parts[:1]
    return full[0] if len(full) == 1 else R.concat(full, axis)


@converter("ConcatV2")
def concat_v2(n: Node) -> Expr:
    last = len(n) - 1
    return _joined(n, [n.expr(i) for i in range(last)], n.axis(n.integer(last, "axis")))


@converter("Concat")
def concat(n: Node) -> Expr:
    axis = n.axis(n.integer(0, "axis"), n.rank(1))
    return _joined(n, [n.expr(i) for i in range(1, len(n))], axis)


@converter("Pack")
def pack(n: Node) -> Expr:
    """Join along a new dimension."""
    shape = list(n.shape())
    axis = n.axis(int(n.attr("axis", 0)), len(shape) + 1)
    lifted = [*shape[:axis], 1, *shape[axis:]]
    return _joined(n, [n.emit(n.reshaped(n.expr(i), lifted)) for i in range(len(n))], axis)


def _widths(n: Node) -> list[tuple[int, int]]:
    widths = n.const(1, "paddings")
    if widths.shape != (n.rank(), 2) or widths.min(initial=0) < 0:
        raise Refused(f"paddings {widths.tolist()} do not fit input {list(n.shape())}")
    return [(int(before), int(after)) for before, after in widths]


def _padded(n: Node, value: float) -> Expr:
    widths = [width for pair in _widths(n) for width in pair]
    return R.nn.pad(n.expr(0), widths, "constant", value) if any(widths) else n.expr(0)


@converter("Pad")
def pad(n: Node) -> Expr:
    return _padded(n, 0.0)


@converter("PadV2")
def pad_v2(n: Node) -> Expr:
    return _padded(n, float(n.const(2, "constant_values").reshape(-1)[0]))


@converter("MirrorPad")
def mirror_pad(n: Node) -> Expr:
    """REFLECT leaves the edge out, SYMMETRIC repeats it; the latter reads at constant positions."""
    widths, mode = _widths(n), n.choice("mode", "", ("REFLECT", "SYMMETRIC"))
    spare = 1 if mode == "REFLECT" else 0
    if any(max(pair) > size - spare for pair, size in zip(widths, n.shape(), strict=True)):
        raise Refused(f"paddings {widths} read past the input {list(n.shape())}")
    if mode == "REFLECT":
        return R.nn.pad(n.expr(0), [width for pair in widths for width in pair], "reflect")
    x = n.expr(0)
    for axis, pair in enumerate(widths):
        if any(pair):
            places = np.pad(np.arange(n.shape()[axis], dtype="int32"), pair, "symmetric")
            x = n.emit(R.take(x, n.build.constant(places), axis, mode="clip"))
    return x


@converter("Tile")
def tile(n: Node) -> Expr:
    repeats = n.ints(1, "multiples")
    if len(repeats) != n.rank() or min(repeats, default=1) < 1:
        raise Refused(f"multiples {repeats} do not fit input {list(n.shape())}")
    return n.expr(0) if all(r == 1 for r in repeats) else R.tile(n.expr(0), repeats)


@converter("BroadcastTo")
def broadcast_to(n: Node) -> Expr:
    shape = tuple(n.ints(1, "shape"))
    return n.expr(0) if shape == n.shape() else R.broadcast_to(n.expr(0), shape)


@converter("ReverseV2")
def reverse_v2(n: Node) -> Expr:
    x = n.expr(0)
    for axis in n.ints(1, "axis"):
        x = n.emit(R.flip(x, n.axis(axis)))
    return x


@converter("DepthToSpace")
def depth_to_space(n: Node) -> Expr:
    """[N, (b b C), H, W] -> [N, C, H b, W b]."""
    x, block = n.image(), int(n.attr("block_size", 1))
    batch, depth, height, width = shape_of(x)
    if block < 1 or depth % block**2:
        raise Refused(f"{depth} channels cannot be cut into blocks of {block} x {block}")
    out = depth // block**2
    moved = R.permute_dims(n.reshaped(x, [batch, block, block, out, height, width]), [0, 3, 4, 1, 5, 2])
    return n.image_result(n.reshaped(moved, [batch, out, height * block, width * block]))


@converter("SpaceToDepth")
def space_to_depth(n: Node) -> Expr:
    """[N, C, H, W] -> [N, (b b C), H / b, W / b]."""
    x, block = n.image(), int(n.attr("block_size", 1))
    batch, depth, height, width = shape_of(x)
    if block < 1 or height % block or width % block:
        raise Refused(f"an image of {height} x {width} cannot be cut into blocks of {block} x {block}")
    parts = [batch, depth, height // block, block, width // block, block]
    moved = R.permute_dims(n.reshaped(x, parts), [0, 3, 5, 1, 2, 4])
    return n.image_result(n.reshaped(moved, [batch, depth * block**2, height // block, width // block]))


@converter("Shape")
def shape(n: Node) -> np.ndarray:
    """A constant: all shapes are static."""
    return np.array(n.shape(), n.attr("out_type", "int32"))


@converter("ShapeN")
def shape_n(n: Node) -> list[np.ndarray]:
    return [np.array(n.shape(i), n.attr("out_type", "int32")) for i in range(len(n))]


@converter("Size")
def size(n: Node) -> np.ndarray:
    return np.array(math.prod(n.shape()), n.attr("out_type", "int32"))


@converter("Rank")
def rank(n: Node) -> np.ndarray:
    return np.array(n.rank(), "int32")


@converter("ZerosLike", "OnesLike")
def filled_like(n: Node) -> np.ndarray:
    return np.full(n.shape(), 0 if n.operation.kind == "ZerosLike" else 1, n.dtype())


@converter("Fill")
def fill(n: Node) -> Expr:
    shape = tuple(n.ints(0, "dims"))
    return R.broadcast_to(n.expr(1), shape)


@converter("Range")
def sized_at_run_time(n: Node) -> Expr:
    """Constant ones never come here: they are folded."""
    for index, what in enumerate(("start", "limit", "delta")):
        n.const(index, what)
    raise Refused("its size is computed at run time")
