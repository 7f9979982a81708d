"""What each Relax operator means, in numpy. A function gets the call (for attributes) and its operands.

It may return NotImplemented: then TVM's own lowering is compiled instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from tvm.ir import Call

from .evaluate_recurrent import recurrent
from .evaluate_windows import avg_pool, conv, conv_transpose, max_pool

Array = np.ndarray
Evaluator = Callable[..., Any]


def _plain(function: Callable[..., Any]) -> Evaluator:
    return lambda call, *operands: function(*operands)


def _erf(x: Array) -> Array:
    return np.vectorize(math.erf, otypes=[x.dtype])(x) if x.size else x


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _divide(a: Array, b: Array) -> Array:
    """Integers towards zero, as C does."""
    if a.dtype.kind == "f":
        return np.divide(a, b)
    return (np.abs(a) // np.abs(b)) * (np.sign(a) * np.sign(b))


def _ints(values: Any) -> list[int]:
    return [int(value) for value in values]


def _axes(call: Call) -> tuple[int, ...] | None:
    return None if call.attrs.axis is None else tuple(_ints(call.attrs.axis))


def _reduction(function: Callable[..., Array]) -> Evaluator:
    def run(call: Call, x: Array) -> Array:
        return function(x, axis=_axes(call), keepdims=bool(call.attrs.keepdims))

    return run


def _mean(x: Array, axis: tuple[int, ...] | None, keepdims: bool) -> Array:
    return x.mean(axis=axis, keepdims=keepdims, dtype="float64")


def _sum(x: Array, axis: tuple[int, ...] | None, keepdims: bool) -> Array:
    return x.sum(axis=axis, keepdims=keepdims, dtype="float64" if x.dtype.kind == "f" else None)


def _position(function: Callable[..., Array]) -> Evaluator:
    def run(call: Call, x: Array) -> Array:
        axis = None if call.attrs.axis is None else int(call.attrs.axis)
        return function(x, axis=axis, keepdims=bool(call.attrs.keepdims))

    return run


def _softmax(call: Call, x: Array) -> Array:
    e = np.exp(x - x.max(axis=int(call.attrs.axis), keepdims=True))
    return e / e.sum(axis=int(call.attrs.axis), keepdims=True)


def _log_softmax(call: Call, x: Array) -> Array:
    shifted = x - x.max(axis=int(call.attrs.axis), keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=int(call.attrs.axis), keepdims=True))


def _layer_norm(call: Call, x: Array, gamma: Array, beta: Array) -> Array:
    axes = tuple(axis % x.ndim for axis in _ints(call.attrs.axes))
    if axes != tuple(range(x.ndim - len(axes), x.ndim)):
        return NotImplemented
    wide = x.astype("float64")
    centred = wide - wide.mean(axis=axes, keepdims=True)
    variance = (centred * centred).mean(axis=axes, keepdims=True)
    return centred / np.sqrt(variance + float(call.attrs.epsilon)) * gamma + beta


def _leaky_relu(call: Call, x: Array) -> Array:
    return np.where(x > 0, x, x * np.asarray(call.attrs.alpha, x.dtype))


def _clip(call: Call, x: Array, low: float, high: float) -> Array:
    return np.clip(x, np.asarray(low, x.dtype), np.asarray(high, x.dtype))


def _full(call: Call, shape: tuple[int, ...], value: Array) -> Array:
    return np.full(shape, value)


def _pad(call: Call, x: Array) -> Array:
    widths = np.array(_ints(call.attrs.pad_width)).reshape(-1, 2)
    mode = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}[call.attrs.pad_mode]
    options = {"constant_values": float(call.attrs.pad_value)} if mode == "constant" else {}
    return np.pad(x, widths, mode, **options)  # type: ignore[call-overload]


def _transpose(call: Call, x: Array) -> Array:
    return np.transpose(x, None if call.attrs.axes is None else _ints(call.attrs.axes))


def _concat(call: Call, parts: tuple[Array, ...]) -> Array:
    return np.concatenate(parts, axis=int(call.attrs.axis))


def _split(call: Call, x: Array) -> tuple[Array, ...]:
    where = call.attrs.indices_or_sections
    where = int(where) if not hasattr(where, "__iter__") else _ints(where)
    return tuple(np.split(x, where, axis=int(call.attrs.axis)))


def _strided_slice(call: Call, x: Array, axes: Any, begin: Any, end: Any, strides: Any = None) -> Array:
    cut = [slice(None)] * x.ndim
    steps = strides if strides else [1] * len(axes)
    for axis, first, stop, step in zip(axes, begin, end, steps, strict=True):
        cut[int(axis)] = slice(int(first), int(stop), int(step))
    return x[tuple(cut)]


def _take(call: Call, x: Array, indices: Array) -> Array:
    axis = None if call.attrs.axis is None else int(call.attrs.axis)
    return np.take(x, indices, axis=axis, mode="clip" if call.attrs.mode == "clip" else "wrap")


def _gather_elements(call: Call, x: Array, indices: Array) -> Array:
    axis = int(call.attrs.axis) % x.ndim
    x = x[tuple(slice(None) if i == axis else slice(0, size) for i, size in enumerate(indices.shape))]
    return np.take_along_axis(x, indices, axis=axis)


def _cumsum(call: Call, x: Array) -> Array:
    total = np.cumsum(x, axis=int(call.attrs.axis), dtype=x.dtype)
    return total - x if call.attrs.exclusive else total


def _einsum(call: Call, operands: tuple[Array, ...]) -> Array:
    return np.einsum(call.attrs.subscripts, *operands)


def _resize2d(call: Call, x: Array, size: tuple[int, ...]) -> Array:
    a = call.attrs
    kind = (a.method, a.coordinate_transformation_mode, a.rounding_method, a.layout)
    if kind != ("nearest_neighbor", "asymmetric", "floor", "NCHW"):
        return NotImplemented
    rows, columns = (np.arange(out) * have // out for out, have in zip(size, x.shape[2:], strict=True))
    return x[:, :, rows][:, :, :, columns]


def _squeeze(call: Call, x: Array) -> Array:
    return np.squeeze(x, axis=_axes(call))


def _expand_dims(call: Call, x: Array) -> Array:
    return np.expand_dims(x, tuple(_ints(call.attrs.axis)))


_PLAIN: dict[str, Callable[..., Any]] = {
    "abs": np.abs, "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atan": np.arctan, "atanh": np.arctanh, "ceil": np.ceil, "cos": np.cos, "cosh": np.cosh, "erf": _erf,
    "exp": np.exp, "floor": np.floor, "isnan": np.isnan, "isinf": np.isinf, "log": np.log,
    "negative": np.negative, "logical_not": np.logical_not, "sign": np.sign, "sin": np.sin, "sinh": np.sinh,
    "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "tan": np.tan, "tanh": np.tanh, "sigmoid": _sigmoid,
    "round": np.round, "trunc": np.trunc, "square": np.square, "bitwise_not": np.invert,
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": _divide, "power": np.power,
    "floor_divide": np.floor_divide, "floor_mod": np.mod, "mod": np.fmod, "maximum": np.maximum,
    "minimum": np.minimum, "equal": np.equal, "not_equal": np.not_equal, "less": np.less,
    "less_equal": np.less_equal, "greater": np.greater, "greater_equal": np.greater_equal,
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "left_shift": np.left_shift, "right_shift": np.right_shift, "where": np.where, "matmul": np.matmul,
    "nn.relu": lambda x: np.maximum(x, 0), "reshape": np.reshape, "broadcast_to": np.broadcast_to,
    "astype": lambda x: x,  # the result is cast to the call's dtype in any case
}  # fmt: skip

EVALUATORS: dict[str, Evaluator] = {
    **{name: _plain(function) for name, function in _PLAIN.items()},
    "sum": _reduction(_sum), "mean": _reduction(_mean), "max": _reduction(np.max), "min": _reduction(np.min),
    "prod": _reduction(np.prod), "argmax": _position(np.argmax), "argmin": _position(np.argmin),
    "nn.softmax": _softmax, "nn.log_softmax": _log_softmax, "nn.layer_norm": _layer_norm,
    "nn.leakyrelu": _leaky_relu, "clip": _clip, "full": _full, "nn.pad": _pad, "permute_dims": _transpose,
    "zeros": lambda call, shape: np.zeros(shape), "ones": lambda call, shape: np.ones(shape),
    "concat": _concat, "split": _split, "strided_slice": _strided_slice, "take": _take,
    "gather_elements": _gather_elements, "cumsum": _cumsum, "einsum": _einsum, "image.resize2d": _resize2d,
    "squeeze": _squeeze, "expand_dims": _expand_dims,
    "tile": lambda call, x: np.tile(x, _ints(call.attrs.repeats)),
    "flip": lambda call, x: np.flip(x, int(call.attrs.axis)),
    "call_pure_packed": recurrent,
    "nn.conv2d": conv, "nn.conv3d": conv, "nn.conv2d_transpose": conv_transpose,
    "nn.max_pool2d": max_pool, "nn.max_pool3d": max_pool, "nn.avg_pool2d": avg_pool, "nn.avg_pool3d": avg_pool,
}  # fmt: skip
