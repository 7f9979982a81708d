"""Element by element, and reductions, on real numbers; images stay in the layout in which they come."""

from __future__ import annotations

from collections.abc import Callable

from tvm import relax
from tvm.relax import Expr

from ..activations import elu, hard_swish, scalar_like
from ..refused import Refused
from .flow import TO_NHWC, Flow
from .op import Op, activate
from .registry import converter, mover

R = relax.op


def unary(n: Op, function: Callable[[Expr], Expr]) -> Flow:
    """Return ``function`` of operand 0 in the layout it has."""
    x = n.planar() if n.is_planar() else n.expr()
    return Flow(n.emit(function(x)), n.is_planar())


_UNARY: dict[str, Callable[[Expr], Expr]] = {
    "RELU": R.nn.relu, "RELU6": lambda x: activate("RELU6", x), "RELU_N1_TO_1": lambda x: activate("RELU_N1_TO_1", x),
    "RELU_0_TO_1": lambda x: R.clip(x, 0.0, 1.0), "LOGISTIC": R.sigmoid, "TANH": R.tanh, "ELU": elu,
    "HARD_SWISH": hard_swish, "EXP": R.exp, "LOG": R.log, "SQRT": R.sqrt, "RSQRT": R.rsqrt,
    "SQUARE": lambda x: R.multiply(x, x), "ABS": R.abs, "NEG": R.negative, "SIN": R.sin, "COS": R.cos,
    "FLOOR": R.floor, "CEIL": R.ceil, "ROUND": R.round, "SIGN": R.sign, "LOGICAL_NOT": R.logical_not,
}  # fmt: skip
_BINARY: dict[str, Callable[[Expr, Expr], Expr]] = {
    "ADD": R.add, "SUB": R.subtract, "MUL": R.multiply, "DIV": R.divide, "MAXIMUM": R.maximum,
    "MINIMUM": R.minimum, "POW": R.power, "EQUAL": R.equal, "NOT_EQUAL": R.not_equal, "LESS": R.less,
    "LESS_EQUAL": R.less_equal, "GREATER": R.greater, "GREATER_EQUAL": R.greater_equal,
    "LOGICAL_AND": R.logical_and, "LOGICAL_OR": R.logical_or, "FLOOR_DIV": R.floor_divide, "FLOOR_MOD": R.floor_mod,
}  # fmt: skip
_ORDERING = ("MAXIMUM", "MINIMUM")


@converter(*_UNARY)
def _of_one(n: Op) -> Flow:
    return unary(n, _UNARY[n.kind])


@converter("LEAKY_RELU")
def leaky_relu(n: Op) -> Flow:
    return unary(n, lambda x: R.nn.leakyrelu(x, float(n.option("alpha"))))


@converter("GELU")
def gelu(n: Op) -> Flow:
    return unary(n, R.nn.gelu_tanh if n.option("approximate") else R.nn.gelu)


@converter(*(kind for kind in _BINARY if kind not in _ORDERING))
def _of_two(n: Op) -> Flow:
    (x, y), is_planar = n.alike(0, 1)
    result = _BINARY[n.kind](x, y)
    return n.activated(result, is_planar) if "activation" in n.op.options else Flow(n.emit(result), is_planar)


@mover(*_ORDERING)
def _larger_or_smaller(n: Op) -> Flow:
    """Of quantised operands with one scale as well."""
    (x, y), is_planar = n.alike(0, 1)
    return Flow(n.emit(_BINARY[n.kind](x, y)), is_planar)


@converter("SQUARED_DIFFERENCE")
def squared_difference(n: Op) -> Flow:
    (x, y), is_planar = n.alike(0, 1)
    difference = n.emit(R.subtract(x, y))
    return Flow(n.emit(R.multiply(difference, difference)), is_planar)


@converter("ADD_N")
def add_n(n: Op) -> Flow:
    parts, is_planar = n.alike(*range(len(n)))
    total = parts[0]
    for part in parts[1:]:
        total = n.emit(R.add(total, part))
    return Flow(total, is_planar)


@converter("PRELU")
def prelu(n: Op) -> Flow:
    """max(x, 0) + slope * min(x, 0): finite in every lane, and slopes fold into no branch."""
    (x, slope), is_planar = n.alike(0, 1)
    low = R.multiply(slope, R.minimum(x, scalar_like(0, x)))
    return Flow(n.emit(R.add(R.nn.relu(x), low)), is_planar)


@mover("SELECT", "SELECT_V2")
def select(n: Op) -> Flow:
    """SELECT with a vector chooses whole rows."""
    if n.kind == "SELECT" and n.rank(0) < n.rank(1):
        condition = n.reshaped(n.expr(0), [*n.shape(0), *[1] * (n.rank(1) - n.rank(0))])
        return Flow(n.emit(R.where(condition, n.expr(1), n.expr(2))))
    (condition, x, y), is_planar = n.alike(0, 1, 2)
    return Flow(n.emit(R.where(condition, x, y)), is_planar)


@converter("MEAN", "SUM", "REDUCE_PROD")
def reduce(n: Op) -> Flow:
    return _reduced(n, {"MEAN": R.mean, "SUM": R.sum, "REDUCE_PROD": R.prod}[n.kind])


@mover("REDUCE_MAX", "REDUCE_MIN")
def reduce_to_extreme(n: Op) -> Flow:
    return _reduced(n, R.max if n.kind == "REDUCE_MAX" else R.min)


def reduced_axes(n: Op) -> list[int]:
    """Return the axes that operand 1 names, counted from the front."""
    return sorted({n.axis(a) for a in n.ints(1, "the axes")})


def _reduced(n: Op, function: Callable[..., Expr]) -> Flow:
    axes, keep = reduced_axes(n), bool(n.option("keep_dims"))
    if not axes:
        return Flow(n.expr())
    if n.is_planar() and (keep or axes == [1, 2]):  # [N, C] is the same in both layouts
        return Flow(n.emit(function(n.planar(), [TO_NHWC[a] for a in axes], keepdims=keep)), keep)
    return Flow(n.emit(function(n.expr(), axes, keepdims=keep)))


@mover("ARG_MAX", "ARG_MIN")
def position(n: Op) -> Flow:
    axis = n.axis(n.ints(1, "the axis")[0])
    found = (R.argmax if n.kind == "ARG_MAX" else R.argmin)(n.expr(), axis)
    return Flow(n.emit(R.astype(found, n.out().dtype)))


@converter("SOFTMAX")
def softmax(n: Op) -> Flow:
    """Along the last axis of exp(beta * x)."""
    beta = float(n.option("beta"))
    x = n.expr() if beta == 1 else R.multiply(n.expr(), scalar_like(beta, n.expr()))
    return Flow(n.emit(R.nn.softmax(x, -1)))


@converter("LOG_SOFTMAX")
def log_softmax(n: Op) -> Flow:
    return Flow(n.emit(R.nn.log_softmax(n.expr(), -1)))


@converter("L2_NORMALIZATION")
def l2_normalise(n: Op) -> Flow:
    """x / sqrt(max(sum of squares along the last axis, 1e-6))."""
    x = n.expr()
    total = R.sum(R.multiply(x, x), [-1], keepdims=True)
    return n.activated(R.divide(x, R.sqrt(R.maximum(total, scalar_like(1e-6, x)))))


@converter("LOCAL_RESPONSE_NORMALIZATION")
def local_response(n: Op) -> Flow:
    """x * (bias + alpha * sum of squares of 2 * radius + 1 channels) ** -beta."""
    x, radius, channels = n.expr(), n.option("radius"), n.shape()[-1]
    if not 0 <= radius < channels:
        raise Refused(f"radius {radius} does not fit {channels} channels")
    squares = n.emit(R.nn.pad(R.multiply(x, x), [0] * (2 * n.rank() - 2) + [radius, radius]))
    total = None
    for i in range(2 * radius + 1):
        part = R.strided_slice(squares, [n.rank() - 1], [i], [i + channels])
        total = n.emit(part if total is None else R.add(total, part))
    scale = R.add(R.multiply(total, scalar_like(n.option("alpha"), x)), scalar_like(n.option("bias"), x))
    return Flow(n.emit(R.multiply(x, R.power(scale, scalar_like(-n.option("beta"), x)))))


@converter("BATCH_MATMUL")
def batch_matmul(n: Op) -> Flow:
    x, y = (_adjoint(n, i) if n.option(flag) else n.expr(i) for i, flag in enumerate(("adj_x", "adj_y")))
    return Flow(n.emit(R.matmul(x, y)))


def _adjoint(n: Op, index: int) -> Expr:
    order = list(range(n.rank(index)))
    order[-2:] = order[:-3:-1]
    return R.permute_dims(n.expr(index), order)


@converter("CUMSUM")
def cumsum(n: Op) -> Flow:
    axis = n.axis(n.ints(1, "the axis")[0])
    x = R.flip(n.expr(), axis) if n.option("reverse") else n.expr()
    total = R.cumsum(x, axis, exclusive=bool(n.option("exclusive")))
    return Flow(n.emit(R.flip(total, axis) if n.option("reverse") else total))
