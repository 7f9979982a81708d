"""Convolutions and full connections on real numbers. Weights come as [O, KH, KW, C] and become OIHW constants."""

from __future__ import annotations

import numpy as np
from tvm import relax
from tvm.relax import Expr

from ..refused import Refused
from .flow import Flow
from .op import Op
from .registry import converter
from .schema import PADDINGS
from .windows import Axis, axis_of, transposed_padding

R = relax.op
TO_OIHW = (0, 3, 1, 2)  # from [O, KH, KW, C]
TO_IOHW = (3, 0, 1, 2)


def windows(n: Op, kernel: tuple[int, ...]) -> tuple[Axis, Axis]:
    """Return the windows along height and width of operand 0."""
    _, h, w, _ = n.shape()
    options = n.op.options
    try:
        return (
            axis_of(h, kernel[0], n.option("stride_h"), options.get("dilation_h", 1), n.padding),
            axis_of(w, kernel[1], n.option("stride_w"), options.get("dilation_w", 1), n.padding),
        )
    except ValueError as error:
        raise Refused(str(error)) from None


def check_image(n: Op, index: int, rank_of_weights: int = 4) -> None:
    """Refuse operands that are no image and kernel."""
    if n.rank(index) != 4 or n.rank(1) != rank_of_weights:
        raise Refused(f"input {list(n.shape(index))} and weights {list(n.shape(1))} are no image and kernel")


@converter("CONV_2D")
def conv(n: Op) -> Flow:
    check_image(n, 0)
    w = n.weights(1)
    groups = conv_groups(n)
    rows, columns = windows(n, w.shape[1:3])
    y = R.nn.conv2d(
        n.planar(), n.build.derived(w, "OIHW", lambda a: a.transpose(TO_OIHW)), (rows.stride, columns.stride),
        pads(rows, columns), (rows.dilation, columns.dilation), groups,
    )  # fmt: skip
    return n.activated(with_bias(n, y, 2), is_planar=True)


def conv_groups(n: Op) -> int:
    """Return the groups of a CONV_2D, which only the channels tell."""
    channels, each = n.shape()[3], n.shape(1)[3]
    if not each or channels % each or n.shape(1)[0] % (channels // each):
        raise Refused(f"weights {list(n.shape(1))} do not fit input {list(n.shape())}")
    return channels // each


@converter("DEPTHWISE_CONV_2D")
def depthwise_conv(n: Op) -> Flow:
    check_image(n, 0)
    w = n.weights(1)
    check_depthwise(n)
    rows, columns = windows(n, w.shape[1:3])
    y = R.nn.conv2d(
        n.planar(), n.build.derived(w, "depthwise", depthwise_weights), (rows.stride, columns.stride),
        pads(rows, columns), (rows.dilation, columns.dilation), n.shape()[3],
    )  # fmt: skip
    return n.activated(with_bias(n, y, 2), is_planar=True)


def check_depthwise(n: Op) -> None:
    """Refuse weights [1, KH, KW, C * M] that do not fit the image."""
    if n.shape(1)[0] != 1 or n.shape(1)[3] % max(n.shape()[3], 1):
        raise Refused(f"weights {list(n.shape(1))} do not fit input {list(n.shape())}")


def depthwise_weights(w: np.ndarray) -> np.ndarray:
    """Return [1, KH, KW, C * M] as [C * M, 1, KH, KW]."""
    return w.transpose(3, 0, 1, 2)


def pads(rows: Axis, columns: Axis) -> tuple[int, int, int, int]:
    """Return top, left, bottom, right."""
    return rows.before, columns.before, rows.after, columns.after


def with_bias(n: Op, y: Expr, index: int) -> Expr:
    """Return planar ``y`` plus the bias [O] in operand ``index``."""
    if not n.has(index):
        return y
    bias = n.weights(index, "the bias")
    return R.add(n.emit(y), n.build.derived(bias, "planar bias", lambda b: b.reshape(1, -1, 1, 1))) if bias.any() else y


@converter("TRANSPOSE_CONV")
def transpose_conv(n: Op) -> Flow:
    """Operands: output shape, weights [O, KH, KW, C], input, bias."""
    check_image(n, 2)
    size = n.ints(0, "the output shape")
    strides = (n.option("stride_h"), n.option("stride_w"))
    y = transposed(n, n.planar(2), n.weights(1), n.shape(2), size, strides, n.padding)
    return n.activated(with_bias(n, y, 3), is_planar=True)


@converter("Convolution2DTransposeBias")
def transpose_conv_bias(n: Op) -> Flow:
    """MediaPipe's custom operator; its options are TfLiteTransposeConvParams: padding, stride width, stride height."""
    check_image(n, 0)
    if len(n.op.custom) < 12:
        raise Refused(f"its options have {len(n.op.custom)} bytes, expected 12")
    padding, width, height = (int(v) for v in np.frombuffer(n.op.custom[:12], "<i4"))
    if padding not in (1, 2):
        raise Refused(f"padding {padding} is none of 1 (SAME), 2 (VALID)")
    y = transposed(n, n.planar(), n.weights(1), n.shape(), list(n.out().shape), (height, width), PADDINGS[padding - 1])
    return Flow(n.emit(with_bias(n, y, 2)), is_planar=True)


def transposed(
    n: Op, x: Expr, w: np.ndarray, shape: tuple[int, ...], size: list[int], strides: tuple[int, int], padding: str
) -> Expr:
    """Return the transposed convolution of planar ``x`` whose logical result is ``size`` [N, OH, OW, O]."""
    if len(size) != 4 or w.shape[3] != shape[3] or min(strides) < 1:
        raise Refused(f"weights {list(w.shape)} and strides {strides} do not fit {list(shape)} -> {size}")
    kernel, before, after, extra = w.shape[1:3], [], [], []
    for i in (0, 1):
        start, end = transposed_padding(shape[1 + i], kernel[i], strides[i], size[1 + i], padding)
        before.append(start)
        after.append(max(end, 0))
        extra.append(max(-end, 0))
    if any(e >= s for e, s in zip(extra, strides, strict=True)):
        raise Refused(f"output {size} is larger than {list(shape)} with strides {strides} can give")
    weight = n.build.derived(w, "IOHW", lambda a: a.transpose(TO_IOHW))
    return R.nn.conv2d_transpose(x, weight, strides, [*before, *after], extra)


@converter("FULLY_CONNECTED")
def fully_connected(n: Op) -> Flow:
    """x [..., I] times weights [O, I]."""
    check_connected(n)
    if n.is_const(1):
        weight = n.build.derived(n.weights(1), "transposed", lambda w: w.T)
    else:
        weight = R.permute_dims(n.expr(1))
    y = R.matmul(n.emit(n.reshaped(n.expr(), [rows_of(n), n.shape(1)[1]])), weight)
    if n.has(2):
        y = R.add(n.emit(y), n.build.constant(n.weights(2, "the bias")))
    y = n.emit(y)
    return n.activated(n.reshaped(y, connected_shape(n)))


def check_connected(n: Op) -> None:
    """Refuse weights that do not fit, or are shuffled for an old accelerator."""
    if n.option("weights_format"):
        raise Refused("shuffled weights are not supported", "Convert the model with the default weights format.")
    if n.rank(1) != 2 or not n.shape(1)[1] or int(np.prod(n.shape())) % n.shape(1)[1]:
        raise Refused(f"weights {list(n.shape(1))} do not fit input {list(n.shape())}")


def rows_of(n: Op) -> int:
    """Return how many vectors a FULLY_CONNECTED multiplies."""
    return int(np.prod(n.shape())) // n.shape(1)[1]


def connected_shape(n: Op) -> list[int]:
    """Return the result's shape of a FULLY_CONNECTED."""
    if n.option("keep_num_dims"):
        return [*n.shape()[:-1], n.shape(1)[0]]
    return [rows_of(n), n.shape(1)[0]]
