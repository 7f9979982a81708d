"""Pools over windows and over everything. x: [N, C, spatial...].

TVM's ``ceil_mode`` places windows by another rule than ONNX, so windows are counted here and written as pads.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tvm import relax, te, tirx
from tvm.relax import Expr

from ..network import shape_of
from .node import Node, Refused
from .registry import converter
from .windows import Windows, pooled_sizes, windows_of

R = relax.op


@converter("MaxPool")
def max_pool(n: Node) -> list[Expr | None]:
    """The second output is the flat position in x of each maximum, of equal ones the first."""
    column_major = bool(n.attr("storage_order", 0))
    w, end = _placed(n)
    y = n.emit(_pooled(n, R.nn.max_pool2d, R.nn.max_pool3d, n.expr(0), w, w.begin + end))
    return [y, _positions(n, y, w, column_major) if n.wants(1) else None]


def _positions(n: Node, y: Expr, w: Windows, column_major: bool) -> Expr:
    batch, channels, *sizes = n.shape()
    steps = [int(np.prod(sizes[:i] if column_major else sizes[i + 1 :])) for i in range(len(sizes))]
    plane = int(np.prod(sizes))

    def compute(x: te.Tensor, best: te.Tensor) -> te.Tensor:
        taps = [te.reduce_axis((0, k), f"k{i}") for i, k in enumerate(w.kernel)]
        beyond = tirx.const(batch * channels * plane, "int64")

        def element(b: tirx.Var, c: tirx.Var, *at: tirx.Var) -> tirx.Expr:
            places = [
                o * s + k * d - p for o, s, k, d, p in zip(at, w.strides, taps, w.dilations, w.begin, strict=True)
            ]
            inside = tirx.all(*[tirx.all(p >= 0, p < size) for p, size in zip(places, sizes, strict=True)])
            flat = (tirx.Cast("int64", b) * channels + tirx.Cast("int64", c)) * plane
            for place, step in zip(places, steps, strict=True):
                flat = flat + tirx.Cast("int64", place) * step
            kept = [tirx.max(tirx.min(p, size - 1), 0) for p, size in zip(places, sizes, strict=True)]
            hit = tirx.all(inside, x(b, c, *kept) == best(b, c, *at))
            return te.min(tirx.Select(hit, flat, beyond), axis=taps)

        return te.compute(best.shape, element, "max_pool_positions")

    return n.build.call_te(compute, n.expr(0), y, name="max_pool_positions")


def _places(w: Windows, at: Sequence[tirx.Var], taps: Sequence[tirx.Expr]) -> list[tirx.Expr]:
    """Return the input position, per spatial dimension, that tap ``taps`` of window ``at`` reads."""
    return [o * s + k * d - p for o, s, k, d, p in zip(at, w.strides, taps, w.dilations, w.begin, strict=True)]


def _window_sums(n: Node, x: Expr, w: Windows, outs: tuple[int, ...]) -> Expr:
    """Return the sum over each window, of any number of dimensions and any dilation; pads are zeros."""
    sizes = n.shape()[2:]

    def compute(source: te.Tensor) -> te.Tensor:
        taps = [te.reduce_axis((0, k), f"k{i}") for i, k in enumerate(w.kernel)]

        def element(b: tirx.Var, c: tirx.Var, *at: tirx.Var) -> tirx.Expr:
            places = [
                o * s + k * d - p for o, s, k, d, p in zip(at, w.strides, taps, w.dilations, w.begin, strict=True)
            ]
            inside = tirx.all(*[tirx.all(p >= 0, p < size) for p, size in zip(places, sizes, strict=True)])
            kept = [tirx.max(tirx.min(p, size - 1), 0) for p, size in zip(places, sizes, strict=True)]
            return te.sum(tirx.Select(inside, source(b, c, *kept), tirx.const(0, source.dtype)), axis=taps)

        return te.compute((*n.shape()[:2], *outs), element, "window_sums")

    return n.build.call_te(compute, x, name="window_sums")


@converter("AveragePool")
def average_pool(n: Node) -> Expr:
    """Windows that reach into pads count the pads (``count_include_pad``) or not, and never what lies beyond."""
    count_pads = bool(n.attr("count_include_pad", 0))
    w, end = _placed(n)
    counts = _counts(w, n.shape()[2:], _out_sizes(n, w, end), count_pads)
    full = int(np.prod(w.kernel))
    x = n.expr(0)
    padding = w.begin + end
    if w.dilations != (1,) * len(w.dilations):
        sums = _window_sums(n, x, w, _out_sizes(n, w, end))
        return R.multiply(sums, n.build.constant((1 / counts).astype(n.dtype())))
    if not any(padding):
        return _pooled(n, R.nn.avg_pool2d, R.nn.avg_pool3d, x, w, padding)
    y = _pooled(n, R.nn.avg_pool2d, R.nn.avg_pool3d, x, w, padding, count_include_pad=True)
    if np.all(counts == full):
        return y
    return R.multiply(y, n.build.constant((full / counts).astype(n.dtype())))


def _placed(n: Node) -> tuple[Windows, tuple[int, ...]]:
    """Return the windows and the pads at the end that give exactly the standard's number of them."""
    kernel = tuple(n.attr("kernel_shape") or ())
    rank = n.rank() - 2
    if len(kernel) != rank or rank not in (1, 2, 3):
        raise Refused(f"kernel {list(kernel)} over {rank} spatial dimensions is not supported", "Supported: 1, 2, 3.")
    w = windows_of(n, kernel, n.shape()[2:])
    sizes = n.shape()[2:]
    counts = pooled_sizes(w, sizes, bool(n.attr("ceil_mode", 0)))
    last = [(c - 1) * s + r for c, s, r in zip(counts, w.strides, w.reach, strict=True)]
    return w, tuple(max(need - size - begin, 0) for need, size, begin in zip(last, sizes, w.begin, strict=True))


def _out_sizes(n: Node, w: Windows, end: tuple[int, ...]) -> tuple[int, ...]:
    sizes = zip(n.shape()[2:], w.begin, end, w.reach, w.strides, strict=True)
    return tuple((size + b + e - reach) // stride + 1 for size, b, e, reach, stride in sizes)


def _counts(w: Windows, sizes: tuple[int, ...], outs: tuple[int, ...], count_pads: bool) -> np.ndarray:
    """Return [1, 1, outs...]: how many elements each window averages."""
    table = np.ones((1, 1, *outs))
    for i, (size, out) in enumerate(zip(sizes, outs, strict=True)):
        low, high = (0, size + w.begin[i] + w.end[i]) if count_pads else (w.begin[i], size + w.begin[i])
        starts = np.arange(out) * w.strides[i]
        places = [starts + k * w.dilations[i] for k in range(w.kernel[i])]
        inside = [(low <= place) & (place < high) for place in places]
        shape = [1, 1] + [out if i == j else 1 for j in range(len(outs))]
        table = table * np.sum(inside, axis=0).reshape(shape)
    return table


def _pooled(n: Node, two: object, three: object, x: Expr, w: Windows, pads: tuple[int, ...], **options: bool) -> Expr:
    """Return the pool; over one dimension as a pool of height 1."""
    rank = len(w.kernel)
    if rank == 3:
        return three(x, w.kernel, w.strides, pads, w.dilations, **options)  # type: ignore[operator]
    if rank == 2:
        return two(x, w.kernel, w.strides, pads, w.dilations, **options)  # type: ignore[operator]
    batch, channels, length = n.shape()
    lifted = n.reshaped(x, [batch, channels, 1, length])
    y = two(lifted, (1, *w.kernel), (1, *w.strides), (0, pads[0], 0, pads[1]), (1, *w.dilations), **options)  # type: ignore[operator]
    y = n.emit(y)
    return n.reshaped(y, [batch, channels, shape_of(y)[3]])


def _spatial(n: Node) -> list[int]:
    if n.rank() < 3:
        raise Refused(f"input {list(n.shape())} has no spatial dimensions")
    return list(range(2, n.rank()))


@converter("GlobalAveragePool")
def global_average_pool(n: Node) -> Expr:
    return R.mean(n.expr(0), _spatial(n), keepdims=True)


@converter("GlobalMaxPool")
def global_max_pool(n: Node) -> Expr:
    return R.max(n.expr(0), _spatial(n), keepdims=True)


@converter("LpPool")
def lp_pool(n: Node) -> Expr:
    """The p-th root of the sum of |x|^p over each window, pads being zero."""
    p = int(n.attr("p", 2))
    w, end = _placed(n)
    x = n.emit(_power(n, R.abs(n.expr(0)), p))
    return _root(n, _window_sums(n, x, w, _out_sizes(n, w, end)), p)


@converter("GlobalLpPool")
def global_lp_pool(n: Node) -> Expr:
    p = int(n.attr("p", 2))
    return _root(n, R.sum(_power(n, R.abs(n.expr(0)), p), _spatial(n), keepdims=True), p)


def _power(n: Node, x: Expr, p: int) -> Expr:
    if p < 1:
        raise Refused(f"p={p} is not at least 1")
    x = n.emit(x)
    y = x
    for _ in range(p - 1):
        y = R.multiply(y, x)
    return y


def _root(n: Node, x: Expr, p: int) -> Expr:
    if p == 1:
        return x
    return R.sqrt(x) if p == 2 else R.power(x, n.scalar(1 / p))
