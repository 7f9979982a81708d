"""Quantised operators, kept as integers: int32 sums and fixed-point factors, as LiteRT's reference kernels have them.

x: [N, C, H, W] int8 or uint8. A convolution sums q_x * q_w over the image padded with the zero point z; the part
-z * sum(q_w) is constant and joins the bias, so that the kernel multiplies the numbers as they are stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import relax, te, tirx
from tvm.relax import Expr

from ..network import constant, shape_of
from ..refused import Refused
from .fixed_point import (
    Multipliers,
    activation_range,
    multipliers,
    quantisation_of,
    scale_of,
    zero_of,
)
from .flow import TO_NHWC, Flow
from .integer_kernels import i64, narrowed, requantise, scaled_by_one
from .op import Op
from .ops_conv import (
    TO_OIHW,
    check_connected,
    check_depthwise,
    check_image,
    connected_shape,
    conv_groups,
    depthwise_weights,
    pads,
    rows_of,
    transposed,
    windows,
)
from .ops_elementwise import reduced_axes
from .ops_window import pool_windows
from .registry import integer_converter
from .windows import Axis

R = relax.op


def _centred(n: Op, index: int, change: Callable[[np.ndarray], np.ndarray], key: str) -> Expr:
    """Return constant weights minus their zero point: as stored when that is 0, as int16 otherwise."""
    q = quantisation_of(n.tensor(index))
    shape = [1] * n.rank(index)
    if q.scale.size > 1:
        shape[q.axis] = -1
    zero = q.zero_point.reshape(shape)

    def centred(w: np.ndarray) -> np.ndarray:
        return change(w if not zero.any() else (w.astype("int64") - zero).astype("int16"))

    return n.build.derived(n.const(index, "the weights"), (key, zero.tobytes()), centred)


def _finished(n: Op, acc: Expr, weights: Expr, source: int, bias: int, axis: int) -> Expr:
    """Return sums of stored products as the output stores them; ``weights`` [O, ...] centred."""
    array = weights.value.numpy()
    shift = -zero_of(n.tensor(source)) * array.reshape(len(array), -1).astype("int64").sum(1)
    if n.has(bias):
        shift = shift + n.const(bias, "the bias").astype("int64")
    if np.abs(shift).max(initial=0) >= 2**31:
        raise Refused("its bias does not fit 32 bits")
    if shift.any():
        shape = [1] * len(shape_of(n.emit(acc)))
        shape[axis] = -1
        acc = R.add(n.emit(acc), constant(shift.astype("int32").reshape(shape)))
    scale = scale_of(n.tensor(source)) * quantisation_of(n.tensor(1)).scale.astype("float64")
    by = multipliers(scale / scale_of(n.out()))
    return requantise(n, n.emit(acc), by, axis, activation_range(n.activation, n.out()))


def _image(n: Op, rows: Axis, columns: Axis) -> Expr:
    """Return planar operand 0 padded with its zero point."""
    top, left, bottom, right = pads(rows, columns)
    if not any((top, left, bottom, right)):
        return n.planar()
    return n.emit(R.nn.pad(n.planar(), [0, 0, 0, 0, top, bottom, left, right], pad_value=float(zero_of(n.tensor()))))


@integer_converter("CONV_2D", "DEPTHWISE_CONV_2D")
def conv(n: Op) -> Flow:
    check_image(n, 0)
    if n.kind == "CONV_2D":
        groups, weights = conv_groups(n), _centred(n, 1, lambda w: w.transpose(TO_OIHW), "OIHW")
    else:
        check_depthwise(n)
        groups, weights = n.shape()[3], _centred(n, 1, depthwise_weights, "depthwise")
    rows, columns = windows(n, n.shape(1)[1:3])
    acc = R.nn.conv2d(
        _image(n, rows, columns), weights, (rows.stride, columns.stride), 0, (rows.dilation, columns.dilation), groups,
        out_dtype="int32",
    )  # fmt: skip
    return Flow(n.emit(_finished(n, acc, weights, 0, 2, 1)), is_planar=True)


@integer_converter("TRANSPOSE_CONV")
def transpose_conv(n: Op) -> Flow:
    """The zero point is taken off first: windows at the edge see fewer elements than inside."""
    check_image(n, 2)
    x = R.subtract(R.astype(n.planar(2), "int32"), constant(np.asarray(zero_of(n.tensor(2)), "int32")))
    q = quantisation_of(n.tensor(1))
    zero = q.zero_point.reshape([-1 if q.scale.size > 1 and i == q.axis else 1 for i in range(4)])
    w = (n.const(1, "the weights").astype("int64") - zero).astype("int32")
    strides, size = (n.option("stride_h"), n.option("stride_w")), n.ints(0, "the output shape")
    acc = n.emit(transposed(n, n.emit(x), w, n.shape(2), size, strides, n.padding))
    if n.has(3):
        acc = R.add(acc, constant(n.const(3, "the bias").reshape(1, -1, 1, 1)))
    scale = scale_of(n.tensor(2)) * q.scale.astype("float64") / scale_of(n.out())
    bounds = activation_range(n.activation, n.out())
    y = requantise(n, n.emit(acc), multipliers(scale), 1, bounds)
    return Flow(n.emit(y), is_planar=True)


@integer_converter("FULLY_CONNECTED")
def fully_connected(n: Op) -> Flow:
    check_connected(n)
    weights = _centred(n, 1, lambda w: w, "as stored")
    turned = _centred(n, 1, lambda w: w.T.astype("int32"), "transposed")
    x = n.emit(n.reshaped(n.expr(), [rows_of(n), n.shape(1)[1]]))
    acc = R.matmul(n.emit(R.astype(x, "int32")), turned, out_dtype="int32")
    y = n.emit(_finished(n, acc, weights, 0, 2, 1))
    return Flow(n.emit(n.reshaped(y, connected_shape(n))))


def _broadcast(source: te.Tensor, at: tuple[Any, ...]) -> Any:
    """Return an element of a tensor that broadcasts against the output."""
    own = at[len(at) - len(source.shape) :]
    return source(*(0 if int(size) == 1 else i for size, i in zip(source.shape, own, strict=True)))


@integer_converter("ADD", "SUB", "MUL")
def arithmetic(n: Op) -> Flow:
    """ADD and SUB bring both operands to a common scale with 20 more bits; MUL multiplies first."""
    (a, b), is_planar = n.alike(0, 1)
    scales, zeros = [scale_of(n.tensor(i)) for i in (0, 1)], [zero_of(n.tensor(i)) for i in (0, 1)]
    out, bounds = n.out(), activation_range(n.activation, n.out())
    common = 2 * max(scales)
    into = [multipliers(np.array([scale / common])) for scale in scales]
    is_product = n.kind == "MUL"
    factor = scales[0] * scales[1] / scale_of(out) if is_product else common / (2**20 * scale_of(out))
    result = multipliers(np.array([factor]))
    shape = np.broadcast_shapes(shape_of(n.emit(a)), shape_of(n.emit(b)))

    def compute(x: te.Tensor, y: te.Tensor) -> te.Tensor:
        def element(*i: tirx.Var) -> tirx.Expr:
            left, right = (_broadcast(t, i).astype("int64") - i64(z) for t, z in ((x, zeros[0]), (y, zeros[1])))
            if is_product:
                total = left * right
            else:
                left, right = (scaled_by_one(v << i64(20), by) for v, by in ((left, into[0]), (right, into[1])))
                total = left + right if n.kind == "ADD" else left - right
            return narrowed(scaled_by_one(total, result), zero_of(out), bounds, out.dtype)

        return te.compute(shape, element, name=f"s8_{n.kind.lower()}")

    return Flow(n.emit(n.build.call_te(compute, a, b, name=f"s8_{n.kind.lower()}")), is_planar)


@integer_converter("MAX_POOL_2D")
def max_pool(n: Op) -> Flow:
    y = n.emit(R.nn.max_pool2d(n.planar(), *pool_windows(n)))
    return Flow(_limited(n, y), is_planar=True)


def _limited(n: Op, y: Expr) -> Expr:
    """Return stored numbers within the fused activation."""
    low, high = activation_range(n.activation, n.out())
    if (low, high) == activation_range("NONE", n.out()):
        return n.emit(y)
    dtype = n.out().dtype
    return n.emit(R.maximum(R.minimum(y, constant(np.asarray(high, dtype))), constant(np.asarray(low, dtype))))


@integer_converter("AVERAGE_POOL_2D")
def average_pool(n: Op) -> Flow:
    """The sum over the pixels that exist by their number, half away from zero."""
    kernel, strides, (top, left, bottom, right) = pool_windows(n)
    _, h, w, _ = n.shape()
    low, high = activation_range(n.activation, n.out())
    x = n.planar()
    if any((top, left, bottom, right)):
        x = n.emit(R.nn.pad(x, [0, 0, 0, 0, top, bottom, left, right], pad_value=0.0))
    out, dtype = n.out().shape, n.out().dtype
    counts = np.outer(
        _seen(out[1], kernel[0], strides[0], top, h), _seen(out[2], kernel[1], strides[1], left, w)
    ).astype("int32")

    def compute(source: te.Tensor, count: te.Tensor) -> te.Tensor:
        ky, kx = te.reduce_axis((0, kernel[0]), "ky"), te.reduce_axis((0, kernel[1]), "kx")
        shape = (source.shape[0], source.shape[1], out[1], out[2])
        total = te.compute(
            shape,
            lambda b, c, i, j: te.sum(
                source[b, c, i * strides[0] + ky, j * strides[1] + kx].astype("int32"), axis=[ky, kx]
            ),
            name="total",
        )

        def element(b: tirx.Var, c: tirx.Var, i: tirx.Var, j: tirx.Var) -> tirx.Expr:
            t, size = total[b, c, i, j], count[i, j]
            half = tirx.truncdiv(size, tirx.const(2, "int32"))
            mean = tirx.truncdiv(tirx.Select(t > 0, t + half, t - half), size)
            return tirx.max(tirx.min(mean, tirx.const(high, "int32")), tirx.const(low, "int32")).astype(dtype)

        return te.compute(shape, element, name="mean")

    return Flow(n.emit(n.build.call_te(compute, x, constant(counts), name="s8_average_pool")), is_planar=True)


def _seen(out: int, kernel: int, stride: int, before: int, size: int) -> np.ndarray:
    """Return [out]: how many elements of the input each window has."""
    first = np.arange(out) * stride - before
    return np.minimum(first + kernel, size) - np.maximum(first, 0)


@integer_converter("MEAN", "SUM")
def mean(n: Op) -> Flow:
    axes, keep = reduced_axes(n), bool(n.option("keep_dims"))
    count = int(np.prod([n.shape()[a] for a in axes]))
    stays = n.is_planar() and keep
    x, axes = (n.planar(), [TO_NHWC[a] for a in axes]) if stays else (n.expr(), axes)
    total = n.emit(R.sum(R.astype(x, "int32"), axes, keepdims=keep))
    zero = constant(np.asarray(zero_of(n.tensor()) * count, "int32"))
    scale = scale_of(n.tensor()) / (scale_of(n.out()) * (count if n.kind == "MEAN" else 1))
    by, bounds = multipliers(np.array([scale])), activation_range("NONE", n.out())
    y = requantise(n, n.emit(R.subtract(total, zero)), by, 0, bounds)
    return Flow(n.emit(y), stays)


@integer_converter("PRELU")
def prelu(n: Op) -> Flow:
    """Numbers above zero times one factor, those below times slope and another."""
    (a, b), is_planar = n.alike(0, 1)
    zeros, out = (zero_of(n.tensor(0)), zero_of(n.tensor(1))), n.out()
    above = multipliers(np.array([scale_of(n.tensor(0)) / scale_of(out)]))
    below = multipliers(np.array([scale_of(n.tensor(0)) * scale_of(n.tensor(1)) / scale_of(out)]))
    bounds = activation_range("NONE", out)

    def compute(x: te.Tensor, slope: te.Tensor) -> te.Tensor:
        def element(*i: tirx.Var) -> tirx.Expr:
            v, s = x(*i).astype("int64") - i64(zeros[0]), _broadcast(slope, i).astype("int64") - i64(zeros[1])
            y = tirx.Select(v >= i64(0), scaled_by_one(v, above), scaled_by_one(v * s, below))
            return narrowed(y, zero_of(out), bounds, out.dtype)

        return te.compute(x.shape, element, name="s8_prelu")

    return Flow(n.emit(n.build.call_te(compute, a, b, name="s8_prelu")), is_planar)


SOFTMAX_BITS = 23  # of the table of exponentials; sums over 2**20 elements still fit 64 bits twice shifted


def softmax_table(scale: float, beta: float) -> np.ndarray:
    """Return [256] int64: exp(-beta * scale * i) with ``SOFTMAX_BITS`` fractional bits, for i below the maximum."""
    return np.floor(np.exp(-np.arange(256) * scale * beta) * 2.0**SOFTMAX_BITS + 0.5).astype("int64")


@integer_converter("SOFTMAX")
def softmax(n: Op) -> Flow:
    """Exponentials out of a table, then one integer division; outputs are 256ths, as TFLite prescribes."""
    out = n.out()
    if abs(scale_of(out) * 256 - 1) > 1e-3 or n.dtype() not in ("int8", "uint8"):
        raise Refused(f"output scale {scale_of(out):g} is not supported", "Supported: 1/256, as converters write it.")
    x, table = R.astype(n.expr(), "int32"), constant(softmax_table(scale_of(n.tensor()), float(n.option("beta"))))
    x = n.emit(x)
    below = n.emit(R.subtract(R.max(x, [-1], keepdims=True), x))
    e = n.emit(R.take(table, below, 0, mode="clip"))
    total = n.emit(R.sum(e, [-1], keepdims=True))
    bounds = activation_range("NONE", out)

    def compute(a: te.Tensor, b: te.Tensor) -> te.Tensor:
        def element(*i: tirx.Var) -> tirx.Expr:
            size = _broadcast(b, i)
            y = tirx.truncdiv(a(*i) * i64(512) + size, size * i64(2))
            return narrowed(y, zero_of(out), bounds, out.dtype)

        return te.compute(a.shape, element, name="s8_softmax")

    return Flow(n.emit(n.build.call_te(compute, e, total, name="s8_softmax")))


def rescale(n: Op, index: int, by: Multipliers) -> Expr:
    """Return planar or plain operand ``index`` in the output's scale."""
    x = n.planar(index) if n.is_planar(index) else n.expr(index)
    centred = R.subtract(R.astype(x, "int32"), constant(np.asarray(zero_of(n.tensor(index)), "int32")))
    bounds = activation_range("NONE", n.out())
    return requantise(n, n.emit(centred), by, 0, bounds)
