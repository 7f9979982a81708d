"""Operators that move elements without computing: reshape, transpose, slice, join, pad. All sizes are constants."""

from __future__ import annotations

import math

import numpy as np
from tvm import relax
from tvm.relax import Expr, TupleGetItem

from .node import Node, Refused
from .registry import converter
from .shapes import numpy_dtype

R = relax.op


@converter("Reshape")
def reshape(n: Node) -> Expr:
    """0 keeps a dimension (unless ``allowzero``), -1 takes what is left."""
    shape, source = n.ints(1, "shape"), n.shape()
    if not n.attr("allowzero", 0):
        if any(size == 0 and i >= len(source) for i, size in enumerate(shape)):
            raise Refused(f"shape {shape} keeps dimensions that the input {list(source)} does not have")
        shape = [source[i] if size == 0 else size for i, size in enumerate(shape)]
    if shape.count(-1) == 1:
        known = math.prod(size for size in shape if size != -1)
        shape[shape.index(-1)] = math.prod(source) // known if known else 0
    if math.prod(shape) != math.prod(source) or any(size < 0 for size in shape):
        raise Refused(f"{list(source)} cannot become {n.ints(1, 'shape')}")
    return n.reshaped(n.expr(0), shape)


@converter("Flatten")
def flatten(n: Node) -> Expr:
    axis, rank, shape = int(n.attr("axis", 1)), n.rank(), n.shape()
    if not -rank <= axis <= rank:
        raise Refused(f"axis {axis} is out of range for {rank} dimensions")
    axis = axis + rank if axis < 0 else axis
    return n.reshaped(n.expr(0), [math.prod(shape[:axis]), math.prod(shape[axis:])])


@converter("Squeeze")
def squeeze(n: Node) -> Expr:
    shape = n.shape()
    axes = n.ints(1, "axes") if n.has(1) else n.attr("axes")
    drop = {n.axis(a) for a in axes} if axes is not None else {i for i, size in enumerate(shape) if size == 1}
    if any(shape[i] != 1 for i in drop):
        raise Refused(f"axes {sorted(drop)} of {list(shape)} are not all 1")
    return n.reshaped(n.expr(0), [size for i, size in enumerate(shape) if i not in drop])


@converter("Unsqueeze")
def unsqueeze(n: Node) -> Expr:
    axes = n.ints(1, "axes") if n.has(1) else n.attr("axes")
    if axes is None:
        raise Refused("axes are missing")
    rank = n.rank() + len(axes)
    places, rest = {n.axis(a, rank) for a in axes}, iter(n.shape())
    if len(places) != len(axes):
        raise Refused(f"axes {axes} name a dimension twice")
    return n.reshaped(n.expr(0), [1 if i in places else next(rest) for i in range(rank)])


@converter("Transpose")
def transpose(n: Node) -> Expr:
    """A permutation that only moves dimensions of size 1 is a reshape."""
    shape = n.shape()
    perm = n.attr("perm") or list(reversed(range(len(shape))))
    if sorted(perm) != list(range(len(shape))):
        raise Refused(f"perm {perm} is no permutation of {len(shape)} dimensions")
    order = [axis for axis in perm if shape[axis] != 1]
    if order == sorted(order):
        return n.reshaped(n.expr(0), [shape[axis] for axis in perm])
    return R.permute_dims(n.expr(0), list(perm))


@converter("Concat")
def concat(n: Node) -> Expr:
    """Parts without elements are left out."""
    axis = n.axis(int(n.attr("axis", 1)))
    parts = [n.expr(i) for i in range(len(n)) if math.prod(n.shape(i)) > 0] or [n.expr(0)]
    return parts[0] if len(parts) == 1 else R.concat(parts, axis)


@converter("Split")
def split(n: Node) -> list[Expr | np.ndarray]:
    """Parts without elements are constants."""
    shape, count = n.shape(), len(n.proto.output)
    axis = n.axis(int(n.attr("axis", 0)))
    given = n.ints(1, "sizes") if n.has(1) else n.attr("split")
    parts = int(n.attr("num_outputs", count))
    each = -(-shape[axis] // parts)
    sizes = given or [min(each, shape[axis] - each * i) for i in range(parts)]
    if sum(sizes) != shape[axis] or len(sizes) != count or min(sizes) < 0:
        raise Refused(f"sizes {sizes} do not cut dimension {axis} of {list(shape)} into {count} parts")
    filled = [size for size in sizes if size]
    if len(filled) == 1:
        found: list[Expr] = [n.expr(0)]
    else:
        cut = n.emit(R.split(n.expr(0), [int(end) for end in np.cumsum(filled)[:-1]], axis))
        found = [TupleGetItem(cut, i) for i in range(len(filled))]
    empty = np.zeros([0 if i == axis else dim for i, dim in enumerate(shape)], n.dtype())
    rest = iter(found)
    return [next(rest) if size else empty for size in sizes]


@converter("Slice")
def slice_(n: Node) -> Expr:
    """Starts and ends are clamped as the standard says; a negative step is a slice and a flip."""
    if n.opset >= 10:
        starts, ends = n.ints(1, "starts"), n.ints(2, "ends")
        axes = n.ints(3, "axes") if n.has(3) else list(range(len(starts)))
        steps = n.ints(4, "steps") if n.has(4) else [1] * len(starts)
    else:
        starts, ends = n.attr("starts"), n.attr("ends")
        axes, steps = n.attr("axes") or list(range(len(starts))), [1] * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise Refused(f"starts {starts}, ends {ends}, axes {axes} and steps {steps} do not belong together")
    return _sliced(n, [n.axis(a) for a in axes], starts, ends, steps)


def _sliced(n: Node, axes: list[int], starts: list[int], ends: list[int], steps: list[int]) -> Expr:
    cuts, flips, empty = [], [], False
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        size = n.shape()[axis]
        picked = range(size)[slice(start, None if step < 0 and end < -size else end, step)]
        empty = empty or len(picked) == 0
        if step < 0 and picked:
            picked = picked[::-1]
            flips.append(axis)
        if len(picked) != size:
            stop = picked[-1] + 1 if picked else 0
            cuts.append((axis, picked[0] if picked else 0, stop, abs(step)))
    if empty:
        raise Refused("its result has no elements")
    x = n.expr(0)
    if cuts:
        x = R.strided_slice(x, *[list(column) for column in zip(*cuts, strict=True)])
    for axis in flips:
        x = R.flip(x, axis)
    return x


@converter("Expand")
def expand(n: Node) -> Expr:
    source, wanted = n.shape(), n.ints(1, "shape")
    try:
        shape = np.broadcast_shapes(source, tuple(wanted))
    except ValueError:
        raise Refused(f"{list(source)} does not broadcast to {wanted}") from None
    return n.expr(0) if shape == source else R.broadcast_to(n.expr(0), shape)


@converter("Tile")
def tile(n: Node) -> Expr:
    repeats = n.ints(1, "repeats")
    return n.expr(0) if all(r == 1 for r in repeats) else R.tile(n.expr(0), repeats)


@converter("Pad")
def pad(n: Node) -> Expr:
    """Negative pads cut; constant, reflect, edge and wrap fill."""
    shape, rank = n.shape(), n.rank()
    modes = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}
    mode = n.choice("mode", "constant", tuple(modes))
    pads = n.ints(1, "pads") if n.has(1) else list(n.attr("pads") or n.attr("paddings") or [])
    axes = [n.axis(a) for a in n.ints(3, "axes")] if n.has(3) else list(range(rank))
    if len(pads) != 2 * len(axes):
        raise Refused(f"{len(pads)} pads do not fit {len(axes)} axes")
    before, after = [0] * rank, [0] * rank
    for position, axis in enumerate(axes):
        before[axis], after[axis] = pads[position], pads[position + len(axes)]
    x = _cut(n, before, after)
    kept = [size + min(b, 0) + min(a, 0) for size, b, a in zip(shape, before, after, strict=True)]
    before, after = [max(b, 0) for b in before], [max(a, 0) for a in after]
    if not any(before + after):
        return x
    limit = {"reflect": 1, "wrap": 0}.get(mode)
    if limit is not None and any(max(b, a) > size - limit for b, a, size in zip(before, after, kept, strict=True)):
        raise Refused(f"mode '{mode}' with pads {pads} reads past the input {list(shape)}")
    widths = [width for pair in zip(before, after, strict=True) for width in pair]
    return R.nn.pad(x, widths, modes[mode], _pad_value(n) if mode == "constant" else 0.0)


def _pad_value(n: Node) -> float:
    if n.has(2):
        return float(n.const(2, "constant_value").reshape(-1)[0])
    return float(n.attr("value", 0.0))


def _cut(n: Node, before: list[int], after: list[int]) -> Expr:
    cuts = [i for i in range(n.rank()) if before[i] < 0 or after[i] < 0]
    if not cuts:
        return n.expr(0)
    begin = [max(-before[i], 0) for i in cuts]
    end = [n.shape()[i] + min(after[i], 0) for i in cuts]
    return R.strided_slice(n.expr(0), cuts, begin, end, [1] * len(cuts))


@converter("DepthToSpace")
def depth_to_space(n: Node) -> Expr:
    """[N, C, H, W] -> [N, C / b^2, H b, W b]."""
    block = int(n.attr("blocksize", 1))
    deep_first = n.choice("mode", "DCR", ("DCR", "CRD")) == "DCR"
    batch, depth, height, width = n.shape()
    out = depth // block**2
    if deep_first:
        parts, order = [batch, block, block, out, height, width], [0, 3, 4, 1, 5, 2]
    else:
        parts, order = [batch, out, block, block, height, width], [0, 1, 4, 2, 5, 3]
    moved = R.permute_dims(n.reshaped(n.expr(0), parts), order)
    return n.reshaped(moved, [batch, out, height * block, width * block])


@converter("SpaceToDepth")
def space_to_depth(n: Node) -> Expr:
    """[N, C, H, W] -> [N, b^2 C, H / b, W / b]; the inverse of DepthToSpace."""
    block = int(n.attr("blocksize", 1))
    deep_first = n.choice("mode", "DCR", ("DCR", "CRD")) == "DCR"
    batch, depth, height, width = n.shape()
    parts = [batch, depth, height // block, block, width // block, block]
    moved = R.permute_dims(n.reshaped(n.expr(0), parts), [0, 3, 5, 1, 2, 4] if deep_first else [0, 1, 3, 5, 2, 4])
    return n.reshaped(moved, [batch, depth * block**2, height // block, width // block])


@converter("Shape")
def shape(n: Node) -> np.ndarray:
    """A constant: all shapes are static."""
    start, end = int(n.attr("start", 0)), n.attr("end")
    return np.asarray(n.shape()[start:end], "int64")


@converter("Size")
def size(n: Node) -> np.ndarray:
    return np.asarray(math.prod(n.shape()), "int64")


@converter("Compress")
def compress(n: Node) -> Expr:
    """A condition known at import is a gather; any other gives a result of unknown size."""
    kept = np.flatnonzero(n.const(1, "condition"))
    axis = n.attr("axis")
    x = n.expr(0) if axis is not None else n.emit(n.reshaped(n.expr(0), [math.prod(n.shape())]))
    if kept.size == 0:
        raise Refused("its result has no elements")
    return R.take(x, n.build.constant(kept.astype("int64")), 0 if axis is None else n.axis(int(axis)), mode="clip")


@converter("ConstantOfShape", "Range", "EyeLike", "MelWeightMatrix", "HannWindow", "HammingWindow", "BlackmanWindow")
def sized_at_run_time(n: Node) -> Expr:
    """Constant ones never come here (``fold.py``); EyeLike needs only the shape of its input."""
    if n.proto.op_type == "EyeLike":
        rows, columns = n.shape()
        dtype = numpy_dtype(n.attr("dtype", 0)) or n.dtype()
        return n.build.constant(np.eye(rows, columns, int(n.attr("k", 0)), dtype))
    names = {"ConstantOfShape": ("shape",), "Range": ("start", "limit", "delta")}.get(n.proto.op_type, ())
    for index in range(len(n)):
        n.const(index, names[index] if index < len(names) else f"input {index}")
    raise Refused("its size is computed at run time")


@converter("Trilu")
def trilu(n: Node) -> Expr:
    """Keep the triangle above (``upper``) or below diagonal k, zero elsewhere."""
    offset = n.ints(1, "k")[0] if n.has(1) else 0
    square = np.ones(n.shape()[-2:], bool)
    kept = np.triu(square, offset) if n.attr("upper", 1) else np.tril(square, offset)
    return R.where(n.build.constant(kept), n.expr(0), n.scalar(0))
