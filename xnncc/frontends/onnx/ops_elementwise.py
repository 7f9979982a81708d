"""Elementwise arithmetic, comparison, logic and casts. Operands broadcast as in numpy; dtypes are equal."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from tvm import relax
from tvm.relax import Expr

from .node import Node, Refused
from .registry import converter
from .shapes import SUPPORTED_DTYPES, numpy_dtype

R = relax.op


def _unary(operator: str, function: Callable[[Expr], Expr]) -> None:
    converter(operator)(lambda n: function(n.expr(0)))


def _binary(operator: str, function: Callable[[Expr, Expr], Expr]) -> None:
    converter(operator)(lambda n: function(*_operands(n)))


def _operands(n: Node) -> tuple[Expr, Expr]:
    """Return both operands; up to opset 6 the second may be aligned with an ``axis`` of the first."""
    if n.opset >= 7 or not n.attr("broadcast", 0):
        n.ignore("consumed_inputs")
        return n.expr(0), n.expr(1)
    n.ignore("consumed_inputs")
    if not n.has_attr("axis"):
        return n.expr(0), n.expr(1)
    behind = n.rank() - n.axis(int(n.attr("axis"))) - n.rank(1)
    return n.expr(0), n.emit(n.reshaped(n.expr(1), [*n.shape(1), *[1] * behind]))


for _name, _function in {
    "Abs": R.abs, "Acos": R.acos, "Acosh": R.acosh, "Asin": R.asin, "Asinh": R.asinh, "Atan": R.atan,
    "Atanh": R.atanh, "Ceil": R.ceil, "Cos": R.cos, "Erf": R.erf, "Exp": R.exp, "Floor": R.floor,
    "IsNaN": R.isnan, "Log": R.log, "Neg": R.negative, "Not": R.logical_not, "Sign": R.sign, "Sin": R.sin,
    "Sqrt": R.sqrt, "Tan": R.tan, "Tanh": R.tanh, "Sigmoid": R.sigmoid, "BitwiseNot": R.bitwise_not,
    "Identity": lambda x: x,
}.items():  # fmt: skip
    _unary(_name, _function)

for _name, _function in {
    "Add": R.add, "Sub": R.subtract, "Mul": R.multiply, "And": R.logical_and, "Or": R.logical_or,
    "Xor": R.logical_xor, "Less": R.less, "LessOrEqual": R.less_equal, "Greater": R.greater,
    "GreaterOrEqual": R.greater_equal, "BitwiseAnd": R.bitwise_and, "BitwiseOr": R.bitwise_or,
    "BitwiseXor": R.bitwise_xor,
}.items():  # fmt: skip
    _binary(_name, _function)


@converter("Equal")
def equal(n: Node) -> Expr:
    return R.equal(n.expr(0), n.expr(1))


@converter("Round")
def round_half_even(n: Node) -> Expr:
    """Half to even, as the standard says; ``relax.round`` is lowered to the same (nearbyint)."""
    return R.round(n.expr(0))


@converter("IsInf")
def is_inf(n: Node) -> Expr:
    positive, negative = n.attr("detect_positive", 1), n.attr("detect_negative", 1)
    if positive and negative:
        return R.isinf(n.expr(0))
    if not positive and not negative:
        return R.zeros(n.shape(), "bool")
    return R.equal(n.expr(0), n.scalar(np.inf if positive else -np.inf))


@converter("Div")
def divide(n: Node) -> Expr:
    """Integers are divided towards zero."""
    return R.divide(*_operands(n))


@converter("Mod")
def modulo(n: Node) -> Expr:
    """``fmod=1``: sign of the dividend (C); otherwise integers only, sign of the divisor (Python)."""
    if n.attr("fmod", 0):
        return R.mod(n.expr(0), n.expr(1))
    if "int" not in n.dtype():
        return _float_floor_mod(n)
    return R.floor_mod(n.expr(0), n.expr(1))


def _float_floor_mod(n: Node) -> Expr:
    """C's remainder, moved by the divisor where the signs differ; a zero has the divisor's sign."""
    x, y = n.expr(0), n.expr(1)
    rest, zero = n.emit(R.mod(x, y)), n.scalar(0)
    differ = R.less(R.multiply(R.sign(rest), R.sign(y)), zero)
    moved = R.where(differ, R.add(rest, y), rest)
    signed_zero = R.where(R.less(y, zero), n.scalar(-0.0), zero)
    return R.where(R.equal(rest, zero), signed_zero, moved)


@converter("Cosh")
def cosh(n: Node) -> Expr:
    """(e^x + e^-x) / 2: LLVM has no cosh, and libm's is one call for each lane."""
    x = n.expr(0)
    return R.multiply(R.add(R.exp(x), R.exp(R.negative(x))), n.scalar(0.5))


@converter("Sinh")
def sinh(n: Node) -> Expr:
    """(e^x - e^-x) / 2, and below 0.5, where that would lose digits, the series x + x^3/3! + ... + x^9/9!."""
    x = n.expr(0)
    far = R.multiply(R.subtract(R.exp(x), R.exp(R.negative(x))), n.scalar(0.5))
    square = n.emit(R.multiply(x, x))
    series = n.scalar(1 / 362880)
    for factor in (1 / 5040, 1 / 120, 1 / 6, 1):
        series = R.add(R.multiply(series, square), n.scalar(factor))
    return R.where(R.less(R.abs(x), n.scalar(0.5)), R.multiply(x, series), far)


@converter("Reciprocal")
def reciprocal(n: Node) -> Expr:
    return R.divide(n.scalar(1), n.expr(0))


@converter("Pow")
def power(n: Node) -> Expr:
    """x ** 2, 3 and 0.5 become multiplications and a square root; the result has x's dtype."""
    x = n.expr(0)
    exponent = n.const(1, "exponent").reshape(-1) if n.is_const(1) else np.zeros(0)
    if exponent.size == 1 and n.rank(1) <= n.rank(0):
        value = float(exponent[0])
        if value == 1:
            return x
        if value == 2:
            return R.multiply(x, x)
        if value == 3:
            return R.multiply(R.multiply(x, x), x)
        if value == 0.5 and "float" in n.dtype():
            return R.sqrt(x)
    if "float" not in n.dtype():
        base, exponent_ = R.astype(x, "float64"), R.astype(n.expr(1), "float64")  # exact below 2^53
        return R.astype(R.power(base, exponent_), n.dtype())
    y = n.expr(1) if n.dtype(1) == n.dtype(0) else R.astype(n.expr(1), n.dtype(0))
    return R.power(x, y)


@converter("BitShift")
def bit_shift(n: Node) -> Expr:
    """By the width or more, or by a negative number, gives what shifting bit by bit for ever would: 0, or -1."""
    left = n.choice("direction", "", ("LEFT", "RIGHT")) == "LEFT"
    x, y, bits = n.expr(0), n.expr(1), 8 * np.dtype(n.dtype()).itemsize
    inside = R.less(y, n.scalar(bits, n.dtype(1)))
    if n.dtype(1).startswith("int"):
        inside = R.logical_and(inside, R.greater_equal(y, n.scalar(0, n.dtype(1))))
    inside = n.emit(inside)
    kept = n.emit(R.where(inside, y, n.scalar(0 if left else bits - 1, n.dtype(1))))
    if left:
        return R.where(inside, R.left_shift(x, kept), n.scalar(0))
    if n.dtype().startswith("uint"):
        return R.where(inside, R.right_shift(x, kept), n.scalar(0))
    return R.right_shift(x, kept)


def _folded(function: Callable[[Expr, Expr], Expr]) -> Callable[[Node], Expr]:
    def convert(n: Node) -> Expr:
        operands = n.exprs()
        result = operands[0]
        for operand in operands[1:]:
            result = function(result, operand)
        return result

    return convert


converter("Sum")(_folded(R.add))
converter("Max")(_folded(R.maximum))
converter("Min")(_folded(R.minimum))


@converter("Mean")
def mean(n: Node) -> Expr:
    return R.multiply(_folded(R.add)(n), n.scalar(1 / len(n)))


@converter("Where")
def where(n: Node) -> Expr:
    return R.where(n.expr(0), n.expr(1), n.expr(2))


@converter("Cast")
def cast(n: Node) -> Expr:
    n.ignore("saturate", "round_mode")  # only for 8-bit floats
    dtype = numpy_dtype(n.attr("to", 0))
    if not dtype:
        raise Refused("its target dtype cannot be built", f"Supported: {', '.join(SUPPORTED_DTYPES)}.")
    return _cast(n, dtype)


@converter("CastLike")
def cast_like(n: Node) -> Expr:
    n.ignore("saturate", "round_mode")
    return _cast(n, n.dtype(1))


def _cast(n: Node, dtype: str) -> Expr:
    if dtype == n.dtype():
        return n.expr(0)
    if dtype == "bool":
        return R.not_equal(n.expr(0), n.scalar(0))
    x = n.expr(0)
    if (n.dtype(), dtype) == ("float64", "float16"):  # no target has an instruction for it, and the runtime no helper
        x = R.astype(x, "float32")
    return R.astype(x, dtype)


@converter("Clip")
def clip(n: Node) -> Expr:
    """Constant bounds become ``relax.clip`` (or relu), bounds computed at run time maximum and minimum."""
    x, dtype = n.expr(0), n.dtype()
    low, high = _bound(n, 1, "min"), _bound(n, 2, "max")
    if isinstance(low, Expr) or isinstance(high, Expr):
        x = x if low is None else R.maximum(x, low if isinstance(low, Expr) else n.scalar(low))
        return x if high is None else R.minimum(x, high if isinstance(high, Expr) else n.scalar(high))
    if high is None:
        if low is None:
            return x
        return R.nn.relu(x) if low == 0 else R.maximum(x, n.scalar(low))
    if low is None:
        return R.minimum(x, n.scalar(high))
    if low > high:
        return R.full(n.shape(), n.scalar(high), dtype)  # the standard: min(max(x, low), high)
    number = float if "float" in dtype else int
    return R.clip(x, number(low), number(high))


def _bound(n: Node, index: int, name: str) -> float | Expr | None:
    """Return a bound from the input or, up to opset 10, the attribute; None when it bounds nothing."""
    if n.has(index) and not n.is_const(index):
        return n.expr(index)
    value = n.const(index, name).reshape(-1)[0] if n.has(index) else n.attr(name)
    if value is None:
        return None
    limits = np.finfo(n.dtype()) if "float" in n.dtype() else np.iinfo(n.dtype())
    outside = value <= limits.min if name == "min" else value >= limits.max
    return None if outside else value.item() if isinstance(value, np.generic) else value
