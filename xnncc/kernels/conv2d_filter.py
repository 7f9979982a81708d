"""Long windows into few output channels: the lanes are taps of the window, and sums are float64.

    x [N, C, H, W], w [O, C, KH, KB, v], b [O]  ->  y [N, O, OH, OW]        all plain, float32

KB: blocks of v taps, zeros behind the last one. A filter of one output channel would fill one lane of v in the packed
kernels (``conv2d.py``), so that float64 costs nothing here. It is needed, too: a cascade of audio filters feeds a
logarithm, whose quiet values are differences of loud ones. One float32 accumulator over 256 taps is off by 8e-7 of the
largest output, this by its last rounding, 3e-8 (Higham 1993, "The accuracy of floating point summation", section 3).
"""

from __future__ import annotations

import numpy as np
from tvm import te, tirx
from tvm.tirx import Expr

from . import rule
from .math import f32
from .spatial import Window

TILE = 8  # the number of pixels computed is a multiple of it in every row, so that register tiles divide it


def f32_conv2d_filter(x: te.Tensor, w: te.Tensor, b: te.Tensor, win: Window) -> te.Tensor:
    """Return the convolution of plain ``x``, not dilated along a row and not spread."""
    n, c, h, width = (int(d) for d in x.shape)
    o, _, kh, kb, v = (int(d) for d in w.shape)
    (sh, sw), (oh, ow), (top, left, _, _), dh = win.stride, win.out, win.padding, win.dilation[0]
    computed = -(-ow // TILE) * TILE
    rows, columns = win.padded[0], (computed - 1) * sw + kb * v

    def pixel(t: Expr, i: Expr, y: Expr, z: Expr) -> Expr:
        inside = tirx.all(y >= top, y < h + top, z >= left, z < width + left)
        return tirx.if_then_else(inside, x[t, i, y - top, z - left], f32(0.0))

    is_whole = not (top or left) and rows <= h and columns <= width
    padded = x if is_whole else te.compute((n, c, rows, columns), pixel, "pad", attrs=rule("pad"))
    ic, ky, kx = (te.reduce_axis((0, e), s) for e, s in ((c, "ci"), (kh, "kh"), (kb, "kb")))
    wide = lambda e: tirx.Cast("float64", e)  # noqa: E731
    lanes = te.compute(
        (n, o, oh, computed, v),
        lambda t, j, y, z, i: te.sum(
            wide(padded[t, ic, y * sh + ky * dh, z * sw + kx * v + i]) * wide(w[j, ic, ky, kx, i]), axis=[ic, ky, kx]
        ),
        "lanes",
        attrs=rule("conv2d_filter"),
    )
    lane = te.reduce_axis((0, v), "lane")
    total = te.compute((n, o, oh, computed), lambda t, j, y, z: te.sum(lanes[t, j, y, z, lane], axis=lane), "total")
    return te.compute((n, o, oh, ow), lambda t, j, y, z: tirx.Cast("float32", total[t, j, y, z] + wide(b[j])), "bias")


def pack_filter_weights(w: np.ndarray, v: int) -> np.ndarray:
    """Return OIHW ``w`` [O, C, KH, KW] as [O, C, KH, KB, v], zeros behind the last tap of a row."""
    o, c, kh, kw = w.shape
    blocks = -(-kw // v)
    full = np.zeros((o, c, kh, blocks * v), w.dtype)
    full[..., :kw] = w
    return full.reshape(o, c, kh, blocks, v)
