"""Convolutions, pools, batch norm and resizing in numpy, NHWC, as TensorFlow defines them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..refused import Refused
from .graph import Operation
from .meanings import Array, meaning


def _is_nchw(o: Operation) -> bool:
    return o.attr("data_format", "NHWC") == "NCHW"


def _in(o: Operation, x: Array) -> Array:
    """Return ``x`` as NHWC."""
    return x.transpose(0, 2, 3, 1) if _is_nchw(o) else x


def _out(o: Operation, y: Array) -> Array:
    """Return NHWC ``y`` in the operation's own layout."""
    return y.transpose(0, 3, 1, 2) if _is_nchw(o) else y


def _pair(o: Operation, name: str) -> tuple[int, int]:
    values = o.attr(name) or [1, 1, 1, 1]
    return (values[2], values[3]) if _is_nchw(o) else (values[1], values[2])


def _pads(o: Operation, sizes: tuple[int, int], reach: tuple[int, int], strides: tuple[int, int]) -> list[Any]:
    """Return (before, after) of both dimensions."""
    if o.attr("padding") == "EXPLICIT":
        given = o.attr("explicit_paddings")
        at = 4 if _is_nchw(o) else 2
        return [(given[at], given[at + 1]), (given[at + 2], given[at + 3])]
    if o.attr("padding") == "VALID":
        return [(0, 0), (0, 0)]
    pads = []
    for size, r, s in zip(sizes, reach, strides, strict=True):
        total = max((-(-size // s) - 1) * s + r - size, 0)
        pads.append((total // 2, total - total // 2))
    return pads


def _views(
    x: Array, kernel: tuple[int, int], strides: tuple[int, int], dilations: tuple[int, int]
) -> Iterator[tuple[tuple[int, int], Array]]:
    """Yield each position in the kernel with what all windows of NHWC ``x`` see there."""
    sizes = zip(x.shape[1:3], kernel, strides, dilations, strict=True)
    outs = [(size - (k - 1) * d - 1) // s + 1 for size, k, s, d in sizes]
    for i, j in itertools.product(range(kernel[0]), range(kernel[1])):
        top, left = i * dilations[0], j * dilations[1]
        rows = slice(top, top + (outs[0] - 1) * strides[0] + 1, strides[0])
        columns = slice(left, left + (outs[1] - 1) * strides[1] + 1, strides[1])
        yield (i, j), x[:, rows, columns]


def _padded(o: Operation, x: Array, kernel: tuple[int, int], fill: float) -> tuple[Array, tuple[int, int], Any]:
    strides, dilations = _pair(o, "strides"), _pair(o, "dilations")
    reach = ((kernel[0] - 1) * dilations[0] + 1, (kernel[1] - 1) * dilations[1] + 1)
    pads = _pads(o, (x.shape[1], x.shape[2]), reach, strides)
    x = np.pad(x, [(0, 0), *pads, (0, 0)], constant_values=fill)
    return x, strides, dilations


@meaning("Conv2D")
def conv2d(o: Operation, x: Array, w: Array) -> Array:
    """w: [KH, KW, C/G, O]. Sums in float64: a reference should be nearer to the truth than what it judges."""
    dtype, kernel = x.dtype, (w.shape[0], w.shape[1])
    x, w = _in(o, x).astype("float64"), w.astype("float64")
    groups = x.shape[3] // w.shape[2]
    x, strides, dilations = _padded(o, x, kernel, 0)
    total: Any = 0
    for (i, j), view in _views(x, kernel, strides, dilations):
        parts = zip(np.split(view, groups, 3), np.split(w[i, j], groups, 1), strict=True)
        total = total + np.concatenate([part @ weight for part, weight in parts], 3)
    return _out(o, total.astype(dtype))


@meaning("DepthwiseConv2dNative")
def depthwise(o: Operation, x: Array, w: Array) -> Array:
    """w: [KH, KW, C, M]; output channel c * M + m."""
    dtype, kernel = x.dtype, (w.shape[0], w.shape[1])
    x, strides, dilations = _padded(o, _in(o, x).astype("float64"), kernel, 0)
    total: Any = 0
    for (i, j), view in _views(x, kernel, strides, dilations):
        total = total + view[..., None] * w[i, j]
    return _out(o, total.reshape(*total.shape[:3], -1).astype(dtype))


@meaning("Conv2DBackpropInput")
def conv2d_transpose(o: Operation, sizes: Array, w: Array, y: Array) -> Array:
    """w: [KH, KW, C, O] with C the result's channels: every element of y adds its kernel, then pads are cut off."""
    y = _in(o, y)
    n, h, wide, c = (int(sizes[i]) for i in ((0, 2, 3, 1) if _is_nchw(o) else (0, 1, 2, 3)))
    kernel, strides, dilations = (w.shape[0], w.shape[1]), _pair(o, "strides"), _pair(o, "dilations")
    reach = ((kernel[0] - 1) * dilations[0] + 1, (kernel[1] - 1) * dilations[1] + 1)
    (top, bottom), (left, right) = _pads(o, (h, wide), reach, strides)
    full = np.zeros((n, h + top + bottom, wide + left + right, c), y.dtype)
    for (i, j), view in _views(full, kernel, strides, dilations):
        view += y @ w[i, j].T
    return _out(o, full[:, top : top + h, left : left + wide])


def _pool(o: Operation, x: Array, fill: float) -> tuple[Array, list[Array], list[Array]]:
    """Return NHWC x and, for each position in the window, its values and whether they lie within the input."""
    x, kernel = _in(o, x), _pair(o, "ksize")
    inside = np.ones((1, *x.shape[1:3], 1), bool)
    padded, strides, dilations = _padded(o, x, kernel, fill)
    mask, _, _ = _padded(o, inside, kernel, 0)
    values = [view for _, view in _views(padded, kernel, strides, dilations)]
    return x, values, [view for _, view in _views(mask, kernel, strides, dilations)]


@meaning("MaxPool")
def max_pool(o: Operation, x: Array) -> Array:
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    _, values, _ = _pool(o, x, lowest)
    return _out(o, np.max(values, axis=0))


@meaning("AvgPool")
def avg_pool(o: Operation, x: Array) -> Array:
    """Only elements of the input count."""
    _, values, inside = _pool(o, x, 0)
    total = np.sum(values, axis=0, dtype="float64") / np.sum(inside, axis=0)
    return _out(o, total.astype(x.dtype))


@meaning("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def batch_norm(o: Operation, x: Array, scale: Array, offset: Array, mean: Array, variance: Array) -> tuple[Array, ...]:
    if o.attr("is_training", True):
        raise Refused("is_training is set", "Freeze the network for inference.")
    factor = scale / np.sqrt(variance + np.float32(o.attr("epsilon", 1e-4)))
    return (_out(o, (_in(o, x) - mean) * factor + offset).astype(x.dtype), mean, variance)


def scale_of(o: Operation, size: int, out: int) -> np.float32:
    """Return input elements per output element of a resize."""
    if o.attr("align_corners", False) and out > 1:
        return np.float32(np.float32(size - 1) / np.float32(out - 1))
    return np.float32(np.float32(size) / np.float32(out))


@meaning("ResizeBilinear")
def resize_bilinear(o: Operation, x: Array, sizes: Array) -> Array:
    x = x.astype("float32")
    for axis in (2, 1):
        size, out = x.shape[axis], int(sizes[axis - 1])
        at = np.arange(out, dtype="float32")
        scale = scale_of(o, size, out)
        at = (at + np.float32(0.5)) * scale - np.float32(0.5) if o.attr("half_pixel_centers", False) else at * scale
        low = np.maximum(np.floor(at), 0).astype(int)
        high = np.minimum(np.ceil(at), size - 1).astype(int)
        part = (at - np.floor(at)).reshape(-1, *[1] * (3 - axis))
        first, second = np.take(x, low, axis), np.take(x, high, axis)
        x = first + (second - first) * part
    return x


@meaning("ResizeNearestNeighbor")
def resize_nearest(o: Operation, x: Array, sizes: Array) -> Array:
    for axis in (1, 2):
        size, out = x.shape[axis], int(sizes[axis - 1])
        at = np.arange(out, dtype="float32")
        half = np.float32(0.5 if o.attr("half_pixel_centers", False) else 0)
        at = (at + half) * scale_of(o, size, out)
        at = np.floor(at + np.float32(0.5)) if o.attr("align_corners", False) else np.floor(at)
        x = np.take(x, np.clip(at, 0, size - 1).astype(int), axis)
    return x
