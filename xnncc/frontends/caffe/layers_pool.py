"""Pooling and SPP. x: [N, C, H, W].

Caffe rounds the number of windows up, drops one that would start beyond the pad, clips windows to the input, and
divides averages by what lies within input and pads, but not beyond them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from tvm import relax
from tvm.relax import Expr

from ..refused import Refused
from .node import Node
from .params import Params
from .refused import Broken
from .registry import converter
from .windows import per_dimension

R = relax.op
MAX_PYRAMID = 10
_METHODS = {"0": "MAX", "1": "AVE", "MAX": "MAX", "AVE": "AVE"}


@dataclass(frozen=True)
class Pool:
    """Where the windows lie, for height and width: ``counts`` of them."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    pad: tuple[int, int]
    counts: tuple[int, int]


@converter("Pooling")
def pooling(n: Node) -> Expr:
    n.need(1)
    p = n.params("pooling_param")
    _need_picture(n)
    method = p.choice("pool", "MAX", _METHODS)
    if n.wants(1):
        raise Refused("its second top (where the largest elements are) is not supported")
    if p.flag("global_pooling", False):
        p.ignore("kernel_size", "kernel_h", "kernel_w", "stride", "pad")
        return (R.max if method == "MAX" else R.mean)(n.expr(), [2, 3], keepdims=True)
    return pooled(n, method, _windows(n, p))


def _need_picture(n: Node) -> None:
    if n.rank() != 4:
        raise Refused(f"input {list(n.shape())} is not supported", "Supported: [N, C, H, W].")


def _windows(n: Node, p: Params) -> Pool:
    kernel = per_dimension(p, "kernel_size", 2, None, 1)
    stride = per_dimension(p, "stride", 2, 1, 1)
    pad = per_dimension(p, "pad", 2, 0, 0)
    if per_dimension(p, "dilation", 2, 1, 1) != (1, 1):
        raise Refused("dilated pooling is not supported")
    ceil = p.choice("round_mode", "CEIL", {"0": "CEIL", "1": "FLOOR", "CEIL": "CEIL", "FLOOR": "FLOOR"}) == "CEIL"
    ceil = p.flag("ceil_mode", ceil)
    if any(a >= k for a, k in zip(pad, kernel, strict=True)):
        raise Broken(f"pad {list(pad)} must be smaller than the kernel {list(kernel)}")
    counts = [window_count(*sizes, ceil) for sizes in zip(n.shape()[2:], kernel, stride, pad, strict=True)]
    return Pool((kernel[0], kernel[1]), (stride[0], stride[1]), (pad[0], pad[1]), (counts[0], counts[1]))


def window_count(size: int, kernel: int, stride: int, pad: int, ceil: bool = True) -> int:
    """Return how many windows there are along one dimension."""
    room = size + 2 * pad - kernel
    if room < 0 and not (ceil and room > -stride):
        raise Broken(f"a window of {kernel} does not fit {size} elements with pads of {pad}")
    count = (-(-room // stride) if ceil else room // stride) + 1
    if pad and (count - 1) * stride >= size + pad:
        count -= 1
    if (count - 1) * stride - pad >= size:
        raise Refused(f"with stride {stride} the last window of {kernel} lies outside the {size} elements")
    return count


def pooled(n: Node, method: str, pool: Pool) -> Expr:
    """Return the pool; the pads at the end are what gives exactly the counted windows."""
    sizes = n.shape()[2:]
    ends = [
        max((count - 1) * stride + kernel - size - pad, 0)
        for count, stride, kernel, size, pad in zip(pool.counts, pool.stride, pool.kernel, sizes, pool.pad, strict=True)
    ]
    padding = (*pool.pad, *ends)
    x = n.expr()
    if method == "MAX":
        return _cut(n, R.nn.max_pool2d(x, pool.kernel, pool.stride, padding), pool)
    y = R.nn.avg_pool2d(x, pool.kernel, pool.stride, padding, count_include_pad=True)
    y = _cut(n, y, pool)
    factor = np.prod(pool.kernel) / _divisors(pool, sizes)
    return y if np.all(factor == 1) else R.multiply(y, n.build.constant(factor.astype("float32")))


def _cut(n: Node, y: Expr, pool: Pool) -> Expr:
    """Return the first ``counts`` windows: a dropped last one may still fit pad and input."""
    from ..network import shape_of

    y = n.emit(y)
    if shape_of(y)[2:] == pool.counts:
        return y
    return R.strided_slice(y, axes=[2, 3], begin=[0, 0], end=list(pool.counts))


def _divisors(pool: Pool, sizes: tuple[int, ...]) -> np.ndarray:
    """Return [1, 1, outs...]: what each sum is divided by."""
    lengths = []
    for count, stride, kernel, size, pad in zip(pool.counts, pool.stride, pool.kernel, sizes, pool.pad, strict=True):
        start = np.arange(count) * stride - pad
        lengths.append(np.minimum(start + kernel, size + pad) - start)
    return (lengths[0][:, None] * lengths[1][None, :])[None, None].astype("float64")


@converter("SPP")
def spatial_pyramid_pooling(n: Node) -> Expr:
    """Pools into 1, 4, 16, ... bins, flattened and put one after the other."""
    n.need(1)
    p = n.params("spp_param")
    _need_picture(n)
    method = p.choice("pool", "MAX", _METHODS)
    height = p.whole("pyramid_height", 0, 0)
    if not 1 <= height <= MAX_PYRAMID:
        raise Broken(f"{p.name} pyramid_height is {height}, expected 1 to {MAX_PYRAMID}")
    levels = [pooled(n, method, _bins(n, 2**level)) for level in range(height)]
    if height == 1:
        return levels[0]
    batch, channels = n.shape()[:2]
    flat = [n.emit(n.reshaped(y, (batch, channels * 4**level))) for level, y in enumerate(levels)]
    return R.concat(flat, 1)


def _bins(n: Node, bins: int) -> Pool:
    kernel, pad, counts = [], [], []
    for size in n.shape()[2:]:
        kernel.append(-(-size // bins))
        pad.append((kernel[-1] * bins - size + 1) // 2)
        if pad[-1] >= kernel[-1]:
            raise Broken(f"{bins} bins do not fit {size} elements")
        counts.append(window_count(size, kernel[-1], kernel[-1], pad[-1]))
    if counts != [bins, bins]:
        raise Broken(f"{bins} bins do not fit input {list(n.shape())}")
    return Pool((kernel[0], kernel[1]), (kernel[0], kernel[1]), (pad[0], pad[1]), (bins, bins))
