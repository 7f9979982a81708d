"""Winograd convolution F(m x m, 3 x 3), m = 2 or 4, stride 1, over packed activations; a = m + 2.

    x [N, CB, H*W, v] -> V [a*a, CB, T, v];  V, U [a*a, OB/g, CB, v, g*v] -> M [a*a, OB, T, v]
    M, b -> y [N, OB, OH*OW, v]

with g blocks of weights side by side as in ``conv2d.py`` and T = ceil(OH / m) * ceil(OW / m) tiles. Multiplications
fall 2.25 times (m = 2) or 4 times (m = 4), a 3x3 kernel grows from 9 to 16 or 36 values: ``transform_weights`` makes
them once, when the package is opened.

Lavin and Gray 2015, "Fast Algorithms for Convolutional Neural Networks", sections 4.1 and 4.2 (B, G and A there).
Error of a float32 layer whose outputs have rms 1, against float64: m = 2 at most 2.4e-6 (direct sums: 3 to 6e-6),
m = 4 at most 5.4e-5 (rms 2.3e-6); measured on 16 to 512 channels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import te, tirx
from tvm.tirx import Expr

from . import rule
from .conv2d import beside
from .math import f32, pick
from .spatial import Window

G = {
    2: np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]]),
    4: np.array(
        [
            [1 / 4, 0, 0],
            [-1 / 6, -1 / 6, -1 / 6],
            [-1 / 6, 1 / 6, -1 / 6],
            [1 / 24, 1 / 12, 1 / 6],
            [1 / 24, -1 / 12, 1 / 6],
            [0, 0, 1],
        ]
    ),
}

Read = Callable[[int], Expr]


def transform_weights(w: te.Tensor, m: int) -> te.Tensor:
    """Return U = G w G^T [a*a, OB/g, CB, v, g*v] of w [OB/g, CB, 3, 3, v, g*v]."""
    ob, cb, _, _, vi, vo = (int(d) for d in w.shape)
    a = m + 2
    half = te.compute(
        (ob, cb, a, 3, vi, vo),
        lambda o, c, r, s, i, j: _rows(G[m], r, lambda k: w[o, c, k, s, i, j]),
        "half",
    )
    return te.compute(
        (a * a, ob, cb, vi, vo),
        lambda e, o, c, i, j: _rows(G[m], e % a, lambda k: half[o, c, e // a, k, i, j]),
        "winograd_weights",
        attrs=rule("winograd_weights"),
    )


def f32_conv2d_winograd(x: te.Tensor, u: te.Tensor, b: te.Tensor, win: Window, m: int) -> te.Tensor:
    """Return the whole layer as one kernel, so that a schedule can run it in pieces of tile rows that stay in L2."""
    _, cb, _, v = (int(d) for d in x.shape)
    ob = int(b.shape[0])
    (h, w), (oh, ow), (top, left, _, _) = win.image, win.out, win.padding
    a, th, tw = m + 2, -(-oh // m), -(-ow // m)
    co, ci = te.reduce_axis((0, cb), "co"), te.reduce_axis((0, v), "ci")

    def pixel(c: Expr, y: Expr, z: Expr, i: Expr) -> Expr:
        inside = tirx.all(y >= top, y < h + top, z >= left, z < w + left)
        return tirx.if_then_else(inside, x[0, c, (y - top) * w + z - left, i], f32(0.0))

    padded = te.compute((cb, th * m + 2, tw * m + 2, v), pixel, "pad", attrs=rule("pad"))
    rows = te.compute(
        (cb, th, tw, a, a, v),
        lambda c, y, z, r, j, i: _input_row(m, r, lambda k: padded[c, y * m + k, z * m + j, i]),
        "input_rows",
    )
    inputs = te.compute(
        (a * a, cb, th * tw, v),
        lambda e, c, t, i: _input_row(m, e % a, lambda k: rows[c, t // tw, t % tw, e // a, k, i]),
        "inputs",
    )
    products = te.compute(
        (a * a, ob, th * tw, v),
        lambda e, o, t, i: te.sum(inputs[e, co, t, ci] * _weight(u, e, o, co, ci, i, v), axis=[co, ci]),
        "products",
        attrs=rule("winograd", oh=oh, ow=ow, th=th, tw=tw, m=m, ob=ob, ic=cb * v),
    )
    half = te.compute(
        (ob, th, tw, m, a, v),
        lambda o, y, z, r, j, i: _output_row(m, r, lambda k: products[k * a + j, o, y * tw + z, i]),
        "output_rows",
    )
    tile = te.compute(
        (ob, th, tw, m, m, v),
        lambda o, y, z, r, c, i: _output_row(m, c, lambda k: half[o, y, z, r, k, i]),
        "tile",
    )
    return te.compute(
        (1, ob, oh * ow, v),
        lambda _, o, p, i: tile[o, p // ow // m, p % ow // m, p // ow % m, p % ow % m, i] + b[o, i],
        "bias",
    )


def _weight(u: te.Tensor, e: Expr, o: Expr, co: Expr, ci: Expr, i: Expr, v: int) -> Expr:
    block, lane = beside(u, o, i, v)
    return u[e, block, co, ci, lane]


def _rows(matrix: np.ndarray, index: Expr, d: Read) -> Expr:
    """Return row ``index`` of ``matrix`` times d(0), d(1), ..."""

    def row(weights: np.ndarray) -> Expr:
        terms = [d(k) if c == 1 else d(k) * f32(float(c)) for k, c in enumerate(weights) if c != 0]
        total: Any = terms[0]
        for term in terms[1:]:
            total = total + term
        return total

    return pick(index, [row(weights) for weights in matrix])


def _input_row(m: int, index: Expr, d: Read) -> Expr:
    """Return row ``index`` of B^T times d(0), ..., d(a-1)."""
    if m == 2:
        return pick(index, [d(0) - d(2), d(1) + d(2), d(2) - d(1), d(1) - d(3)])
    p, q = d(4) - f32(4.0) * d(2), d(3) - f32(4.0) * d(1)
    r, s = d(4) - d(2), d(3) - d(1)
    first = d(4) - f32(5.0) * d(2) + f32(4.0) * d(0)
    last = d(5) - f32(5.0) * d(3) + f32(4.0) * d(1)
    return pick(index, [first, p + q, p - q, r + f32(2.0) * s, r - f32(2.0) * s, last])


def _output_row(m: int, index: Expr, d: Read) -> Expr:
    """Return row ``index`` of A^T times d(0), ..., d(a-1)."""
    if m == 2:
        return pick(index, [d(0) + d(1) + d(2), d(1) - d(2) - d(3)])
    s, t, p, q = d(1) + d(2), d(1) - d(2), d(3) + d(4), d(3) - d(4)
    return pick(index, [d(0) + s + p, t + f32(2.0) * q, s + f32(4.0) * p, t + f32(8.0) * q + d(5)])
