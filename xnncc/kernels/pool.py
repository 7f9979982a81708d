"""Packed float32 pooling: x [N, CB, H*W, v] -> [N, CB, OH*OW, v]; the global mean -> [N, CB, 1, v]."""

from __future__ import annotations

import numpy as np
from tvm import te, tirx
from tvm.tirx import Expr

from . import rule
from .math import f32
from .spatial import Window, padded_input


def f32_pool2d(x: te.Tensor, win: Window, is_max: bool, count_pad: bool = False) -> te.Tensor:
    """Return the maximum or mean of each window.

    A mean divides by the pixels of the window inside the image; with ``count_pad`` by those inside the image and its
    stated padding (so the overhang of ceil mode never counts).
    """
    n, cb, _, v = (int(d) for d in x.shape)
    (h, w), (kh, kw), (sh, sw), (dh, dw), (oh, ow) = win.image, win.kernel, win.stride, win.dilation, win.out
    top, left, bottom, right = win.padding
    padded = padded_input(x, win, tirx.min_value("float32") if is_max else f32(0.0)) if win.needs_pad else None
    ky, kx = te.reduce_axis((0, kh), "kh"), te.reduce_axis((0, kw), "kw")

    def read(t: Expr, c: Expr, p: Expr, i: Expr) -> Expr:
        y, z = p // ow * sh + ky * dh, p % ow * sw + kx * dw
        return padded[t, c, y, z, i] if padded is not None else x[t, c, y * w + z, i]

    reduce = te.max if is_max else te.sum
    pooled = te.compute(
        (n, cb, oh * ow, v),
        lambda t, c, p, i: reduce(read(t, c, p, i), axis=[ky, kx]),
        "pool",
        attrs=rule("pool", oh=oh, ow=ow),
    )
    if is_max:
        return pooled

    def count(position: Expr, size: int, k: int, s: int, before: int, after: int) -> Expr:
        """Pixels of one window along one axis that count."""
        low, high = (-before, size + after) if count_pad else (0, size)
        start = position * s - before
        return tirx.min(start + k, high) - tirx.max(start, low)

    def mean(t: Expr, c: Expr, p: Expr, i: Expr) -> Expr:
        if not win.needs_pad:
            return pooled[t, c, p, i] * f32(1.0 / (kh * kw))
        pixels = count(p // ow, h, kh, sh, top, bottom) * count(p % ow, w, kw, sw, left, right)
        return pooled[t, c, p, i] / tirx.Cast("float32", pixels)

    return te.compute((n, cb, oh * ow, v), mean, "mean")


def f32_global_mean(x: te.Tensor) -> te.Tensor:
    """Return the mean over all pixels, [N, CB, 1, v]."""
    n, cb, p, v = (int(d) for d in x.shape)
    r = te.reduce_axis((0, p), "p")
    total = te.compute((n, cb, v), lambda t, c, i: te.sum(x[t, c, r, i], axis=r), "total", attrs=rule("global_mean"))
    return te.compute((n, cb, 1, v), lambda t, c, _, i: total[t, c, i] * f32(1.0 / p), "mean")


def global_max(x: te.Tensor) -> te.Tensor:
    """Return the maximum over all pixels, [N, CB, 1, v]."""
    n, cb, p, v = (int(d) for d in x.shape)
    r = te.reduce_axis((0, p), "p")
    total = te.compute((n, cb, v), lambda t, c, i: te.max(x[t, c, r, i], axis=r), "total", attrs=rule("global_mean"))
    return te.compute((n, cb, 1, v), lambda t, c, _, i: total[t, c, i], "max")


def reference_pool2d(x: np.ndarray, win: Window, is_max: bool, count_pad: bool = False) -> np.ndarray:
    """Return the pooling of plain ``x`` [N, C, H, W], window by window in float64."""
    n, c, h, w = x.shape
    (kh, kw), (sh, sw), (dh, dw), (oh, ow) = win.kernel, win.stride, win.dilation, win.out
    top, left, bottom, right = win.padding
    y = np.zeros((n, c, oh, ow))
    for p in range(oh):
        for q in range(ow):
            rows = [p * sh - top + k * dh for k in range(kh)]
            cols = [q * sw - left + k * dw for k in range(kw)]
            inside = x[:, :, [r for r in rows if 0 <= r < h]][:, :, :, [s for s in cols if 0 <= s < w]]
            if is_max:
                y[:, :, p, q] = inside.max(axis=(2, 3))
                continue
            counted = [r for r in rows if -top <= r < h + bottom], [s for s in cols if -left <= s < w + right]
            pixels = len(counted[0]) * len(counted[1]) if count_pad else inside.shape[2] * inside.shape[3]
            y[:, :, p, q] = inside.sum(axis=(2, 3), dtype="f8") / pixels
    return y
