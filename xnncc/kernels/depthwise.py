"""Packed float32 depthwise convolution: x [N, CB, H*W, v], w [CB, KH, KW, v], b [CB, v] -> [N, CB, OH*OW, v]."""

from __future__ import annotations

import numpy as np
from tvm import te
from tvm.tirx import Expr

from . import rule
from .conv2d import reference_conv2d
from .math import f32
from .spatial import Window, padded_input


def f32_depthwise(x: te.Tensor, w: te.Tensor, b: te.Tensor, win: Window) -> te.Tensor:
    """Return each channel of packed ``x`` convolved with its own kernel."""
    n, cb, _, v = (int(d) for d in x.shape)
    (kh, kw), (sh, sw), (dh, dw), (oh, ow) = win.kernel, win.stride, win.dilation, win.out
    ph, pw = win.padded
    padded = padded_input(x, win, f32(0.0)) if win.needs_pad else None
    width = win.image[1]
    ky, kx = te.reduce_axis((0, kh), "kh"), te.reduce_axis((0, kw), "kw")

    def read(t: Expr, c: Expr, p: Expr, i: Expr) -> Expr:
        y, z = p // ow * sh + ky * dh, p % ow * sw + kx * dw
        return padded[t, c, y, z, i] if padded is not None else x[t, c, y * width + z, i]

    acc = te.compute(
        (n, cb, oh * ow, v),
        lambda t, c, p, i: te.sum(read(t, c, p, i) * w[c, ky, kx, i], axis=[ky, kx]),
        "acc",
        attrs=rule("depthwise", oh=oh, ow=ow, taps=kh * kw, kh=kh, sh=sh, ph=ph, plane_bytes=4 * v * ph * pw),
    )
    return te.compute((n, cb, oh * ow, v), lambda t, c, p, i: acc[t, c, p, i] + b[c, i], "bias")


def pack_depthwise_weights(w: np.ndarray, v: int, blocks: int) -> np.ndarray:
    """Return ``w`` [C, 1, KH, KW] as [blocks, KH, KW, v]."""
    c, _, kh, kw = w.shape
    full = np.zeros((blocks * v, kh, kw), w.dtype)
    full[:c] = w[:, 0]
    return np.ascontiguousarray(full.reshape(blocks, v, kh, kw).transpose(0, 2, 3, 1))


def reference_depthwise(x: np.ndarray, w: np.ndarray, b: np.ndarray, win: Window) -> np.ndarray:
    """Return the depthwise convolution of plain ``x`` [N, C, H, W] with ``w`` [C, 1, KH, KW] in float64."""
    return reference_conv2d(x, w, b, win, groups=x.shape[1])
