"""Elementwise arithmetic, comparison, logic, choice and casts. Operands broadcast as in numpy; dtypes are equal."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from tvm import relax
from tvm.relax import Expr

from ..refused import Refused
from .node import Node
from .registry import converter
from .tensors import SUPPORTED_DTYPES

R = relax.op

_UNARY: dict[str, Callable[[Expr], Expr]] = {
    "Abs": R.abs, "Neg": R.negative, "Sqrt": R.sqrt, "Rsqrt": R.rsqrt, "Exp": R.exp, "Log": R.log, "Floor": R.floor,
    "Ceil": R.ceil, "Round": R.round, "Rint": R.round, "Sign": R.sign, "Sin": R.sin, "Cos": R.cos, "Tanh": R.tanh,
    "Erf": R.erf, "LogicalNot": R.logical_not, "IsNan": R.isnan, "IsInf": R.isinf,
}  # fmt: skip
_BINARY: dict[str, Callable[[Expr, Expr], Expr]] = {
    "Add": R.add, "AddV2": R.add, "Sub": R.subtract, "Mul": R.multiply, "RealDiv": R.divide, "Div": R.divide,
    "TruncateDiv": R.divide, "FloorDiv": R.floor_divide, "FloorMod": R.floor_mod, "Maximum": R.maximum,
    "Minimum": R.minimum, "Pow": R.power, "Equal": R.equal, "NotEqual": R.not_equal, "Less": R.less,
    "LessEqual": R.less_equal, "Greater": R.greater, "GreaterEqual": R.greater_equal, "LogicalAnd": R.logical_and,
    "LogicalOr": R.logical_or,
}  # fmt: skip
_SAME = (
    "Identity", "StopGradient", "Snapshot", "PreventGradient", "CheckNumerics", "PlaceholderWithDefault",
    "EnsureShape",
)  # fmt: skip


def _unary(function: Callable[[Expr], Expr]) -> Callable[[Node], Expr]:
    return lambda n: function(n.expr(0))


def _binary(function: Callable[[Expr, Expr], Expr]) -> Callable[[Node], Expr]:
    return lambda n: function(n.expr(0), n.expr(1))


for _kind, _one in _UNARY.items():
    converter(_kind)(_unary(_one))
for _kind, _two in _BINARY.items():
    converter(_kind)(_binary(_two))


@converter(*_SAME)
def identity(n: Node) -> Expr:
    return n.values[0]


@converter("IdentityN")
def identity_n(n: Node) -> list[Expr]:
    return list(n.values)


@converter("Square")
def square(n: Node) -> Expr:
    return R.multiply(n.expr(0), n.expr(0))


@converter("SquaredDifference")
def squared_difference(n: Node) -> Expr:
    difference = n.emit(R.subtract(n.expr(0), n.expr(1)))
    return R.multiply(difference, difference)


@converter("Reciprocal", "Inv")
def reciprocal(n: Node) -> Expr:
    return R.divide(n.scalar(1), n.expr(0))


@converter("Expm1")
def expm1(n: Node) -> Expr:
    return R.subtract(R.exp(n.expr(0)), n.scalar(1))


@converter("Log1p")
def log1p(n: Node) -> Expr:
    return R.log(R.add(n.expr(0), n.scalar(1)))


@converter("DivNoNan")
def divide_no_nan(n: Node) -> Expr:
    """Zero where the divisor is zero."""
    is_zero = n.emit(R.equal(n.expr(1), n.scalar(0)))
    return R.where(is_zero, n.scalar(0), R.divide(n.expr(0), R.where(is_zero, n.scalar(1), n.expr(1))))


@converter("AddN")
def add_n(n: Node) -> Expr:
    total = n.expr(0)
    for i in range(1, len(n)):
        total = n.emit(R.add(total, n.expr(i)))
    return total


@converter("BiasAdd")
def bias_add(n: Node) -> Expr:
    """bias: [C], of the last dimension or of the second."""
    if n.attr("data_format", "NHWC") != "NCHW":
        return R.add(n.expr(0), n.expr(1))
    shape = (-1, *[1] * (n.rank() - 2))
    if n.is_const(1):
        return R.add(n.expr(0), n.build.derived(n.const(1, "bias"), shape, lambda b: b.reshape(shape)))
    return R.add(n.expr(0), n.reshaped(n.expr(1), [n.shape(1)[0], *shape[1:]]))


@converter("ClipByValue")
def clip_by_value(n: Node) -> Expr:
    return R.minimum(R.maximum(n.expr(0), n.expr(1)), n.expr(2))


@converter("Select", "SelectV2")
def select(n: Node) -> Expr:
    """The old Select takes a vector that chooses rows."""
    condition = n.expr(0)
    if n.operation.kind == "Select" and n.rank(0) == 1 and n.rank(1) > 1:
        condition = n.reshaped(condition, [n.shape(0)[0], *[1] * (n.rank(1) - 1)])
    return R.where(condition, n.expr(1), n.expr(2))


@converter("Cast")
def cast(n: Node) -> Expr:
    """Floats lose their fraction on the way to integers; anything but zero is true."""
    to = n.attr("DstT", "")
    if to not in SUPPORTED_DTYPES:
        raise Refused(f"dtype {to} is not supported", f"Supported: {', '.join(SUPPORTED_DTYPES)}.")
    if to == n.dtype():
        return n.values[0]
    return R.not_equal(n.expr(0), n.scalar(0)) if to == "bool" else R.astype(n.expr(0), to)


def _fake_quantised(n: Node, low: np.ndarray, high: np.ndarray) -> Expr:
    """Round to the steps of an integer format, computed in float: the range is nudged so that zero is a step."""
    first = 1 if n.attr("narrow_range", False) else 0
    last = 2 ** int(n.attr("num_bits", 8)) - 1
    low, high = low.astype("float32"), high.astype("float32")
    if not (low < high).all():
        raise Refused(f"its range [{low.min()}, {high.max()}] is empty")
    scale = (high - low) / np.float32(last - first)
    zero = np.clip(np.floor(np.float32(first) - low / scale + np.float32(0.5)), first, last).astype("float32")
    bottom, top = (first - zero) * scale, (last - zero) * scale
    n.warn("FakeQuant nodes are computed as they stand, in float32: the network is not made an integer one")
    if low.ndim == 0:
        inside = R.clip(n.expr(0), float(bottom), float(top))
    else:
        inside = R.minimum(R.maximum(n.expr(0), n.build.constant(bottom)), n.build.constant(top))
    fine = R.multiply(R.subtract(inside, n.build.constant(bottom)), n.build.constant(np.float32(1) / scale))
    steps = R.floor(R.add(fine, n.scalar(0.5)))
    return R.add(R.multiply(steps, n.build.constant(scale)), n.build.constant(bottom))


@converter("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def fake_quant_vars(n: Node) -> Expr:
    return _fake_quantised(n, n.const(1, "min"), n.const(2, "max"))


@converter("FakeQuantWithMinMaxArgs")
def fake_quant_args(n: Node) -> Expr:
    return _fake_quantised(n, np.asarray(n.attr("min", -6.0)), np.asarray(n.attr("max", 6.0)))
