"""Operators that move stored numbers: the same for real numbers and quantised ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax
from tvm.relax import Expr, TupleGetItem

from ..network import constant, shape_of
from ..refused import Refused
from .fixed_point import zero_of
from .flow import TO_NHWC, Flow
from .op import Op
from .registry import converter, mover
from .windows import nearest_index

R = relax.op


@mover("RESHAPE", "SQUEEZE", "EXPAND_DIMS")
def reshape(n: Op) -> Flow:
    """The target shape is the output tensor's, checked against the operands."""
    shape = list(n.out().shape)
    if n.kind == "RESHAPE":
        wanted = n.ints(1, "the new shape") if n.has(1) else list(n.option("new_shape"))
        if not (len(wanted) == 1 and wanted[0] == 0 and not shape):  # old converters write [0] for a scalar
            shape = wanted
    if shape.count(-1) == 1:
        rest = int(np.prod([d for d in shape if d != -1]))
        shape[shape.index(-1)] = int(np.prod(n.shape())) // max(rest, 1)
    if min(shape, default=0) < 0 or int(np.prod(shape)) != int(np.prod(n.shape())):
        raise Refused(f"{list(n.shape())} does not become {shape}")
    return Flow(n.emit(n.reshaped(n.expr(), shape)))


@mover("TRANSPOSE")
def transpose(n: Op) -> Flow:
    """A transposition to or from NCHW is only another view of what is there already."""
    order = [n.axis(a) for a in n.ints(1, "the permutation")]
    if sorted(order) != list(range(n.rank())):
        raise Refused(f"permutation {order} does not fit {n.rank()} dimensions")
    if order == list(range(n.rank())):
        return Flow(n.expr())
    if n.is_planar() and tuple(order) == (0, 3, 1, 2):
        return Flow(n.planar())
    if tuple(order) == TO_NHWC and not n.is_const(0) and not n.is_planar():
        return Flow(n.expr(), is_planar=True)
    return Flow(n.emit(R.permute_dims(n.expr(), order)))


@converter("CONCATENATION")
def concatenate(n: Op) -> Flow:
    return n.activated(*joined(n))


def joined(n: Op) -> tuple[Expr, bool]:
    """Return the operands side by side, and whether that is planar."""
    axis, count = n.axis(n.option("axis")), range(len(n))
    if n.rank() == 4 and all(n.is_planar(i) or n.is_const(i) for i in count) and any(n.is_planar(i) for i in count):
        return R.concat([n.planar(i) for i in count], TO_NHWC[axis]), True
    return R.concat([n.expr(i) for i in count], axis), False


@mover("PAD", "PADV2")
def pad(n: Op) -> Flow:
    """Quantised tensors are padded with the number that stands for zero."""
    widths = n.const(1, "the padding").reshape(-1, 2).astype("int64").tolist()
    if len(widths) != n.rank() or min(map(min, widths), default=0) < 0:
        raise Refused(f"padding {widths} does not fit {list(n.shape())}")
    fill = float(n.const(2, "the padding value").reshape(())) if n.kind == "PADV2" else 0.0
    if n.kind == "PAD" and n.tensor().is_quantised:
        fill = float(zero_of(n.tensor()))
    return _padded(n, widths, fill)


def _padded(n: Op, widths: list[list[int]], fill: float) -> Flow:
    if n.is_planar() or (n.rank() == 4 and not any(widths[0] + widths[3])):  # an image: a convolution reads it
        widths = [widths[0], widths[3], widths[1], widths[2]]
        return Flow(n.emit(R.nn.pad(n.planar(), _flat(widths), pad_value=fill)), is_planar=True)
    return Flow(n.emit(R.nn.pad(n.expr(), _flat(widths), pad_value=fill)))


def _flat(pairs: list[list[int]]) -> list[int]:
    return [width for pair in pairs for width in pair]


@mover("MIRROR_PAD")
def mirror_pad(n: Op) -> Flow:
    """One gather along each axis: REFLECT leaves the edge out, SYMMETRIC repeats it."""
    widths, x = n.const(1, "the padding").reshape(-1, 2), n.expr()
    if len(widths) != n.rank():
        raise Refused(f"padding {widths.tolist()} does not fit {list(n.shape())}")
    for axis, (before, after) in enumerate(widths.tolist()):
        size = n.shape()[axis]
        limit = size if n.option("mode") else size - 1
        if min(before, after) < 0 or max(before, after) > limit:
            raise Refused(f"padding {widths.tolist()} is wider than {list(n.shape())} allows")
        if before or after:
            mode = "symmetric" if n.option("mode") else "reflect"
            index = np.pad(np.arange(size, dtype="int32"), (before, after), mode)  # type: ignore[call-overload]
            x = n.emit(R.take(x, constant(index), axis, mode="clip"))
    return Flow(x)


@mover("STRIDED_SLICE")
def strided_slice(n: Op) -> Flow:
    begin, end, strides = (n.ints(i, what) for i, what in ((1, "begin"), (2, "end"), (3, "the strides")))
    if not len(begin) == len(end) == len(strides) or 0 in strides:
        raise Refused(f"begin {begin}, end {end} and strides {strides} do not fit")
    cuts, shape = _spelled_out(n, begin, end, strides)
    return _cut(n, cuts, shape)


def _spelled_out(n: Op, begin: list[int], end: list[int], strides: list[int]) -> tuple[list[range], list[int]]:
    """Return the elements taken along each axis, and the result's shape: axes dropped and new ones put in."""
    mask = {name: n.option(f"{name}_mask") for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    cuts: list[range] = []
    shape: list[int] = []
    consumed = sum(not (mask["new_axis"] | mask["ellipsis"]) >> i & 1 for i in range(len(begin)))

    def whole(axis: int) -> None:
        cuts.append(range(n.shape()[axis]))
        shape.append(n.shape()[axis])

    for i, (first, stop, step) in enumerate(zip(begin, end, strides, strict=True)):
        bit = 1 << i
        if mask["ellipsis"] & bit:
            for _ in range(n.rank() - consumed):
                whole(len(cuts))
        elif mask["new_axis"] & bit:
            shape.append(1)
        else:
            if len(cuts) >= n.rank():
                raise Refused(f"{len(begin)} slices do not fit {n.rank()} dimensions")
            size = n.shape()[len(cuts)]
            if mask["shrink_axis"] & bit:
                first = first + size if first < 0 else first
                if not 0 <= first < size:
                    raise Refused(f"index {first} is out of range for {size} elements")
                cuts.append(range(first, first + 1))
                continue
            stop = first + stop if n.option("offset") else stop
            cut = slice(None if mask["begin"] & bit else first, None if mask["end"] & bit else stop, step)
            cuts.append(range(*cut.indices(size)))
            shape.append(len(cuts[-1]))
    while len(cuts) < n.rank():
        whole(len(cuts))
    return cuts, shape


def _cut(n: Op, cuts: list[range], shape: list[int]) -> Flow:
    """Return the elements ``cuts`` of operand 0; an image that keeps its axes keeps its layout."""
    if any(not len(cut) for cut in cuts):
        raise Refused("the slice is empty")
    keeps = n.is_planar() and len(shape) == 4 and shape == [len(c) for c in cuts]
    x, order = (n.planar(), (0, 3, 1, 2)) if keeps else (n.expr(), range(n.rank()))
    chosen = [cuts[i] for i in order]
    axes = [i for i, cut in enumerate(chosen) if cut != range(shape_of(x)[i])]
    if axes:
        ends = [_end(chosen[a]) for a in axes]
        x = R.strided_slice(x, axes, [chosen[a].start for a in axes], ends, [chosen[a].step for a in axes])
    x = n.emit(x)
    return Flow(x, True) if keeps else Flow(n.emit(n.reshaped(x, shape)))


def _end(cut: range) -> int:
    """Return the end for strided_slice: of a backward slice down to the first element a large negative number."""
    last = cut[-1] + (1 if cut.step > 0 else -1)
    return last if last >= 0 else -(2**31)


@mover("SLICE")
def slice_(n: Op) -> Flow:
    begin, size = n.ints(1, "begin"), n.ints(2, "the size")
    if len(begin) != n.rank() or len(size) != n.rank():
        raise Refused(f"begin {begin} and size {size} do not fit {list(n.shape())}")
    cuts = [range(b, b + s if s >= 0 else full) for b, s, full in zip(begin, size, n.shape(), strict=True)]
    if any(c.start < 0 or c.stop > full for c, full in zip(cuts, n.shape(), strict=True)):
        raise Refused(f"begin {begin} and size {size} reach beyond {list(n.shape())}")
    return _cut(n, cuts, [len(c) for c in cuts])


@mover("SPLIT")
def split(n: Op) -> list[Flow]:
    axis, count = n.axis(n.ints(0, "the axis")[0], n.rank(1)), len(n.op.outputs)
    if n.shape(1)[axis] % count:
        raise Refused(f"{n.shape(1)[axis]} elements do not split into {count}")
    return _parts(n, 1, axis, [n.shape(1)[axis] // count] * count)


@mover("SPLIT_V")
def split_v(n: Op) -> list[Flow]:
    axis, sizes = n.axis(n.ints(2, "the axis")[0]), n.ints(1, "the sizes")
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = n.shape()[axis] - sum(s for s in sizes if s != -1)
    if sum(sizes) != n.shape()[axis] or min(sizes, default=1) < 1:
        raise Refused(f"sizes {sizes} do not add up to {n.shape()[axis]}")
    return _parts(n, 0, axis, sizes)


def _parts(n: Op, index: int, axis: int, sizes: list[int]) -> list[Flow]:
    if len(sizes) == 1:
        return [Flow(n.expr(index))]
    is_planar = n.is_planar(index)
    x = n.planar(index) if is_planar else n.expr(index)
    axis = TO_NHWC[axis] if is_planar else axis
    parts = n.emit(R.split(x, [int(v) for v in np.cumsum(sizes)[:-1]], axis))
    return [Flow(n.emit(TupleGetItem(parts, i)), is_planar) for i in range(len(sizes))]


@mover("PACK")
def pack(n: Op) -> Flow:
    axis = n.axis(n.option("axis"), n.rank() + 1)
    shape = [*n.shape()[:axis], 1, *n.shape()[axis:]]
    return Flow(n.emit(R.concat([n.emit(n.reshaped(n.expr(i), shape)) for i in range(len(n))], axis)))


@mover("UNPACK")
def unpack(n: Op) -> list[Flow]:
    axis = n.axis(n.option("axis"))
    shape = [size for i, size in enumerate(n.shape()) if i != axis]
    parts = _parts(n, 0, axis, [1] * n.shape()[axis])
    return [Flow(n.emit(n.reshaped(part.logical(n.build), shape))) for part in parts]


@mover("GATHER")
def gather(n: Op) -> Flow:
    if n.option("batch_dims"):
        raise Refused(f"batch_dims {n.option('batch_dims')} is not supported", "Supported: 0.")
    axis = n.axis(n.option("axis"))
    if n.is_const(1):
        index = n.const(1, "the indices")
        if index.size and not 0 <= index.min() <= index.max() < n.shape()[axis]:
            raise Refused(f"an index lies outside of {n.shape()[axis]} elements")
    return Flow(n.emit(R.take(n.expr(0), n.expr(1), axis, mode="clip")))


@mover("TILE")
def tile(n: Op) -> Flow:
    return Flow(n.emit(R.tile(n.expr(), n.ints(1, "the multiples"))))


@mover("BROADCAST_TO")
def broadcast_to(n: Op) -> Flow:
    return Flow(n.emit(R.broadcast_to(n.expr(), n.ints(1, "the shape"))))


@mover("REVERSE_V2")
def reverse(n: Op) -> Flow:
    x = n.expr()
    for axis in n.ints(1, "the axes"):
        x = n.emit(R.flip(x, n.axis(axis)))
    return Flow(x)


@mover("DENSIFY")
def densify(n: Op) -> Flow:
    return Flow(n.expr())


@mover("CAST")
def cast(n: Op) -> Flow:
    is_planar = n.is_planar()
    return Flow(n.emit(R.astype(n.planar() if is_planar else n.expr(), n.out().dtype)), is_planar)


@mover("SPACE_TO_DEPTH", "DEPTH_TO_SPACE")
def blocks(n: Op) -> Flow:
    """Blocks of b x b pixels to channels and back, pixel first and channel last."""
    b = n.option("block_size")
    _, h, w, c = n.shape()
    if b < 1 or (h % b or w % b if n.kind == "SPACE_TO_DEPTH" else c % (b * b)):
        raise Refused(f"block size {b} does not fit {list(n.shape())}")
    if n.kind == "SPACE_TO_DEPTH":
        split_, order, merged = (-1, c, h // b, b, w // b, b), (0, 3, 5, 1, 2, 4), (-1, c * b * b, h // b, w // b)
    else:
        split_, order, merged = (-1, b, b, c // (b * b), h, w), (0, 3, 4, 1, 5, 2), (-1, c // (b * b), h * b, w * b)
    first = n.shape()[0]
    x = R.reshape(n.planar(), (first, *split_[1:]))
    return Flow(n.emit(R.reshape(R.permute_dims(x, order), (first, *merged[1:]))), is_planar=True)


@mover("SPACE_TO_BATCH_ND")
def space_to_batch(n: Op) -> Flow:
    block, widths = n.ints(1, "the block"), n.const(2, "the paddings").reshape(-1, 2).tolist()
    m = len(block)
    if len(widths) != m or min(block) < 1 or n.rank() < m + 1:
        raise Refused(f"block {block} and paddings {widths} do not fit {list(n.shape())}")
    fill = float(zero_of(n.tensor())) if n.tensor().is_quantised else 0.0
    pads = [0, 0, *_flat(widths), *[0] * (2 * (n.rank() - 1 - m))]
    x = n.emit(R.nn.pad(n.expr(), pads, pad_value=fill))
    full = shape_of(x)
    if any(size % b for size, b in zip(full[1 : 1 + m], block, strict=True)):
        raise Refused(f"block {block} does not divide {list(full)}")
    shape: list[int] = [full[0]]
    for size, b in zip(full[1 : 1 + m], block, strict=True):
        shape += [size // b, b]
    shape += full[1 + m :]
    order = [2 * i + 2 for i in range(m)] + [0] + [2 * i + 1 for i in range(m)] + list(range(1 + 2 * m, len(shape)))
    cells = [size // b for size, b in zip(full[1 : 1 + m], block, strict=True)]
    out = [full[0] * int(np.prod(block)), *cells, *full[1 + m :]]
    return Flow(n.emit(R.reshape(R.permute_dims(R.reshape(x, shape), order), out)))


@mover("BATCH_TO_SPACE_ND")
def batch_to_space(n: Op) -> Flow:
    block, crops = n.ints(1, "the block"), n.const(2, "the crops").reshape(-1, 2).tolist()
    m, shape = len(block), n.shape()
    if len(crops) != m or min(block) < 1 or n.rank() < m + 1 or shape[0] % int(np.prod(block)):
        raise Refused(f"block {block} and crops {crops} do not fit {list(shape)}")
    batch = shape[0] // int(np.prod(block))
    order = [m]
    for i in range(m):
        order += [m + 1 + i, i]
    x = R.reshape(n.expr(), (*block, batch, *shape[1:]))
    x = R.permute_dims(x, order + list(range(2 * m + 1, m + len(shape))))
    full = [s * b for s, b in zip(shape[1 : 1 + m], block, strict=True)]
    x = n.emit(R.reshape(x, (batch, *full, *shape[1 + m :])))
    ends = [size - int(after) for size, (_, after) in zip(full, crops, strict=True)]
    return Flow(n.emit(R.strided_slice(x, list(range(1, m + 1)), [int(before) for before, _ in crops], ends)))


@mover("RESIZE_NEAREST_NEIGHBOR")
def resize_nearest(n: Op) -> Flow:
    h, w = n.ints(1, "the size")
    flags = (bool(n.option("align_corners")), bool(n.option("half_pixel_centers")))
    _, ih, iw, _ = n.shape()
    if min(h, w) < 1:
        raise Refused(f"size {[h, w]} is empty")
    tables = [nearest_index(size, out, *flags) for size, out in ((ih, h), (iw, w))]
    whole = (out % size == 0 and np.array_equal(t, np.arange(out) // (out // size))
             for t, size, out in zip(tables, (ih, iw), (h, w), strict=True))  # fmt: skip
    if all(whole):
        y: Any = R.image.resize2d(
            n.planar(), (h, w), layout="NCHW", method="nearest_neighbor",
            coordinate_transformation_mode="asymmetric", rounding_method="floor",
        )  # fmt: skip
    else:
        rows = n.emit(R.take(n.planar(), constant(tables[0]), 2, mode="clip"))
        y = R.take(rows, constant(tables[1]), 3, mode="clip")
    return Flow(n.emit(y), is_planar=True)
