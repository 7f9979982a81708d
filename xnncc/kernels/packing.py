"""Between plain [N, C, H, W] and packed [N, C/v, H*W, v], and rearrangements within the packed form."""

from __future__ import annotations

import numpy as np
from tvm import te, tirx
from tvm.tirx import Expr

from .math import f32


def pack(x: te.Tensor, v: int) -> te.Tensor:
    """Return plain ``x`` packed, zeros in the lanes beyond C."""
    n, c, h, w = (int(d) for d in x.shape)
    blocks = -(-c // v)

    def lane(t: Expr, o: Expr, p: Expr, i: Expr) -> Expr:
        value = x[t, o * v + i, p // w, p % w]
        return value if c % v == 0 else tirx.if_then_else(o * v + i < c, value, tirx.const(0, x.dtype))

    return te.compute((n, blocks, h * w, v), lane, "pack")


def unpack(x: te.Tensor, c: int, h: int, w: int) -> te.Tensor:
    """Return packed ``x`` as plain [N, c, h, w]."""
    n, v = int(x.shape[0]), int(x.shape[3])
    return te.compute((n, c, h, w), lambda t, i, y, z: x[t, i // v, y * w + z, i % v], "unpack")


def pad_image(
    x: te.Tensor, image: tuple[int, int], pads: tuple[int, int, int, int], mode: str, fill: float
) -> te.Tensor:
    """Return packed ``x`` with (top, left, bottom, right) more pixels; ``mode`` is constant, reflect or edge."""
    n, cb, _, v = (int(d) for d in x.shape)
    (h, w), (top, left, bottom, right) = image, pads
    oh, ow = h + top + bottom, w + left + right

    def pixel(t: Expr, c: Expr, p: Expr, i: Expr) -> Expr:
        y, z = p // ow - top, p % ow - left
        if mode == "constant":
            inside = tirx.all(y >= 0, y < h, z >= 0, z < w)
            return tirx.if_then_else(inside, x[t, c, y * w + z, i], f32(fill))
        return x[t, c, _inside(y, h, mode) * w + _inside(z, w, mode), i]

    return te.compute((n, cb, oh * ow, v), pixel, "pad_image")


def _inside(i: Expr, size: int, mode: str) -> Expr:
    """The index inside [0, size) that index ``i`` outside stands for."""
    if mode == "reflect":
        i = tirx.if_then_else(i < 0, -i, i)
        return tirx.if_then_else(i >= size, 2 * size - 2 - i, i)
    return tirx.max(tirx.min(i, size - 1), 0)


def upsample_nearest(x: te.Tensor, image: tuple[int, int], factor: tuple[int, int]) -> te.Tensor:
    """Return packed ``x`` with every pixel repeated ``factor`` times in both directions."""
    n, cb, _, v = (int(d) for d in x.shape)
    (h, w), (fy, fx) = image, factor
    ow = w * fx
    return te.compute(
        (n, cb, h * fy * ow, v), lambda t, c, p, i: x[t, c, p // ow // fy * w + p % ow // fx, i], "upsample"
    )


def pixel_shuffle(x: te.Tensor, image: tuple[int, int], factor: tuple[int, int], blocks: int) -> te.Tensor:
    """Return [N, blocks, (H*fy)*(W*fx), v] from [N, fy*fx*blocks, H*W, v]: a phase is a run of ``blocks`` blocks."""
    n, v = int(x.shape[0]), int(x.shape[3])
    (h, w), (fy, fx) = image, factor
    ow = w * fx

    def pixel(t: Expr, c: Expr, p: Expr, i: Expr) -> Expr:
        y, z = p // ow, p % ow
        return x[t, (y % fy * fx + z % fx) * blocks + c, y // fy * w + z // fx, i]

    return te.compute((n, blocks, h * fy * ow, v), pixel, "pixel_shuffle")


def concat_channels(parts: list[te.Tensor], channels: list[int]) -> te.Tensor:
    """Return packed tensors joined along their channels when these are not whole blocks."""
    n, _, p, v = (int(d) for d in parts[0].shape)
    total = sum(channels)

    def lane(t: Expr, o: Expr, q: Expr, i: Expr) -> Expr:
        channel = o * v + i
        value: Expr = f32(0.0)
        end = total
        for part, size in reversed(list(zip(parts, channels, strict=True))):
            start = end - size
            inner = channel - start
            value = tirx.if_then_else(
                tirx.all(channel >= start, channel < end),
                part[t, tirx.floordiv(inner, v), q, tirx.floormod(inner, v)],
                value,
            )
            end = start
        return value

    return te.compute((n, -(-total // v), p, v), lane, "concat")


def crop_columns(x: te.Tensor, n: int) -> te.Tensor:
    """Return the first ``n`` columns of x [M, K]."""
    return te.compute((x.shape[0], n), lambda i, j: x[i, j], "crop")


def slice_blocks(x: te.Tensor, start: int, count: int) -> te.Tensor:
    """Return ``count`` channel blocks of packed ``x`` from block ``start`` on."""
    n, _, p, v = (int(d) for d in x.shape)
    return te.compute((n, count, p, v), lambda t, c, q, i: x[t, start + c, q, i], "slice_blocks")


def copy(x: te.Tensor) -> te.Tensor:
    """Return ``x`` once more, in memory of its own."""
    return te.compute(x.shape, lambda *i: x(*i), "copy")


def reference_pack(x: np.ndarray, v: int) -> np.ndarray:
    """Return plain ``x`` [N, C, H, W] packed [N, C/v, H*W, v] by numpy, zeros in the lanes beyond C."""
    n, c, h, w = x.shape
    full = np.zeros((n, -(-c // v) * v, h, w), x.dtype)
    full[:, :c] = x
    return np.ascontiguousarray(full.reshape(n, -1, v, h * w).transpose(0, 1, 3, 2))


def reference_unpack(x: np.ndarray, c: int, h: int, w: int) -> np.ndarray:
    """Return packed ``x`` as plain [N, c, h, w] by numpy."""
    n, blocks, _, v = x.shape
    return np.ascontiguousarray(x.transpose(0, 1, 3, 2).reshape(n, blocks * v, h, w)[:, :c])


def dequantise(q: te.Tensor, scale: te.Tensor) -> te.Tensor:
    """Return float32 weights of stored ``q`` [OB, ..., v] and ``scale`` [OB, v]."""
    element = lambda *i: tirx.Cast("float32", q(*i)) * scale[i[0], i[-1]]  # noqa: E731
    return te.compute(q.shape, element, "dequantise")
