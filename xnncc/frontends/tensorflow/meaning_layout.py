"""Operators that move elements, in numpy, as TensorFlow defines them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..refused import Refused
from .graph import Operation
from .meanings import Array, meaning, sized


@meaning("Reshape")
def reshape(o: Operation, x: Array, shape: Array) -> Array:
    return x.reshape([int(size) for size in shape])


@meaning("Squeeze")
def squeeze(o: Operation, x: Array) -> Array:
    axes = o.attr("squeeze_dims") or o.attr("axis")
    return np.squeeze(x, tuple(axes) if axes else None)


@meaning("ExpandDims")
def expand_dims(o: Operation, x: Array, axis: Array) -> Array:
    return np.expand_dims(x, int(axis.reshape(-1)[0]))


@meaning("Transpose")
def transpose(o: Operation, x: Array, perm: Array) -> Array:
    return x.transpose([int(axis) for axis in perm])


@meaning("ConcatV2")
def concat_v2(o: Operation, *inputs: Array) -> Array:
    return np.concatenate(inputs[:-1], int(inputs[-1]))


@meaning("Concat")
def concat(o: Operation, axis: Array, *inputs: Array) -> Array:
    return np.concatenate(inputs, int(axis))


@meaning("Split")
def split(o: Operation, axis: Array, x: Array) -> tuple[Array, ...]:
    return tuple(np.split(x, int(o.attr("num_split")), int(axis)))


@meaning("SplitV")
def split_v(o: Operation, x: Array, sizes: Array, axis: Array) -> tuple[Array, ...]:
    parts = split_sizes(sizes, x.shape[int(axis)])
    return tuple(np.split(x, np.cumsum(parts)[:-1], int(axis)))


def split_sizes(sizes: Array, total: int) -> list[int]:
    """Return SplitV's sizes with the -1 resolved."""
    parts = [int(size) for size in np.reshape(sizes, -1)]
    if parts.count(-1) == 1:
        parts[parts.index(-1)] = total - sum(size for size in parts if size >= 0)
    if sum(parts) != total or min(parts, default=-1) < 0:
        raise Refused(f"sizes {parts} do not cut a dimension of {total}")
    return parts


@meaning("Slice")
def slice_(o: Operation, x: Array, begin: Array, size: Array) -> Array:
    stops = [x.shape[i] if size[i] == -1 else begin[i] + size[i] for i in range(x.ndim)]
    return x[tuple(slice(int(b), int(e)) for b, e in zip(begin, stops, strict=True))]


@meaning("StridedSlice")
def strided_slice(o: Operation, x: Array, begin: Array, end: Array, strides: Array) -> Array:
    return x[strided_index(o, begin, end, strides)]


def strided_index(o: Operation, begin: Array, end: Array, strides: Array) -> tuple[Any, ...]:
    """Return StridedSlice's masks, begins, ends and strides as an index of numpy."""
    masks = [int(o.attr(f"{m}_mask", 0)) for m in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")]
    index: list[Any] = []
    for i, (first, last, step) in enumerate(zip(begin.tolist(), end.tolist(), strides.tolist(), strict=True)):
        at_begin, at_end, ellipsis, new_axis, shrink = (bool(mask >> i & 1) for mask in masks)
        if step == 0:
            raise Refused("a stride is 0")
        if ellipsis:
            index.append(Ellipsis)
        elif new_axis:
            index.append(None)
        elif shrink:
            index.append(int(first))
        else:
            index.append(slice(None if at_begin else first, None if at_end else last, step))
    return tuple(index)


@meaning("Pack")
def pack(o: Operation, *inputs: Array) -> Array:
    return np.stack(inputs, int(o.attr("axis", 0)))


@meaning("Unpack")
def unpack(o: Operation, x: Array) -> tuple[Array, ...]:
    axis = int(o.attr("axis", 0))
    return tuple(np.take(x, i, axis) for i in range(x.shape[axis]))


@meaning("Pad")
def pad(o: Operation, x: Array, widths: Array) -> Array:
    return np.pad(x, [(int(a), int(b)) for a, b in widths])


@meaning("PadV2")
def pad_v2(o: Operation, x: Array, widths: Array, value: Array) -> Array:
    return np.pad(x, [(int(a), int(b)) for a, b in widths], constant_values=value.item())


@meaning("MirrorPad")
def mirror_pad(o: Operation, x: Array, widths: Array) -> Array:
    return np.pad(x, [(int(a), int(b)) for a, b in widths], "reflect" if o.attr("mode") == "REFLECT" else "symmetric")


@meaning("Tile")
def tile(o: Operation, x: Array, repeats: Array) -> Array:
    sized([size * int(r) for size, r in zip(x.shape, repeats, strict=True)])
    return np.tile(x, [int(r) for r in repeats])


@meaning("BroadcastTo")
def broadcast_to(o: Operation, x: Array, shape: Array) -> Array:
    return np.broadcast_to(x, sized(shape.tolist())).copy()


@meaning("Gather")
def gather(o: Operation, x: Array, positions: Array) -> Array:
    return np.take(x, positions, 0)


@meaning("GatherV2")
def gather_v2(o: Operation, x: Array, positions: Array, axis: Array) -> Array:
    place, batch = int(axis), int(o.attr("batch_dims", 0))
    place, batch = place % x.ndim, batch % (positions.ndim + 1)
    if not batch:
        return np.take(x, positions, place)
    heads = [np.take(x[at], positions[at], place - batch) for at in np.ndindex(*x.shape[:batch])]
    return np.stack(heads).reshape(*x.shape[:batch], *heads[0].shape)


@meaning("GatherNd")
def gather_nd(o: Operation, x: Array, positions: Array) -> Array:
    return x[tuple(np.moveaxis(positions, -1, 0))]


@meaning("OneHot")
def one_hot(o: Operation, positions: Array, depth: Array, on: Array, off: Array) -> Array:
    hot = np.arange(sized([int(depth)])[0]) == positions[..., None]
    axis = int(o.attr("axis", -1))
    return np.moveaxis(np.where(hot, on, off), -1, axis if axis >= 0 else hot.ndim - 1)


@meaning("Shape")
def shape(o: Operation, x: Array) -> Array:
    return np.array(x.shape, o.attr("out_type", "int32"))


@meaning("ShapeN")
def shape_n(o: Operation, *inputs: Array) -> tuple[Array, ...]:
    return tuple(np.array(x.shape, o.attr("out_type", "int32")) for x in inputs)


@meaning("Size")
def size(o: Operation, x: Array) -> Array:
    return np.array(x.size, o.attr("out_type", "int32"))


@meaning("Rank")
def rank(o: Operation, x: Array) -> Array:
    return np.array(x.ndim, "int32")


@meaning("Fill")
def fill(o: Operation, shape: Array, value: Array) -> Array:
    full: Array = np.full(sized(shape.tolist()), value)
    return full


@meaning("Range")
def range_(o: Operation, start: Array, limit: Array, delta: Array) -> Array:
    if delta == 0:
        raise Refused("its step is 0")
    sized([max(0, int(np.ceil((float(limit) - float(start)) / float(delta))))])
    return np.arange(start.item(), limit.item(), delta.item(), dtype=start.dtype)


@meaning("LinSpace")
def lin_space(o: Operation, start: Array, stop: Array, count: Array) -> Array:
    return np.linspace(start, stop, sized([int(count)])[0], dtype=start.dtype)


@meaning("ReverseV2")
def reverse_v2(o: Operation, x: Array, axes: Array) -> Array:
    return np.flip(x, tuple(int(a) for a in axes))


@meaning("BroadcastArgs")
def broadcast_args(o: Operation, a: Array, b: Array) -> Array:
    return np.array(np.broadcast_shapes(tuple(a), tuple(b)), a.dtype)


@meaning("SpaceToBatchND")
def space_to_batch_nd(o: Operation, x: Array, block: Array, pads: Array) -> Array:
    m = len(block)
    x = np.pad(x, [(0, 0), *[(int(a), int(b)) for a, b in pads], *[(0, 0)] * (x.ndim - m - 1)])
    parts = [x.shape[0]]
    for size, b in zip(x.shape[1 : m + 1], block, strict=True):
        parts += [size // int(b), int(b)]
    x = x.reshape(*parts, *x.shape[m + 1 :])
    order = [*range(2, 2 * m + 1, 2), 0, *range(1, 2 * m + 1, 2), *range(2 * m + 1, x.ndim)]
    x = x.transpose(order)
    return x.reshape(-1, *x.shape[m + 1 :])


@meaning("BatchToSpaceND")
def batch_to_space_nd(o: Operation, x: Array, block: Array, crops: Array) -> Array:
    m, sizes = len(block), [int(b) for b in block]
    x = x.reshape(*sizes, -1, *x.shape[1:])
    order = [m]
    for i in range(m):
        order += [m + 1 + i, i]
    x = x.transpose([*order, *range(2 * m + 1, x.ndim)])
    spatial = [x.shape[1 + 2 * i] * x.shape[2 + 2 * i] for i in range(m)]
    x = x.reshape(x.shape[0], *spatial, *x.shape[2 * m + 1 :])
    cuts = [slice(int(a), size - int(b)) for (a, b), size in zip(crops, spatial, strict=True)]
    return x[(slice(None), *cuts)]


def _as_nhwc(o: Operation, x: Array) -> Array:
    return x.transpose(0, 2, 3, 1) if o.attr("data_format", "NHWC") == "NCHW" else x


def _as_given(o: Operation, x: Array) -> Array:
    return x.transpose(0, 3, 1, 2) if o.attr("data_format", "NHWC") == "NCHW" else x


@meaning("DepthToSpace")
def depth_to_space(o: Operation, x: Array) -> Array:
    x, b = _as_nhwc(o, x), int(o.attr("block_size"))
    n, h, w, c = x.shape
    y = x.reshape(n, h, w, b, b, c // b**2).transpose(0, 1, 3, 2, 4, 5)
    return _as_given(o, y.reshape(n, h * b, w * b, c // b**2))


@meaning("SpaceToDepth")
def space_to_depth(o: Operation, x: Array) -> Array:
    x, b = _as_nhwc(o, x), int(o.attr("block_size"))
    n, h, w, c = x.shape
    y = x.reshape(n, h // b, b, w // b, b, c).transpose(0, 1, 3, 2, 4, 5)
    return _as_given(o, y.reshape(n, h // b, w // b, b * b * c))
