"""Relax operators in numpy, forward and backward: what the calibrating methods run a network with.

Each operator is ``f(call, *operands) -> (result, vjp)``. ``vjp(gradient) -> one gradient for each operand`` is the
vector-Jacobian product; where an operand has no gradient (shapes, indices) it gives None. An operator answers None when
it has no numpy form for the attributes of this call. Sums run in the dtype of the operands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tvm.ir import Call

from .numpy_windows import avg_pool, conv, conv_transpose, max_pool

Array = np.ndarray
Vjp = Callable[[Any], Sequence[Any]]
Operator = Callable[..., "tuple[Any, Vjp] | None"]


def _ints(values: Any) -> list[int]:
    return [int(value) for value in values]


def unbroadcast(gradient: Array, shape: tuple[int, ...]) -> Array:
    """Return ``gradient`` summed over the axes along which an operand of ``shape`` was repeated."""
    if gradient.shape == shape:
        return gradient
    extra = gradient.ndim - len(shape)
    axes = (*range(extra), *(i + extra for i, size in enumerate(shape) if size == 1 and gradient.shape[i + extra] != 1))
    return gradient.sum(axis=axes, keepdims=True).reshape(shape)


def _unary(function: Callable[[Array], Array], slope: Callable[[Array, Array], Array]) -> Operator:
    """``slope(x, y)`` is dy/dx."""

    def run(call: Call, x: Array) -> tuple[Array, Vjp]:
        y = function(x)
        return y, lambda g: (g * slope(x, y),)

    return run


def _binary(
    function: Callable[[Array, Array], Array],
    by_a: Callable[[Array, Array, Array, Array], Array],
    by_b: Callable[[Array, Array, Array, Array], Array],
) -> Operator:
    """``by_a(g, a, b, y)`` is the gradient of a before it is summed to a's shape; likewise ``by_b``."""

    def run(call: Call, a: Array, b: Array) -> tuple[Array, Vjp] | None:
        if a.dtype.kind != "f":
            return None
        y = function(a, b)
        return y, lambda g: (unbroadcast(by_a(g, a, b, y), a.shape), unbroadcast(by_b(g, a, b, y), b.shape))

    return run


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _erf(x: Array) -> Array:
    return np.vectorize(math.erf, otypes=[x.dtype])(x)


def _clip(call: Call, x: Array, low: float, high: float) -> tuple[Array, Vjp]:
    inside = (x >= low) & (x <= high)
    return np.clip(x, x.dtype.type(low), x.dtype.type(high)), lambda g: (g * inside, None, None)


def _leaky_relu(call: Call, x: Array) -> tuple[Array, Vjp]:
    slope = np.where(x > 0, x.dtype.type(1), x.dtype.type(call.attrs.alpha))
    return x * slope, lambda g: (g * slope,)


def _prelu(call: Call, x: Array, alpha: Array) -> tuple[Array, Vjp]:
    shape = [1] * x.ndim
    shape[int(call.attrs.axis)] = -1
    slope, axes = alpha.reshape(shape), tuple(i for i in range(x.ndim) if i != int(call.attrs.axis) % x.ndim)
    y = np.where(x > 0, x, x * slope)

    def vjp(g: Array) -> Sequence[Any]:
        return np.where(x > 0, g, g * slope), np.where(x > 0, 0, g * x).sum(axis=axes).reshape(alpha.shape)

    return y, vjp


def _softmax(call: Call, x: Array) -> tuple[Array, Vjp]:
    axis = int(call.attrs.axis)
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    y = e / e.sum(axis=axis, keepdims=True)
    return y, lambda g: (y * (g - (g * y).sum(axis=axis, keepdims=True)),)


def _log_softmax(call: Call, x: Array) -> tuple[Array, Vjp]:
    axis = int(call.attrs.axis)
    shifted = x - x.max(axis=axis, keepdims=True)
    y = shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))
    return y, lambda g: (g - np.exp(y) * g.sum(axis=axis, keepdims=True),)


def _layer_norm(call: Call, x: Array, gamma: Array, beta: Array) -> tuple[Array, Vjp] | None:
    axes = tuple(axis % x.ndim for axis in _ints(call.attrs.axes))
    if axes != tuple(range(x.ndim - len(axes), x.ndim)):
        return None
    lead = tuple(range(x.ndim - len(axes)))
    centred = x - x.mean(axis=axes, keepdims=True)
    scale = 1 / np.sqrt((centred * centred).mean(axis=axes, keepdims=True) + x.dtype.type(call.attrs.epsilon))
    unit = centred * scale

    def vjp(g: Array) -> Sequence[Any]:
        inner = g * gamma
        mean, along = inner.mean(axis=axes, keepdims=True), (inner * unit).mean(axis=axes, keepdims=True)
        return scale * (inner - mean - unit * along), (g * unit).sum(axis=lead), g.sum(axis=lead)

    return unit * gamma + beta, vjp


def _reduction(function: Callable[..., Array], is_mean: bool) -> Operator:
    def run(call: Call, x: Array) -> tuple[Array, Vjp]:
        axes = tuple(range(x.ndim)) if call.attrs.axis is None else tuple(a % x.ndim for a in _ints(call.attrs.axis))
        kept = tuple(1 if i in axes else size for i, size in enumerate(x.shape))
        share = x.dtype.type(1 / math.prod(x.shape[a] for a in axes) if is_mean else 1)
        y = function(x, axis=axes, keepdims=bool(call.attrs.keepdims))
        return y, lambda g: (np.broadcast_to(g.reshape(kept) * share, x.shape),)

    return run


def _extreme(function: Callable[..., Array]) -> Operator:
    """Maximum or minimum over axes; equal elements share the gradient."""

    def run(call: Call, x: Array) -> tuple[Array, Vjp]:
        axes = tuple(range(x.ndim)) if call.attrs.axis is None else tuple(_ints(call.attrs.axis))
        best = function(x, axis=axes, keepdims=True)
        hits = x == best
        y = best if call.attrs.keepdims else np.squeeze(best, axes)
        return y, lambda g: (hits * (g.reshape(best.shape) / hits.sum(axis=axes, keepdims=True)),)

    return run


def _matmul(call: Call, a: Array, b: Array) -> tuple[Array, Vjp] | None:
    if a.ndim < 2 or b.ndim < 2:
        return None

    def vjp(g: Array) -> Sequence[Any]:
        by_a = np.matmul(g, np.swapaxes(b, -1, -2))
        if b.ndim == 2:  # one weight for all: a single GEMM instead of one for each batch
            return by_a, a.reshape(-1, a.shape[-1]).T @ g.reshape(-1, g.shape[-1])
        return unbroadcast(by_a, a.shape), unbroadcast(np.matmul(np.swapaxes(a, -1, -2), g), b.shape)

    return np.matmul(a, b), vjp


def _reshaped(function: Callable[..., Array]) -> Operator:
    """An operator that only renames axes: the gradient gets the operand's shape back."""

    def run(call: Call, x: Array, *rest: Any) -> tuple[Array, Vjp]:
        return function(call, x, *rest), lambda g: (g.reshape(x.shape), *[None] * len(rest))

    return run


def _broadcast_to(call: Call, x: Array, shape: tuple[int, ...]) -> tuple[Array, Vjp]:
    return np.broadcast_to(x, shape), lambda g: (unbroadcast(g, x.shape), None)


def _transpose(call: Call, x: Array) -> tuple[Array, Vjp]:
    axes = list(range(x.ndim))[::-1] if call.attrs.axes is None else [a % x.ndim for a in _ints(call.attrs.axes)]
    back = np.argsort(axes)
    return x.transpose(axes), lambda g: (g.transpose(back),)


def _concat(call: Call, parts: tuple[Array, ...]) -> tuple[Array, Vjp]:
    axis = int(call.attrs.axis)
    cuts = np.cumsum([part.shape[axis] for part in parts])[:-1]
    return np.concatenate(parts, axis), lambda g: (tuple(np.split(g, cuts, axis)),)


def _split(call: Call, x: Array) -> tuple[tuple[Array, ...], Vjp]:
    where, axis = call.attrs.indices_or_sections, int(call.attrs.axis)
    parts = tuple(np.split(x, int(where) if not hasattr(where, "__iter__") else _ints(where), axis))

    def vjp(gradients: list[Any]) -> Sequence[Any]:
        return (
            np.concatenate([np.zeros_like(p) if g is None else g for p, g in zip(parts, gradients, strict=True)], axis),
        )

    return parts, vjp


def _indexed(x: Array, index: Any, operands: int) -> tuple[Array, Vjp]:
    """A view of distinct elements of x."""

    def vjp(g: Array) -> Sequence[Any]:
        whole = np.zeros_like(x)
        whole[index] = g
        return whole, *[None] * (operands - 1)

    return x[index], vjp


def _strided_slice(call: Call, x: Array, axes: Any, begin: Any, end: Any, strides: Any = None) -> tuple[Array, Vjp]:
    cut = [slice(None)] * x.ndim
    for axis, first, stop, step in zip(axes, begin, end, strides if strides else [1] * len(axes), strict=True):
        cut[int(axis)] = slice(int(first), int(stop), int(step))
    return _indexed(x, tuple(cut), 4 if strides is None else 5)


def _flip(call: Call, x: Array) -> tuple[Array, Vjp]:
    axis = int(call.attrs.axis)
    return np.flip(x, axis), lambda g: (np.flip(g, axis),)


def _pad(call: Call, x: Array) -> tuple[Array, Vjp] | None:
    widths = np.array(_ints(call.attrs.pad_width)).reshape(-1, 2)
    if call.attrs.pad_mode != "constant" or widths.min() < 0:
        return None
    inner = tuple(slice(low, low + size) for (low, _), size in zip(widths, x.shape, strict=True))
    return np.pad(x, widths, constant_values=float(call.attrs.pad_value)), lambda g: (g[inner],)


def _take(call: Call, x: Array, indices: Array) -> tuple[Array, Vjp] | None:
    if call.attrs.axis is None or np.ndim(indices) > 1:
        return None
    axis, rows = int(call.attrs.axis) % x.ndim, np.asarray(indices) % x.shape[int(call.attrs.axis)]

    def vjp(g: Array) -> Sequence[Any]:
        whole = np.zeros_like(x)
        np.add.at(np.moveaxis(whole, axis, 0), rows, np.moveaxis(g, axis, 0) if rows.ndim else g)
        return whole, None

    return np.take(x, rows, axis=axis), vjp


def _resize2d(call: Call, x: Array, size: tuple[int, ...]) -> tuple[Array, Vjp] | None:
    """Nearest neighbour by a whole factor."""
    a, (_, _, rows, columns) = call.attrs, x.shape
    kind = (a.method, a.coordinate_transformation_mode, a.rounding_method, a.layout)
    up, across = size[0] // rows, size[1] // columns
    if kind != ("nearest_neighbor", "asymmetric", "floor", "NCHW") or size != (rows * up, columns * across):
        return None

    def vjp(g: Array) -> Sequence[Any]:
        return g.reshape(*x.shape[:2], rows, up, columns, across).sum(axis=(3, 5)), None

    return x.repeat(up, axis=2).repeat(across, axis=3), vjp


def _where(call: Call, condition: Array, a: Array, b: Array) -> tuple[Array, Vjp]:
    def vjp(g: Array) -> Sequence[Any]:
        return None, unbroadcast(np.where(condition, g, 0), a.shape), unbroadcast(np.where(condition, 0, g), b.shape)

    return np.where(condition, a, b), vjp


def _constant(make: Callable[..., Array]) -> Operator:
    """No gradient at all: comparisons, rounding, shapes of ones."""

    def run(call: Call, *operands: Any) -> tuple[Array, Vjp]:
        return make(*operands), lambda g: [None] * len(operands)

    return run


_TWO_BY_ROOT_PI = 2 / math.sqrt(math.pi)

OPERATORS: dict[str, Operator] = {
    "add": _binary(np.add, lambda g, a, b, y: g, lambda g, a, b, y: g),
    "subtract": _binary(np.subtract, lambda g, a, b, y: g, lambda g, a, b, y: -g),
    "multiply": _binary(np.multiply, lambda g, a, b, y: g * b, lambda g, a, b, y: g * a),
    "divide": _binary(np.divide, lambda g, a, b, y: g / b, lambda g, a, b, y: -g * y / b),
    "power": _binary(
        np.power,
        lambda g, a, b, y: g * b * np.power(a, b - 1),
        lambda g, a, b, y: np.where(a > 0, g * y * np.log(a), 0),
    ),
    "maximum": _binary(np.maximum, lambda g, a, b, y: g * (a >= b), lambda g, a, b, y: g * (a < b)),
    "minimum": _binary(np.minimum, lambda g, a, b, y: g * (a <= b), lambda g, a, b, y: g * (a > b)),
    "abs": _unary(np.abs, lambda x, y: np.sign(x)),
    "negative": _unary(np.negative, lambda x, y: np.full_like(x, -1)),
    "exp": _unary(np.exp, lambda x, y: y),
    "log": _unary(np.log, lambda x, y: 1 / x),
    "sqrt": _unary(np.sqrt, lambda x, y: 0.5 / y),
    "rsqrt": _unary(lambda x: 1 / np.sqrt(x), lambda x, y: -0.5 * y / x),
    "square": _unary(np.square, lambda x, y: 2 * x),
    "sin": _unary(np.sin, lambda x, y: np.cos(x)),
    "cos": _unary(np.cos, lambda x, y: -np.sin(x)),
    "tanh": _unary(np.tanh, lambda x, y: 1 - y * y),
    "sigmoid": _unary(_sigmoid, lambda x, y: y * (1 - y)),
    "erf": _unary(_erf, lambda x, y: _TWO_BY_ROOT_PI * np.exp(-x * x)),
    "nn.relu": _unary(lambda x: np.maximum(x, 0), lambda x, y: x > 0),
    "nn.leakyrelu": _leaky_relu,
    "nn.prelu": _prelu,
    "clip": _clip,
    "nn.softmax": _softmax,
    "nn.log_softmax": _log_softmax,
    "nn.layer_norm": _layer_norm,
    "sum": _reduction(np.sum, is_mean=False),
    "mean": _reduction(np.mean, is_mean=True),
    "max": _extreme(np.max),
    "min": _extreme(np.min),
    "matmul": _matmul,
    "reshape": _reshaped(lambda call, x, shape: x.reshape(shape)),
    "squeeze": _reshaped(lambda call, x: np.squeeze(x, None if call.attrs.axis is None else tuple(call.attrs.axis))),
    "expand_dims": _reshaped(lambda call, x: np.expand_dims(x, tuple(_ints(call.attrs.axis)))),
    "broadcast_to": _broadcast_to,
    "permute_dims": _transpose,
    "concat": _concat,
    "split": _split,
    "strided_slice": _strided_slice,
    "flip": _flip,
    "take": _take,
    "where": _where,
    "nn.pad": _pad,
    "image.resize2d": _resize2d,
    "nn.conv2d": conv,
    "nn.conv2d_transpose": conv_transpose,
    "nn.max_pool2d": max_pool,
    "nn.avg_pool2d": avg_pool,
    "floor": _constant(np.floor),
    "ceil": _constant(np.ceil),
    "round": _constant(np.round),
    "sign": _constant(np.sign),
    "greater": _constant(np.greater),
    "greater_equal": _constant(np.greater_equal),
    "less": _constant(np.less),
    "less_equal": _constant(np.less_equal),
    "equal": _constant(np.equal),
    "not_equal": _constant(np.not_equal),
    "logical_and": _constant(np.logical_and),
    "logical_or": _constant(np.logical_or),
    "logical_not": _constant(np.logical_not),
}
