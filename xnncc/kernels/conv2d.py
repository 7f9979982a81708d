"""Packed float32 convolution: direct, of any kernel, stride, dilation and groups.

    x [N, CB, H*W, v] (or plain [N, C, H, W] for a first layer of few channels)
    w [OB/g, CBG, KH, KW, ci, g*v], b [OB, v]  ->  y [N, OB, OH*OW, v]

CB, OB: blocks of v channels; CBG: input blocks of one group; ci: input channels of a block (v, or C when x is plain);
g: output blocks whose weights stand side by side, so that a register tile of g blocks reads one run of memory.
"""

from __future__ import annotations

import numpy as np
from tvm import te, tirx
from tvm.tirx import Expr

from . import rule
from .math import f32, pick
from .spatial import Window, padded_input


def f32_conv2d(
    x: te.Tensor, w: te.Tensor, b: te.Tensor, win: Window, groups: int = 1, pixels: int | None = None
) -> te.Tensor:
    """Return the packed convolution of packed ``x``; ``groups`` > 1 wants whole blocks on both sides.

    A pointwise one may compute ``pixels`` >= H*W of them, so that a register tile divides their number: those beyond
    the image repeat its last pixel and are not written.
    """
    n, cb = int(x.shape[0]), int(x.shape[1])
    _, cbg, kh, kw, ci, _ = (int(d) for d in w.shape)
    ob, v = (int(d) for d in b.shape)
    (sh, sw), (dh, dw), (oh, ow), width = win.stride, win.dilation, win.out, win.image[1]
    obg = ob // groups
    computed = pixels if pixels is not None and win.is_pointwise else oh * ow
    padded = padded_input(x, win, f32(0.0)) if win.needs_pad else None
    last = oh * ow - 1
    if computed > oh * ow:
        image = x
        x = te.compute((n, cb, computed, v), lambda t, c, p, i: image[t, c, tirx.min(p, last), i], "edge")
    co, ky, kx, ic = (te.reduce_axis((0, e), s) for e, s in ((cbg, "co"), (kh, "kh"), (kw, "kw"), (ci, "ci")))

    def read(t: Expr, o: Expr, p: Expr) -> Expr:
        c = co if groups == 1 else tirx.floordiv(o, obg) * cbg + co
        if win.is_pointwise:
            return x[t, c, p, ic]
        y, z = p // ow * sh + ky * dh, p % ow * sw + kx * dw
        return padded[t, c, y, z, ic] if padded is not None else x[t, c, y * width + z, ic]

    flat = win.is_pointwise
    numbers = rule(
        "conv2d",
        oh=1 if flat else oh,
        ow=computed if flat else ow,
        ic=cbg * ci,
        ib=cbg,
        taps=kh * kw,
        ob=obg,
        x_bytes=4 * cb * ci * (win.padded[0] * win.padded[1] if not flat else oh * ow),
    )
    acc = te.compute(
        (n, ob, computed, v),
        lambda t, o, p, i: te.sum(read(t, o, p) * _weight(w, o, i, v, co, ky, kx, ic), axis=[co, ky, kx, ic]),
        "acc",
        attrs=numbers,
    )
    return te.compute((n, ob, oh * ow, v), lambda t, o, p, i: acc[t, o, p, i] + b[o, i], "bias")


def f32_conv2d_first(x: te.Tensor, w: te.Tensor, b: te.Tensor, win: Window, by_lane: bool = False) -> te.Tensor:
    """Return the packed convolution of plain ``x`` [N, C, H, W] with few channels; w [OB, 1, KH, KW, C, v].

    ``by_lane`` makes whole vectors of the C <= v channels of a pixel, of which a multiply-add takes one lane. Lanes
    that are left repeat the last channel and output blocks take turns at them: LLVM cuts vectors of unused lanes up.
    """
    n, c, h, wd = (int(d) for d in x.shape)
    _, _, kh, kw, ci, _ = (int(d) for d in w.shape)
    ob, v = (int(d) for d in b.shape)
    (sh, sw), (dh, dw), (oh, ow), (top, left, _, _) = win.stride, win.dilation, win.out, win.padding
    ph, pw = win.padded
    turns = v - c + 1 if by_lane and ob % (v - c + 1) == 0 else 1

    def pixel(t: Expr, i: Expr, y: Expr, z: Expr) -> Expr:
        value = x[t, i, y - top, z - left]
        if not win.needs_pad:
            return value
        return tirx.if_then_else(tirx.all(y >= top, y < h + top, z >= left, z < wd + left), value, f32(0.0))

    def lane_of(t: Expr, y: Expr, z: Expr, i: Expr) -> Expr:
        return pick(i, [pixel(t, tirx.const(min(k, c - 1)), y, z) for k in range(v)])

    padded = x
    if by_lane:
        padded = te.compute((n, ph, pw, v), lane_of, "pixels", attrs=rule("pad"))
    elif win.needs_pad:
        padded = te.compute((n, c, ph, pw), pixel, "pad", attrs=rule("pad"))
    ky, kx, ic = (te.reduce_axis((0, e), s) for e, s in ((kh, "kh"), (kw, "kw"), (ci, "ci")))
    one = te.reduce_axis((0, 1), "co")

    def product(t: Expr, o: Expr, p: Expr, i: Expr) -> Expr:
        y, z = p // ow * sh + ky * dh, p % ow * sw + kx * dw
        if not by_lane:
            return padded[t, ic, y, z] * _weight(w, o, i, v, one, ky, kx, ic)
        lane = ic if turns == 1 else tirx.if_then_else(ic == c - 1, c - 1 + o % turns, ic)
        return padded[t, y, z, lane] * _weight(w, o, i, v, one, ky, kx, ic)

    rows = {"turns": turns, "kw": kw, "step": sw} if by_lane else {}

    acc = te.compute(
        (n, ob, oh * ow, v),
        lambda t, o, p, i: te.sum(product(t, o, p, i), axis=[one, ky, kx, ic]),
        "acc",
        attrs=rule("conv2d", oh=oh, ow=ow, ic=ci, ib=1, taps=kh * kw, ob=ob, x_bytes=4 * ci * ph * pw, **rows),
    )
    return te.compute((n, ob, oh * ow, v), lambda t, o, p, i: acc[t, o, p, i] + b[o, i], "bias")


def beside(w: te.Tensor, o: Expr, i: Expr, v: int) -> tuple[Expr, Expr]:
    """Return where packed ``w`` [..., OB/g, ..., g*v] has lane ``i`` of output block ``o``: its block and its lane."""
    g = int(w.shape[-1]) // v
    return (o, i) if g == 1 else (o // g, o % g * v + i)


def _weight(w: te.Tensor, o: Expr, i: Expr, v: int, *at: Expr) -> Expr:
    """Return packed ``w`` [OB/g, ..., g*v] at ``at``, output block ``o``, lane ``i``."""
    block, lane = beside(w, o, i, v)
    return w[(block, *at, lane)]


def pack_conv_weights(w: np.ndarray, v: int, out_blocks: int, in_channels: int, groups: int = 1) -> np.ndarray:
    """Return OIHW ``w`` [O, C/g, KH, KW] as [OB, CBG, KH, KW, ci, v], zeros where a block is not full. Blocks side by
    side are one of as many more lanes.

    ``in_channels`` is ci: v for a packed input, C for a plain one. With groups, O/g and C/g are multiples of v.
    """
    o, c, kh, kw = w.shape
    blocks = -(-c // in_channels)
    full = np.zeros((out_blocks * v, blocks * in_channels, kh, kw), w.dtype)
    full[:o, :c] = w
    return np.ascontiguousarray(full.reshape(out_blocks, v, blocks, in_channels, kh, kw).transpose(0, 2, 4, 5, 3, 1))


def pack_vector(b: np.ndarray, v: int, blocks: int) -> np.ndarray:
    """Return ``b`` [C] as [blocks, v], zeros at the end."""
    full = np.zeros(blocks * v, b.dtype)
    full[: b.size] = b
    return full.reshape(blocks, v)


def reference_conv2d(x: np.ndarray, w: np.ndarray, b: np.ndarray, win: Window, groups: int = 1) -> np.ndarray:
    """Return the convolution of plain ``x`` [N, C, H, W] with OIHW ``w`` in float64, the right answer for tests."""
    n, c, h, wd = x.shape
    o, cg, kh, kw = w.shape
    (ph, pw), (top, left, _, _), (sy, sx) = win.padded, win.padding, win.spread
    full = np.zeros((n, c, max(ph, top + (h - 1) * sy + 1), max(pw, left + (wd - 1) * sx + 1)))
    full[:, :, top : top + (h - 1) * sy + 1 : sy, left : left + (wd - 1) * sx + 1 : sx] = x
    y = np.zeros((n, o, *win.out))
    (sh, sw), (dh, dw), (oh, ow) = win.stride, win.dilation, win.out
    for g in range(groups):
        outs, ins = slice(g * o // groups, (g + 1) * o // groups), slice(g * cg, (g + 1) * cg)
        for r in range(kh):
            for s in range(kw):
                rows = slice(r * dh, r * dh + (oh - 1) * sh + 1, sh)
                cols = slice(s * dw, s * dw + (ow - 1) * sw + 1, sw)
                y[:, outs] += np.einsum("ncyx,oc->noyx", full[:, ins, rows, cols], w[outs, :, r, s].astype("f8"))
    return y + b.reshape(1, o, 1, 1)
