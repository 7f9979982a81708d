"""Arithmetic, comparison, activation and reduction in numpy, as TensorFlow defines them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .graph import Operation
from .meanings import Array, meaning


def _erf(x: Array) -> Array:
    return np.vectorize(math.erf, otypes=[x.dtype])(x) if x.size else x


def _softplus(x: Array) -> Array:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _elu(x: Array) -> Array:
    return np.where(x < 0, np.expm1(np.minimum(x, 0)), x)


def _selu(x: Array) -> Array:
    scale, alpha = np.asarray(1.0507009873554804934193349852946, x.dtype), np.asarray(1.6732632423543772, x.dtype)
    return np.where(x < 0, scale * alpha * np.expm1(np.minimum(x, 0)), scale * x)


def _truncated_division(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return a / b
    return (np.abs(a) // np.abs(b)) * (np.sign(a) * np.sign(b))


_UNARY: dict[str, Callable[[Array], Any]] = {
    "Abs": np.abs, "Neg": np.negative, "Square": np.square, "Sqrt": np.sqrt, "Rsqrt": lambda x: 1 / np.sqrt(x),
    "Exp": np.exp, "Expm1": np.expm1, "Log": np.log, "Log1p": np.log1p, "Floor": np.floor, "Ceil": np.ceil,
    "Round": np.round, "Rint": np.rint, "Sign": np.sign, "Reciprocal": lambda x: 1 / x, "Inv": lambda x: 1 / x,
    "Sin": np.sin, "Cos": np.cos, "Tanh": np.tanh, "Erf": _erf, "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Relu": lambda x: np.maximum(x, 0), "Relu6": lambda x: np.clip(x, 0, 6), "Elu": _elu, "Selu": _selu,
    "Softplus": _softplus, "Softsign": lambda x: x / (1 + np.abs(x)), "LogicalNot": np.logical_not,
    "ZerosLike": np.zeros_like, "OnesLike": np.ones_like, "IsNan": np.isnan, "IsInf": np.isinf,
}  # fmt: skip

_BINARY: dict[str, Callable[[Array, Array], Any]] = {
    "Add": np.add, "AddV2": np.add, "Sub": np.subtract, "Mul": np.multiply, "RealDiv": np.divide,
    "Div": _truncated_division, "TruncateDiv": _truncated_division, "FloorDiv": np.floor_divide, "FloorMod": np.mod,
    "DivNoNan": lambda a, b: np.where(b == 0, np.zeros_like(a), a / np.where(b == 0, 1, b)).astype(a.dtype),
    "Maximum": np.maximum, "Minimum": np.minimum, "Pow": np.power, "SquaredDifference": lambda a, b: (a - b) ** 2,
    "Equal": np.equal, "NotEqual": np.not_equal, "Less": np.less, "LessEqual": np.less_equal, "Greater": np.greater,
    "GreaterEqual": np.greater_equal, "LogicalAnd": np.logical_and, "LogicalOr": np.logical_or,
    "BiasAdd": np.add,
}  # fmt: skip


def _unary(function: Callable[[Array], Any]) -> Callable[..., Any]:
    return lambda operation, x, *rest: np.asarray(function(x), x.dtype) if x.dtype.kind == "f" else function(x)


for _kind, _function in _UNARY.items():
    if _kind not in ("IsNan", "IsInf"):
        meaning(_kind)(_unary(_function))
meaning("IsNan")(lambda operation, x: np.isnan(x))
meaning("IsInf")(lambda operation, x: np.isinf(x))


def _binary(function: Callable[[Array, Array], Any]) -> Callable[..., Any]:
    return lambda operation, a, b: function(a, b)


for _kind, _two in _BINARY.items():
    if _kind != "BiasAdd":
        meaning(_kind)(_binary(_two))


@meaning("Identity", "StopGradient", "Snapshot", "PreventGradient", "CheckNumerics", "PlaceholderWithDefault",
         "EnsureShape")  # fmt: skip
def identity(o: Operation, x: Any) -> Any:
    return x


@meaning("BiasAdd")
def bias_add(o: Operation, x: Array, bias: Array) -> Array:
    if o.attr("data_format", "NHWC") == "NCHW":
        bias = bias.reshape(-1, *[1] * (x.ndim - 2))
    return x + bias


@meaning("IdentityN")
def identity_n(o: Operation, *inputs: Array) -> tuple[Array, ...]:
    return inputs


@meaning("AddN")
def add_n(o: Operation, *inputs: Array) -> Array:
    total = inputs[0]
    for part in inputs[1:]:
        total = total + part
    return total


@meaning("LeakyRelu")
def leaky_relu(o: Operation, x: Array) -> Array:
    return np.where(x > 0, x, x * np.asarray(o.attr("alpha", 0.2), x.dtype))


@meaning("Softmax")
def softmax(o: Operation, x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@meaning("LogSoftmax")
def log_softmax(o: Operation, x: Array) -> Array:
    shifted = x - x.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


@meaning("ClipByValue")
def clip_by_value(o: Operation, x: Array, low: Array, high: Array) -> Array:
    return np.minimum(np.maximum(x, low), high)


@meaning("Select")
def select(o: Operation, condition: Array, a: Array, b: Array) -> Array:
    """The old Select takes a vector that chooses rows."""
    if condition.ndim == 1 and a.ndim > 1:
        condition = condition.reshape(-1, *[1] * (a.ndim - 1))
    return np.where(condition, a, b)


@meaning("SelectV2")
def select_v2(o: Operation, condition: Array, a: Array, b: Array) -> Array:
    return np.where(condition, a, b)


@meaning("Cast")
def cast(o: Operation, x: Array) -> Array:
    return x.astype(o.attr("DstT"))


def _reduction(function: Callable[..., Any], wide: bool = False) -> Callable[..., Any]:
    def run(o: Operation, x: Array, axes: Array) -> Array:
        options = {"dtype": "float64"} if wide and x.dtype.kind == "f" else {}
        axis = tuple(int(a) for a in np.reshape(axes, -1))
        result = function(x, axis=axis, keepdims=bool(o.attr("keep_dims", False)), **options)
        return np.asarray(result, x.dtype)

    return run


for _kind, _reduce, _wide in (
    ("Sum", np.sum, True), ("Mean", np.mean, True), ("Prod", np.prod, True), ("Max", np.max, False),
    ("Min", np.min, False), ("All", np.all, False), ("Any", np.any, False),
):  # fmt: skip
    meaning(_kind)(_reduction(_reduce, _wide))


@meaning("ArgMax")
def arg_max(o: Operation, x: Array, axis: Array) -> Array:
    return np.argmax(x, int(axis)).astype(o.attr("output_type", "int64"))


@meaning("ArgMin")
def arg_min(o: Operation, x: Array, axis: Array) -> Array:
    return np.argmin(x, int(axis)).astype(o.attr("output_type", "int64"))


@meaning("Cumsum")
def cumsum(o: Operation, x: Array, axis: Array) -> Array:
    place = int(axis)
    turned = np.flip(x, place) if o.attr("reverse", False) else x
    total = np.cumsum(turned, place, dtype=x.dtype)
    total = total - turned if o.attr("exclusive", False) else total
    return np.flip(total, place) if o.attr("reverse", False) else total


@meaning("MatMul")
def mat_mul(o: Operation, a: Array, b: Array) -> Array:
    return (a.T if o.attr("transpose_a", False) else a) @ (b.T if o.attr("transpose_b", False) else b)


@meaning("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def batch_mat_mul(o: Operation, a: Array, b: Array) -> Array:
    a = np.swapaxes(a, -1, -2) if o.attr("adj_x", False) else a
    b = np.swapaxes(b, -1, -2) if o.attr("adj_y", False) else b
    return np.matmul(a, b)


@meaning("Einsum")
def einsum(o: Operation, *inputs: Array) -> Array:
    return np.einsum(o.attr("equation"), *inputs)


def _fake_quant(o: Operation, x: Array, low: Array, high: Array) -> Array:
    """FakeQuantWithMinMaxVars: the range is nudged so that zero is a step."""
    first = 1 if o.attr("narrow_range", False) else 0
    last = 2 ** int(o.attr("num_bits", 8)) - 1
    low, high = np.asarray(low, "float32"), np.asarray(high, "float32")
    scale = (high - low) / np.float32(last - first)
    zero = np.float32(first) - low / scale
    nudged = np.where(zero < first, first, np.where(zero > last, last, np.floor(zero + np.float32(0.5))))
    nudged = nudged.astype("float32")
    bottom, top = (first - nudged) * scale, (last - nudged) * scale
    steps = np.floor((np.clip(x, bottom, top) - bottom) * (np.float32(1) / scale) + np.float32(0.5))
    return (steps * scale + bottom).astype("float32")


@meaning("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def fake_quant_vars(o: Operation, x: Array, low: Array, high: Array) -> Array:
    return _fake_quant(o, x, low, high)


@meaning("FakeQuantWithMinMaxArgs")
def fake_quant_args(o: Operation, x: Array) -> Array:
    return _fake_quant(o, x, o.attr("min", -6.0), o.attr("max", 6.0))
