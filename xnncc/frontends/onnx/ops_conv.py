"""Conv and ConvTranspose. One-dimensional ones become conv2d with H = 1, so that one set of schedules serves both.

x: [N, C, spatial...], w: [O, C/G, kernel...] (ConvTranspose: [C, O/G, kernel...]), bias: [O] as an add of [1, O, 1, 1].
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax
from tvm.relax import Expr

from ..channel_affine import channel_affine
from ..network import shape_of
from .node import Node, Refused
from .registry import converter
from .windows import Windows, windows_of

R = relax.op


@converter("Conv")
def conv(n: Node) -> Expr:
    w = windows_of(n, _kernel(n), n.shape()[2:])
    groups, rank = int(n.attr("group", 1)), n.rank() - 2
    if n.shape(1)[1] * groups != n.shape()[1]:
        raise Refused(f"weights {list(n.shape(1))} in {groups} groups do not fit input {list(n.shape())}")
    if rank not in (1, 2, 3):
        raise Refused(f"{rank} spatial dimensions are not supported", "Supported: 1, 2 and 3.")
    if any(size + b + e < r for size, b, e, r in zip(n.shape()[2:], w.begin, w.end, w.reach, strict=True)):
        raise Refused(f"a window of {list(w.reach)} does not fit input {list(n.shape())}")
    if rank == 3:
        y = R.nn.conv3d(n.expr(0), n.expr(1), w.strides, w.begin + w.end, w.dilations, groups)
        return _with_bias(n, y)
    if rank == 1:
        w = _lifted(w)
    x, weight = (_with_height(n, i) if rank == 1 else n.expr(i) for i in (0, 1))
    y = _with_bias(n, R.nn.conv2d(x, weight, w.strides, w.begin + w.end, w.dilations, groups))
    return _without_height(n, y) if rank == 1 else y


def _kernel(n: Node) -> tuple[int, ...]:
    kernel = tuple(n.attr("kernel_shape") or n.shape(1)[2:])
    if kernel != n.shape(1)[2:]:
        raise Refused(f"kernel_shape {list(kernel)} contradicts weights {list(n.shape(1))}")
    return kernel


def _lifted(w: Windows) -> Windows:
    """Return one-dimensional windows as two-dimensional ones of height 1."""
    return Windows((1, *w.kernel), (1, *w.strides), (1, *w.dilations), (0, *w.begin), (0, *w.end))


def _with_height(n: Node, index: int) -> Expr:
    """Return [A, B, L] as [A, B, 1, L]; weights are reshaped in place."""
    first, second, length = n.shape(index)
    if n.is_const(index):
        return n.build.derived(n.const(index, "weights"), "with height", lambda w: w.reshape(first, second, 1, length))
    return n.reshaped(n.expr(index), [first, second, 1, length])


def _without_height(n: Node, y: Expr) -> Expr:
    y = n.emit(y)
    batch, channels, _, length = shape_of(y)
    return n.reshaped(y, [batch, channels, length])


def _with_bias(n: Node, y: Expr, index: int = 2) -> Expr:
    if not n.has(index):
        return y
    y = n.emit(y)
    shape = (1, -1) + (1,) * (len(shape_of(y)) - 2)
    if n.is_const(index):
        bias = n.const(index, "bias")
        return R.add(y, n.build.derived(bias, shape, lambda b: b.reshape(shape))) if bias.any() else y
    return R.add(y, n.reshaped(n.expr(index), [1, n.shape(index)[0], *shape[2:]]))


@converter("ConvTranspose")
def conv_transpose(n: Node) -> Expr:
    """``output_shape`` and ``auto_pad`` become pads; dilation spreads constant weights with zeros."""
    rank, groups = n.rank() - 2, int(n.attr("group", 1))
    if rank not in (1, 2, 3):
        raise Refused(f"{rank} spatial dimensions are not supported", "Supported: 1, 2 and 3.")
    kernel = _kernel(n)
    extra = list(n.attr("output_padding") or [0] * rank)
    wanted = n.attr("output_shape")
    strides = list(n.attr("strides") or [1] * rank)
    dilations = list(n.attr("dilations") or [1] * rank)
    sizes = n.shape()[2:]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    full = [(sizes[i] - 1) * strides[i] + reach[i] + extra[i] for i in range(rank)]
    begin, end = _transposed_pads(n, full, list(wanted or []), strides, extra)
    if any(e >= max(s, d) for e, s, d in zip(extra, strides, dilations, strict=True)):
        raise Refused(f"output_padding {extra} must be smaller than strides {strides}")
    if min(begin + end) < 0:
        raise Refused(f"output_shape {wanted} is larger than the full result {full}")
    # output_padding beyond what TVM takes (it must be below the stride) is the same as less cropping at the end
    for i in range(rank):
        moved = min(extra[i], end[i])
        extra[i], end[i] = extra[i] - moved, end[i] - moved
    x, weight = n.expr(0), _spread(n, dilations)
    if rank == 1:
        x, strides, begin, end, extra = _with_height(n, 0), [1, *strides], [0, *begin], [0, *end], [0, *extra]
        weight = n.reshaped(weight, [*n.shape(1)[:2], 1, reach[0]])
    if rank == 3:
        return _with_bias(n, R.nn.conv3d_transpose(x, weight, strides, begin + end, extra, groups=groups))
    y = _with_bias(n, R.nn.conv2d_transpose(x, weight, strides, begin + end, extra, groups=groups))
    return _without_height(n, y) if rank == 1 else y


def _transposed_pads(
    n: Node, full: list[int], wanted: list[int], strides: list[int], extra: list[int]
) -> tuple[list[int], list[int]]:
    rank, auto = len(full), n.choice("auto_pad", "NOTSET", ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"))
    pads = list(n.attr("pads") or [0] * (2 * rank))
    if not wanted and auto in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [size * stride for size, stride in zip(n.shape()[2:], strides, strict=True)]
    if wanted:
        total = [f - w for f, w in zip(full, wanted[-rank:], strict=True)]
        for i in range(rank):  # what the windows do not reach is padding of the output
            extra[i], total[i] = extra[i] + max(-total[i], 0), max(total[i], 0)
        small = [t // 2 for t in total]
        large = [t - s for t, s in zip(total, small, strict=True)]
        return (small, large) if auto == "SAME_UPPER" else (large, small)
    if auto == "VALID":
        return [0] * rank, [0] * rank
    return pads[:rank], pads[rank:]


def _spread(n: Node, dilations: list[int]) -> Expr:
    """Return the weights with ``dilation - 1`` zeros between neighbours."""
    if all(d == 1 for d in dilations):
        return n.expr(1)
    weight = n.const(1, "weights of a dilated ConvTranspose")
    shape = [(k - 1) * d + 1 for k, d in zip(weight.shape[2:], dilations, strict=True)]
    spread = np.zeros((*weight.shape[:2], *shape), weight.dtype)
    at: tuple[Any, ...] = (..., *[slice(None, None, d) for d in dilations])
    spread[at] = weight
    return n.build.constant(spread)


@converter("BatchNormalization")
def batch_norm(n: Node) -> Expr | list[Expr | None]:
    """(x - mean) / sqrt(var + eps) * scale + bias = x * a + b, folded into a convolution that only this node reads."""
    n.ignore("momentum", "spatial", "is_test")
    if n.attr("training_mode", 0):
        raise Refused("training_mode is set", "Export the network for inference (model.eval()).")
    if not all(n.is_const(i) for i, _ in _BATCH_NORM_INPUTS):
        return [_run_time_batch_norm(n), None, None, None, None]
    scale, bias, mean, variance = (n.const(i, w).astype("float64") for i, w in _BATCH_NORM_INPUTS)
    a = scale / np.sqrt(variance + n.attr("epsilon", 1e-5))
    b = bias - mean * a
    y = channel_affine(n.build, n.expr(0), a, b, is_read_once=n.only_used_here(0))
    return [y, None, None, None, None]


def _run_time_batch_norm(n: Node) -> Expr:
    """Scale, bias, mean or variance are computed by the network."""
    shape = [1, -1] + [1] * (n.rank() - 2)
    scale, bias, mean, variance = (
        n.emit(n.reshaped(n.expr(i), [n.shape(i)[0] if d == -1 else d for d in shape[: n.rank()]]))
        for i, _ in _BATCH_NORM_INPUTS
    )
    spread = R.sqrt(R.add(variance, n.scalar(n.attr("epsilon", 1e-5), n.dtype(4))))
    return R.add(R.multiply(R.divide(R.subtract(n.expr(0), mean), spread), scale), bias)


_BATCH_NORM_INPUTS = ((1, "scale"), (2, "B"), (3, "mean"), (4, "var"))
