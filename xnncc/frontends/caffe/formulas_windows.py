"""Layers that look through windows: Convolution, Deconvolution, Pooling, SPP, LRN, Interp, Upsample."""

from __future__ import annotations

import itertools
import math

import numpy as np

from .formulas import Array, formula
from .net import Layer
from .params import Params


def _each(p: Params, field: str, rank: int, default: int) -> list[int]:
    values = p.wholes(field) or [default]
    short = field.split("_")[0]
    if p.has(f"{short}_h") or p.has(f"{short}_w"):
        values = [p.whole(f"{short}_h", default), p.whole(f"{short}_w", default)]
    return values * rank if len(values) == 1 else values


def _groups(layer: Layer, p: Params, x: Array) -> int:
    return x.shape[1] if layer.type == "ConvolutionDepthwise" else p.whole("group", 1)


def _with_bias(layer: Layer, p: Params, y: Array) -> Array:
    if p.flag("bias_term", True):
        y = y + layer.blobs[1].reshape(1, -1, *[1] * (y.ndim - 2))
    return y


@formula("Convolution", "ConvolutionDepthwise")
def convolution(layer: Layer, xs: list[Array]) -> Array:
    """y[o, i] = bias[o] + sum over c, k of w[o, c, k] * x[c, i * stride + k * dilation - pad]."""
    p, x = layer.params("convolution_param"), xs[0].astype("float64")
    rank, groups = x.ndim - 2, _groups(layer, p, x)
    stride, pad, dilation = (_each(p, f, rank, d) for f, d in (("stride", 1), ("pad", 0), ("dilation", 1)))
    kernel = _each(p, "kernel_size", rank, 0)
    outputs = p.whole("num_output", 0)
    w = layer.blobs[0].astype("float64").reshape(groups, outputs // groups, x.shape[1] // groups, *kernel)
    x = np.pad(x, [(0, 0), (0, 0)] + [(a, a) for a in pad])
    sizes = [(x.shape[2 + i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in range(rank)]
    y = np.zeros((x.shape[0], groups, outputs // groups, math.prod(sizes)))
    for k in itertools.product(*map(range, kernel)):
        cut = tuple(
            slice(k[i] * dilation[i], k[i] * dilation[i] + (sizes[i] - 1) * stride[i] + 1, stride[i])
            for i in range(rank)
        )
        seen = x[(slice(None), slice(None), *cut)].reshape(x.shape[0], groups, w.shape[2], -1)
        y += np.matmul(w.reshape(*w.shape[:3], -1)[..., np.ravel_multi_index(k, kernel)], seen)
    y = y.reshape(x.shape[0], outputs, *sizes)
    return _with_bias(layer, p, y)


@formula("Deconvolution")
def deconvolution(layer: Layer, xs: list[Array]) -> Array:
    """The gradient of a convolution by its input: x[c, i] adds w[c, o, k] * x at i * stride + k * dilation - pad."""
    p, x = layer.params("convolution_param"), xs[0].astype("float64")
    rank, groups, outputs = x.ndim - 2, p.whole("group", 1), p.whole("num_output", 0)
    stride, pad, dilation = (_each(p, f, rank, d) for f, d in (("stride", 1), ("pad", 0), ("dilation", 1)))
    kernel = _each(p, "kernel_size", rank, 0)
    w = layer.blobs[0].astype("float64").reshape(groups, x.shape[1] // groups, outputs // groups, *kernel)
    full = [stride[i] * (x.shape[2 + i] - 1) + dilation[i] * (kernel[i] - 1) + 1 for i in range(rank)]
    y = np.zeros((x.shape[0], groups, outputs // groups, *full))
    parts = x.reshape(x.shape[0], groups, w.shape[1], -1)
    for k in itertools.product(*map(range, kernel)):
        cut = tuple(
            slice(k[i] * dilation[i], k[i] * dilation[i] + (x.shape[2 + i] - 1) * stride[i] + 1, stride[i])
            for i in range(rank)
        )
        taps = w.reshape(*w.shape[:3], -1)[..., np.ravel_multi_index(k, kernel)]
        added = np.matmul(taps.transpose(0, 2, 1), parts)
        y[(slice(None), slice(None), slice(None), *cut)] += added.reshape(*y.shape[:3], *x.shape[2:])
    kept = tuple(slice(pad[i], full[i] - pad[i]) for i in range(rank))
    return _with_bias(layer, p, y.reshape(x.shape[0], outputs, *full)[(slice(None), slice(None), *kept)])


def _pool(x: Array, method: str, kernel: list[int], stride: list[int], pad: list[int], ceil: bool) -> Array:
    """PoolingLayer::Forward_cpu, window by window."""
    sizes = []
    for size, k, s, a in zip(x.shape[2:], kernel, stride, pad, strict=True):
        count = int((math.ceil if ceil else math.floor)((size + 2 * a - k) / s)) + 1
        if (pad[0] or pad[1]) and (count - 1) * s >= size + a:
            count -= 1
        sizes.append(count)
    y = np.zeros((*x.shape[:2], *sizes))
    for row, column in itertools.product(*map(range, sizes)):
        start = [row * stride[0] - pad[0], column * stride[1] - pad[1]]
        end = [min(start[i] + kernel[i], x.shape[2 + i] + pad[i]) for i in range(2)]
        area = (end[0] - start[0]) * (end[1] - start[1])
        window = x[:, :, max(start[0], 0) : end[0], max(start[1], 0) : end[1]]
        y[:, :, row, column] = window.max((2, 3)) if method == "MAX" else window.sum((2, 3)) / area
    return y


@formula("Pooling")
def pooling(layer: Layer, xs: list[Array]) -> Array:
    p, x = layer.params("pooling_param"), xs[0].astype("float64")
    method = p.choice("pool", "MAX", {"0": "MAX", "1": "AVE", "MAX": "MAX", "AVE": "AVE"})
    if p.flag("global_pooling", False):
        return _pool(x, method, list(x.shape[2:]), [1, 1], [0, 0], True)
    rounding = p.choice("round_mode", "CEIL", {"0": "CEIL", "1": "FLOOR", "CEIL": "CEIL", "FLOOR": "FLOOR"})
    kernel, stride, pad = (_each(p, f, 2, d) for f, d in (("kernel_size", 0), ("stride", 1), ("pad", 0)))
    return _pool(x, method, kernel, stride, pad, p.flag("ceil_mode", rounding == "CEIL"))


@formula("SPP")
def spatial_pyramid(layer: Layer, xs: list[Array]) -> Array:
    p, x = layer.params("spp_param"), xs[0].astype("float64")
    method = p.choice("pool", "MAX", {"0": "MAX", "1": "AVE", "MAX": "MAX", "AVE": "AVE"})
    levels = []
    for level in range(p.whole("pyramid_height", 0)):
        bins = 2**level
        kernel = [math.ceil(size / bins) for size in x.shape[2:]]
        pad = [(k * bins - size + 1) // 2 for k, size in zip(kernel, x.shape[2:], strict=True)]
        levels.append(_pool(x, method, kernel, kernel, pad, True))
    return levels[0] if len(levels) == 1 else np.concatenate([y.reshape(len(x), -1) for y in levels], 1)


@formula("LRN")
def local_response(layer: Layer, xs: list[Array]) -> Array:
    p, x = layer.params("lrn_param"), xs[0].astype("float64")
    size, alpha, beta = p.whole("local_size", 5), p.number("alpha", 1.0), p.number("beta", 0.75)
    half, squares, total = size // 2, x**2, np.zeros_like(x)
    if (
        p.choice("norm_region", "0", {w: w for w in ("0", "1", "ACROSS_CHANNELS", "WITHIN_CHANNEL")})
        in "1WITHIN_CHANNEL"
    ):
        _, _, height, width = x.shape
        for i, j in itertools.product(range(height), range(width)):
            near = squares[:, :, max(i - half, 0) : i + half + 1, max(j - half, 0) : j + half + 1]
            total[:, :, i, j] = near.sum((2, 3)) / size**2
        return x * (1 + alpha * total) ** -beta
    for c in range(x.shape[1]):
        total[:, c] = squares[:, max(c - half, 0) : c + half + 1].sum(1)
    return x * (p.number("k", 1.0) + alpha / size * total) ** -beta


@formula("Interp")
def interp(layer: Layer, xs: list[Array]) -> Array:
    p, x = layer.params("interp_param"), xs[0].astype("float64")
    begin, end = p.whole("pad_beg", 0, -(2**31)), p.whole("pad_end", 0, -(2**31))
    x = x[:, :, -begin : x.shape[2] + end, -begin : x.shape[3] + end]
    out = [(size - 1) // p.whole("shrink_factor", 1) + 1 for size in x.shape[2:]]
    out = [size + (size - 1) * (p.whole("zoom_factor", 1) - 1) for size in out]
    if p.has("height"):
        out = [p.whole("height", 0), p.whole("width", 0)]
    if len(xs) == 2:
        out = list(xs[1].shape[2:])
    for axis in (2, 3):
        have, want = x.shape[axis], out[axis - 2]
        ratio = (have - 1) / (want - 1) if want > 1 else 0.0
        low = (np.arange(want) * ratio).astype(int)
        part = (np.arange(want) * ratio - low).reshape([-1 if i == axis else 1 for i in range(4)])
        high = np.minimum(low + 1, have - 1)
        x = np.take(x, low, axis) * (1 - part) + np.take(x, high, axis) * part
    return x


@formula("Upsample")
def upsample(layer: Layer, xs: list[Array]) -> Array:
    p = layer.params("upsample_param")
    scale = p.whole("scale", 1)
    return xs[0].repeat(p.whole("scale_h", scale), 2).repeat(p.whole("scale_w", scale), 3)
