"""Operators that move elements and never change them, in numpy: the same for floats and integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from .fixed_point import zero_of
from .interpret import Array, Evaluator, Step
from .windows import nearest_index


def _ints(x: Array) -> list[int]:
    return [int(value) for value in np.asarray(x).reshape(-1)]


def _reshape(s: Step) -> Array:
    return s.x[0].reshape(s.outputs[0].shape)


def slices_of(s: Step, rank: int) -> tuple[Any, ...]:
    """Return the numpy index of a STRIDED_SLICE with its masks; negative strides included."""
    begin, end, strides = (_ints(x) for x in s.x[1:4])
    mask = {name: int(s.option(f"{name}_mask")) for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    index: list[Any] = []
    for i, (first, stop, step) in enumerate(zip(begin, end, strides, strict=True)):
        bit = 1 << i
        if mask["ellipsis"] & bit:
            index.append(Ellipsis)
        elif mask["new_axis"] & bit:
            index.append(None)
        elif mask["shrink_axis"] & bit:
            index.append(first)
        else:
            stop = first + stop if s.option("offset") else stop
            index.append(slice(None if mask["begin"] & bit else first, None if mask["end"] & bit else stop, step))
    return tuple(index)


def _strided_slice(s: Step) -> Array:
    return s.x[0][slices_of(s, s.x[0].ndim)]


def _slice(s: Step) -> Array:
    begin, size = _ints(s.x[1]), _ints(s.x[2])
    return s.x[0][tuple(slice(b, None if n < 0 else b + n) for b, n in zip(begin, size, strict=True))]


def _split(s: Step) -> list[Array]:
    return np.split(s.x[1], len(s.outputs), axis=int(np.reshape(s.x[0], ())))


def _split_v(s: Step) -> list[Array]:
    axis = int(np.reshape(s.x[2], ()))
    sizes = [t.shape[axis] for t in s.outputs]
    return np.split(s.x[0], np.cumsum(sizes)[:-1], axis=axis)


def _pad(s: Step) -> Array:
    fill: Any = zero_of(s.source()) if s.source().is_quantised else 0
    if s.op.kind == "PADV2":
        fill = np.reshape(s.x[2], ())
    return np.pad(s.x[0], np.asarray(s.x[1]), constant_values=fill)


def _mirror_pad(s: Step) -> Array:
    return np.pad(s.x[0], np.asarray(s.x[1]), "symmetric" if s.option("mode") else "reflect")


def _unpack(s: Step) -> list[Array]:
    return [np.take(s.x[0], i, axis=s.option("axis")) for i in range(len(s.outputs))]


def _gather(s: Step) -> Array:
    axis, batch = s.option("axis"), s.option("batch_dims")
    if not batch:
        return np.take(s.x[0], s.x[1], axis=axis)
    axis = axis % s.x[0].ndim
    lead = int(np.prod(s.x[0].shape[:batch]))
    table = s.x[0].reshape(lead, *s.x[0].shape[batch:])
    indices = s.x[1].reshape(lead, *s.x[1].shape[batch:])
    rows = [np.take(t, i, axis=axis - batch) for t, i in zip(table, indices, strict=True)]
    return np.stack(rows).reshape(s.outputs[0].shape)


def _space_to_depth(s: Step) -> Array:
    n, h, w, c = s.x[0].shape
    b = s.option("block_size")
    x = s.x[0].reshape(n, h // b, b, w // b, b, c)
    return x.transpose(0, 1, 3, 2, 4, 5).reshape(n, h // b, w // b, b * b * c)


def _depth_to_space(s: Step) -> Array:
    n, h, w, c = s.x[0].shape
    b = s.option("block_size")
    x = s.x[0].reshape(n, h, w, b, b, c // (b * b))
    return x.transpose(0, 1, 3, 2, 4, 5).reshape(n, h * b, w * b, c // (b * b))


def _space_to_batch(s: Step) -> Array:
    block, pads = _ints(s.x[1]), np.asarray(s.x[2])
    rank, m = s.x[0].ndim, len(block)
    fill = zero_of(s.source()) if s.source().is_quantised else 0
    x = np.pad(s.x[0], [(0, 0), *pads.tolist(), *[(0, 0)] * (rank - 1 - m)], constant_values=fill)
    shape = [x.shape[0]]
    for size, b in zip(x.shape[1 : 1 + m], block, strict=True):
        shape += [size // b, b]
    x = x.reshape(*shape, *x.shape[1 + m :])
    order = [2 * i + 2 for i in range(m)] + [0] + [2 * i + 1 for i in range(m)] + list(range(1 + 2 * m, x.ndim))
    return x.transpose(order).reshape(s.outputs[0].shape)


def _batch_to_space(s: Step) -> Array:
    block, crops = _ints(s.x[1]), np.asarray(s.x[2])
    x, m = s.x[0], len(block)
    batch = x.shape[0] // int(np.prod(block))
    y = x.reshape(*block, batch, *x.shape[1:])
    order = [m]
    for i in range(m):
        order += [m + 1 + i, i]
    y = y.transpose(order + list(range(2 * m + 1, y.ndim)))
    y = y.reshape(batch, *[n * b for n, b in zip(x.shape[1 : 1 + m], block, strict=True)], *x.shape[1 + m :])
    cut = [slice(int(a), y.shape[i + 1] - int(b)) for i, (a, b) in enumerate(crops)]
    return y[(slice(None), *cut)]


def _resize_nearest(s: Step) -> Array:
    x, (h, w) = s.x[0], _ints(s.x[1])
    flags = (bool(s.option("align_corners")), bool(s.option("half_pixel_centers")))
    rows, columns = nearest_index(x.shape[1], h, *flags), nearest_index(x.shape[2], w, *flags)
    return x[:, rows][:, :, columns]


def _cast(s: Step) -> Array:
    return s.x[0].astype(s.outputs[0].dtype)


def _one_hot(s: Step) -> Array:
    depth, on, off = int(np.reshape(s.x[1], ())), np.reshape(s.x[2], ()), np.reshape(s.x[3], ())
    hot = s.x[0][..., None] == np.arange(depth)
    axis = s.option("axis")
    return np.where(np.moveaxis(hot, -1, axis if axis >= 0 else -1), on, off)


EVALUATORS: dict[str, Evaluator] = {
    "RESHAPE": _reshape, "SQUEEZE": _reshape, "EXPAND_DIMS": _reshape,
    "TRANSPOSE": lambda s: np.transpose(s.x[0], _ints(s.x[1])),
    "STRIDED_SLICE": _strided_slice, "SLICE": _slice, "SPLIT": _split, "SPLIT_V": _split_v,
    "PAD": _pad, "PADV2": _pad, "MIRROR_PAD": _mirror_pad,
    "PACK": lambda s: np.stack(s.x, axis=s.option("axis")), "UNPACK": _unpack,
    "GATHER": _gather, "TILE": lambda s: np.tile(s.x[0], _ints(s.x[1])),
    "GATHER_ND": lambda s: s.x[0][tuple(np.moveaxis(s.x[1], -1, 0))],
    "REVERSE_V2": lambda s: np.flip(s.x[0], tuple(_ints(s.x[1]))),
    "BROADCAST_TO": lambda s: np.broadcast_to(s.x[0], s.outputs[0].shape),
    "SPACE_TO_DEPTH": _space_to_depth, "DEPTH_TO_SPACE": _depth_to_space,
    "SPACE_TO_BATCH_ND": _space_to_batch, "BATCH_TO_SPACE_ND": _batch_to_space,
    "RESIZE_NEAREST_NEIGHBOR": _resize_nearest, "CAST": _cast, "ONE_HOT": _one_hot,
    "DENSIFY": lambda s: s.x[0],  # the reader has made it dense
    "SHAPE": lambda s: np.array(s.source().shape), "RANK": lambda s: np.array(len(s.source().shape)),
    "FILL": lambda s: np.full(s.outputs[0].shape, np.reshape(s.x[1], ())),
    "ZEROS_LIKE": lambda s: np.zeros_like(s.x[0]),
    "RANGE": lambda s: np.arange(*(np.reshape(x, ()).item() for x in s.x[:3])),
}  # fmt: skip
