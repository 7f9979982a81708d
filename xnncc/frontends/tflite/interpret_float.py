"""Operators on real numbers in numpy, NHWC; convolutions on BLAS. Weights as TFLite stores them: [O, KH, KW, C]."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .interpret import Array, Evaluator, Step
from .schema import ACTIVATIONS, PADDINGS
from .windows import Axis, axis_of, linear_taps, transposed_padding


def activation_of(s: Step) -> str:
    """Return the name of the fused activation."""
    return ACTIVATIONS[s.option("activation")]


_ACTIVATE: dict[str, Callable[[Array], Array]] = {
    "NONE": lambda v: v, "RELU": lambda v: np.maximum(v, 0), "RELU6": lambda v: np.clip(v, 0, 6),
    "RELU_N1_TO_1": lambda v: np.clip(v, -1, 1), "TANH": np.tanh,
}  # fmt: skip


def _activated(s: Step, y: Array) -> Array:
    return _ACTIVATE[activation_of(s)](y)


def window_axes(s: Step, kernel: tuple[int, int]) -> tuple[Axis, Axis]:
    """Return the windows along height and width."""
    padding = PADDINGS[s.option("padding")]
    _, h, w, _ = s.x[0].shape
    dilations = (s.op.options.get("dilation_h", 1), s.op.options.get("dilation_w", 1))
    return (
        axis_of(h, kernel[0], s.option("stride_h"), dilations[0], padding),
        axis_of(w, kernel[1], s.option("stride_w"), dilations[1], padding),
    )


def patches(x: Array, rows: Axis, columns: Axis, fill: float) -> Array:
    """Return a view [N, OH, OW, KH, KW, C] of the padded ``x`` [N, H, W, C]."""
    pads = [(0, 0), (rows.before, rows.after), (columns.before, columns.after), (0, 0)]
    x = np.pad(x, pads, constant_values=fill)
    n, h, w, c = x.strides
    shape = (x.shape[0], rows.out, columns.out, rows.kernel, columns.kernel, x.shape[3])
    strides = (n, h * rows.stride, w * columns.stride, h * rows.dilation, w * columns.dilation, c)
    return np.lib.stride_tricks.as_strided(x, shape, strides, writeable=False)


def convolve(x: Array, w: Array, rows: Axis, columns: Axis, fill: float = 0) -> Array:
    """x: [N, H, W, C], w: [O, KH, KW, C/G] -> [N, OH, OW, O]."""
    seen = patches(x, rows, columns, fill)
    outs, groups = w.shape[0], x.shape[3] // w.shape[3]
    result = []
    for g in range(groups):
        part = seen[..., g * w.shape[3] : (g + 1) * w.shape[3]]
        kernel = w[g * outs // groups : (g + 1) * outs // groups]
        result.append(part.reshape(*part.shape[:3], -1) @ kernel.reshape(len(kernel), -1).T)
    return np.concatenate(result, -1)


def depthwise(x: Array, w: Array, rows: Axis, columns: Axis, fill: float = 0) -> Array:
    """x: [N, H, W, C], w: [1, KH, KW, C*M] -> [N, OH, OW, C*M]."""
    seen = patches(x, rows, columns, fill)
    _, kh, kw, out = w.shape
    times = out // x.shape[3]
    y = np.einsum("nyxhwc,hwcm->nyxcm", seen, w.reshape(kh, kw, x.shape[3], times))
    return y.reshape(*y.shape[:3], out)


def convolve_transposed(s: Step, x: Array, w: Array, stride: tuple[int, int], padding: str) -> Array:
    """x: [N, H, W, C], w: [O, KH, KW, C]: every element adds its kernel to the output."""
    n, h, wd, _ = x.shape
    _, oh, ow, o = s.outputs[0].shape
    _, kh, kw, _ = w.shape
    (top, _), (left, _) = (transposed_padding(a, k, st, out, padding)
                           for a, k, st, out in ((h, kh, stride[0], oh), (wd, kw, stride[1], ow)))  # fmt: skip
    full = np.zeros((n, (h - 1) * stride[0] + kh + oh, (wd - 1) * stride[1] + kw + ow, o), np.result_type(x, w))
    for r in range(kh):
        for c in range(kw):
            rows = slice(r, r + (h - 1) * stride[0] + 1, stride[0])
            columns = slice(c, c + (wd - 1) * stride[1] + 1, stride[1])
            full[:, rows, columns] += x @ w[:, r, c].T
    return full[:, top : top + oh, left : left + ow]


def _bias(s: Step, index: int) -> Any:
    return s.x[index] if len(s.x) > index and s.x[index] is not None else 0


def _conv(s: Step) -> Array:
    return _activated(s, convolve(s.x[0], s.x[1], *window_axes(s, s.x[1].shape[1:3])) + _bias(s, 2))


def _depthwise_conv(s: Step) -> Array:
    return _activated(s, depthwise(s.x[0], s.x[1], *window_axes(s, s.x[1].shape[1:3])) + _bias(s, 2))


def _transpose_conv(s: Step) -> Array:
    stride = (s.option("stride_h"), s.option("stride_w"))
    y = convolve_transposed(s, s.x[2], s.x[1], stride, PADDINGS[s.option("padding")])
    return _activated(s, y + _bias(s, 3))


def _transpose_conv_bias(s: Step) -> Array:
    padding, width, height = (int(v) for v in np.frombuffer(s.op.custom[:12], "<i4"))
    return convolve_transposed(s, s.x[0], s.x[1], (height, width), PADDINGS[padding - 1]) + _bias(s, 2)


def _fully_connected(s: Step) -> Array:
    y = s.x[0].reshape(-1, s.x[1].shape[1]) @ s.x[1].T + _bias(s, 2)
    return _activated(s, y).reshape(s.outputs[0].shape)


def _pool(s: Step) -> Array:
    rows, columns = window_axes(s, (s.option("filter_h"), s.option("filter_w")))
    if s.op.kind == "MAX_POOL_2D":
        return _activated(s, patches(s.x[0], rows, columns, -np.inf).max((3, 4)))
    counts = patches(np.ones_like(s.x[0][:1]), rows, columns, 0).sum((3, 4))
    if s.op.kind == "L2_POOL_2D":
        return _activated(s, np.sqrt(patches(s.x[0] ** 2, rows, columns, 0).sum((3, 4)) / counts))
    return _activated(s, patches(s.x[0], rows, columns, 0).sum((3, 4)) / counts)


def _softmax(s: Step) -> Array:
    e = np.exp((s.x[0] - s.x[0].max(-1, keepdims=True)) * np.float32(s.option("beta")))
    return e / e.sum(-1, keepdims=True)


def _log_softmax(s: Step) -> Array:
    x = s.x[0] - s.x[0].max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def resized(x: Array, rows: tuple[Array, Array], columns: tuple[Array, Array]) -> Array:
    """x: [N, H, W, C] between two rows and two columns: taps are index and weight [out, 2]."""
    (ri, rw), (ci, cw) = rows, columns
    y = sum(x[:, ri[:, k]] * rw[:, k].reshape(1, -1, 1, 1) for k in (0, 1))
    return sum(y[:, :, ci[:, k]] * cw[:, k].reshape(1, 1, -1, 1) for k in (0, 1))  # type: ignore[index]


def _resize_bilinear(s: Step) -> Array:
    flags = (bool(s.option("align_corners")), bool(s.option("half_pixel_centers")))
    h, w = (int(v) for v in s.x[1])
    return resized(s.x[0], linear_taps(s.x[0].shape[1], h, *flags), linear_taps(s.x[0].shape[2], w, *flags))


def _l2_normalise(s: Step) -> Array:
    norm = np.sqrt(np.maximum((s.x[0] ** 2).sum(-1, keepdims=True), 1e-6))
    return s.x[0] / norm


def _lrn(s: Step) -> Array:
    radius = s.option("radius")
    squares = np.pad(s.x[0] ** 2, [(0, 0)] * (s.x[0].ndim - 1) + [(radius, radius)])
    total = sum(squares[..., i : i + s.x[0].shape[-1]] for i in range(2 * radius + 1))
    return s.x[0] * (s.option("bias") + s.option("alpha") * total) ** np.float32(-s.option("beta"))


def _reduction(function: Callable[..., Array]) -> Evaluator:
    def run(s: Step) -> Array:
        axes = tuple(sorted({int(a) % max(s.x[0].ndim, 1) for a in np.asarray(s.x[1]).reshape(-1)}))
        return function(s.x[0], axis=axes, keepdims=bool(s.option("keep_dims")))

    return run


def _position(function: Callable[..., Array]) -> Evaluator:
    return lambda s: function(s.x[0], axis=int(np.reshape(s.x[1], ())))


def _batch_matmul(s: Step) -> Array:
    x, y = s.x
    x = np.swapaxes(x, -1, -2) if s.option("adj_x") else x
    return x @ (np.swapaxes(y, -1, -2) if s.option("adj_y") else y)


def _gelu(s: Step) -> Array:
    x = s.x[0]
    if s.option("approximate"):
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + np.vectorize(math.erf, otypes=["f8"])(x / math.sqrt(2)))


def _divide(a: Array, b: Array) -> Array:
    return a / b if a.dtype.kind == "f" else np.trunc(a / b)


def _cumsum(s: Step) -> Array:
    axis = int(np.reshape(s.x[1], ()))
    x = np.flip(s.x[0], axis) if s.option("reverse") else s.x[0]
    total = np.cumsum(x, axis, dtype=x.dtype)
    total = total - x if s.option("exclusive") else total
    return np.flip(total, axis) if s.option("reverse") else total


def _select(s: Step) -> Array:
    condition, x, y = s.x
    if s.op.kind == "SELECT" and condition.ndim < x.ndim:  # a vector chooses whole rows
        condition = condition.reshape(condition.shape + (1,) * (x.ndim - condition.ndim))
    return np.where(condition, x, y)


def _unary(function: Callable[[Array], Array]) -> Evaluator:
    return lambda s: function(s.x[0])


def _binary(function: Callable[[Array, Array], Array]) -> Evaluator:
    return lambda s: function(s.x[0], s.x[1])


def _fused(function: Callable[[Array, Array], Array]) -> Evaluator:
    return lambda s: _activated(s, function(s.x[0], s.x[1]))


_UNARY: dict[str, Callable[[Array], Array]] = {
    "RELU": lambda x: np.maximum(x, 0), "RELU6": lambda x: np.clip(x, 0, 6),
    "RELU_N1_TO_1": lambda x: np.clip(x, -1, 1), "RELU_0_TO_1": lambda x: np.clip(x, 0, 1),
    "LOGISTIC": lambda x: 1 / (1 + np.exp(-x)), "TANH": np.tanh, "ELU": lambda x: np.where(x < 0, np.expm1(x), x),
    "HARD_SWISH": lambda x: x * np.clip(x + 3, 0, 6) / 6, "EXP": np.exp, "LOG": np.log, "SQRT": np.sqrt,
    "RSQRT": lambda x: 1 / np.sqrt(x), "SQUARE": np.square, "ABS": np.abs, "NEG": np.negative, "SIN": np.sin,
    "COS": np.cos, "FLOOR": np.floor, "CEIL": np.ceil, "ROUND": np.round, "SIGN": np.sign,
    "LOGICAL_NOT": np.logical_not,
}  # fmt: skip
_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "MAXIMUM": np.maximum, "MINIMUM": np.minimum, "POW": np.power, "EQUAL": np.equal, "NOT_EQUAL": np.not_equal,
    "LESS": np.less, "LESS_EQUAL": np.less_equal, "GREATER": np.greater, "GREATER_EQUAL": np.greater_equal,
    "LOGICAL_AND": np.logical_and, "LOGICAL_OR": np.logical_or, "FLOOR_DIV": np.floor_divide, "FLOOR_MOD": np.mod,
    "SQUARED_DIFFERENCE": lambda a, b: (a - b) ** 2,
    "PRELU": lambda x, slope: np.where(x >= 0, x, x * slope),
}  # fmt: skip

EVALUATORS: dict[str, Evaluator] = {
    **{name: _unary(function) for name, function in _UNARY.items()},
    **{name: _binary(function) for name, function in _BINARY.items()},
    "ADD": _fused(np.add), "SUB": _fused(np.subtract), "MUL": _fused(np.multiply), "DIV": _fused(_divide),
    "LEAKY_RELU": lambda s: np.where(s.x[0] > 0, s.x[0], s.x[0] * np.float32(s.option("alpha"))),
    "GELU": _gelu, "ADD_N": lambda s: sum(s.x), "CONV_2D": _conv, "DEPTHWISE_CONV_2D": _depthwise_conv,
    "TRANSPOSE_CONV": _transpose_conv, "Convolution2DTransposeBias": _transpose_conv_bias,
    "FULLY_CONNECTED": _fully_connected, "AVERAGE_POOL_2D": _pool, "MAX_POOL_2D": _pool, "L2_POOL_2D": _pool,
    "SOFTMAX": _softmax, "LOG_SOFTMAX": _log_softmax, "RESIZE_BILINEAR": _resize_bilinear,
    "L2_NORMALIZATION": _l2_normalise, "LOCAL_RESPONSE_NORMALIZATION": _lrn,
    "MEAN": _reduction(np.mean), "SUM": _reduction(np.sum), "REDUCE_MAX": _reduction(np.max),
    "REDUCE_MIN": _reduction(np.min), "REDUCE_PROD": _reduction(np.prod), "REDUCE_ANY": _reduction(np.any),
    "REDUCE_ALL": _reduction(np.all), "ARG_MAX": _position(np.argmax), "ARG_MIN": _position(np.argmin),
    "BATCH_MATMUL": _batch_matmul, "CUMSUM": _cumsum, "SELECT": _select, "SELECT_V2": _select,
    "CONCATENATION": lambda s: _activated(s, np.concatenate(s.x, axis=s.option("axis"))),
}  # fmt: skip
