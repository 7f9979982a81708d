"""Pools over windows and over everything. x: [N, C, spatial...].

TVM's ``ceil_mode`` places windows by another rule than ONNX, so windows are counted here and written as pads.
"""

from __future__ import annotations

import numpy as np
from tvm import relax
from tvm.relax import Expr

from ..network import shape_of
from .node import Node, Refused
from .registry import converter
from .windows import Windows, pooled_sizes, windows_of

R = relax.op


@converter("MaxPool")
def max_pool(n: Node) -> list[Expr | None]:
    n.ignore("storage_order")
    if n.wants(1):
        raise Refused("its second output (indices) is not supported")
    w, end = _placed(n)
    return [_pooled(n, R.nn.max_pool2d, R.nn.max_pool3d, n.expr(0), w, w.begin + end), None]


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
        raise Refused(f"dilations {list(w.dilations)} are not supported", "Supported: 1.")
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
    """The p-th root of the sum of |x|^p, from an average pool over all positions, pads being zero."""
    p = int(n.attr("p", 2))
    if p not in (1, 2):
        raise Refused(f"p={p} is not supported", "Supported: 1, 2.")
    w, end = _placed(n)
    if w.dilations != (1,) * len(w.dilations):
        raise Refused(f"dilations {list(w.dilations)} are not supported", "Supported: 1.")
    x = n.emit(R.multiply(n.expr(0), n.expr(0)) if p == 2 else R.abs(n.expr(0)))
    y = _pooled(n, R.nn.avg_pool2d, R.nn.avg_pool3d, x, w, w.begin + end, count_include_pad=True)
    total = R.multiply(y, n.scalar(float(np.prod(w.kernel))))
    return R.sqrt(total) if p == 2 else total
