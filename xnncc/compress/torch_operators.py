"""Relax operators in torch, for training: ``f(call, *operands) -> tensor``, on tensors of the module's own shapes.

Differentiation is torch's. An operator that is not here, or answers None for the attributes of a call, ends the part of
the network that is trained. Importing this file imports torch: ``torch_network.py`` does so inside functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from tvm.ir import Call

from .torch_recurrent import recurrent
from .torch_windows import avg_pool, conv, conv_transpose, max_pool

Operator = Callable[..., Any]


def _ints(values: Any) -> list[int]:
    return [int(value) for value in values]


def _plain(function: Callable[..., Any]) -> Operator:
    return lambda call, *operands: function(*operands)


def _divide(a: Tensor, b: Tensor) -> Tensor:
    return a / b if a.is_floating_point() else torch.div(a, b, rounding_mode="trunc")


def _where(condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return torch.where(condition, a, b)


def _reduction(function: Callable[..., Tensor]) -> Operator:
    def run(call: Call, x: Tensor) -> Tensor:
        axes = list(range(x.ndim)) if call.attrs.axis is None else _ints(call.attrs.axis)
        return function(x, dim=axes, keepdim=bool(call.attrs.keepdims))

    return run


def _axis(function: Callable[..., Tensor]) -> Operator:
    return lambda call, x: function(x, dim=int(call.attrs.axis))


def _layer_norm(call: Call, x: Tensor, gamma: Tensor, beta: Tensor) -> Tensor | None:
    axes = sorted(axis % x.ndim for axis in _ints(call.attrs.axes))
    if axes != list(range(x.ndim - len(axes), x.ndim)):
        return None
    return F.layer_norm(x, [x.shape[axis] for axis in axes], gamma, beta, float(call.attrs.epsilon))


def _prelu(call: Call, x: Tensor, alpha: Tensor) -> Tensor:
    shape = [1] * x.ndim
    shape[int(call.attrs.axis)] = -1
    return torch.where(x > 0, x, x * alpha.reshape(shape))


def _squeeze(call: Call, x: Tensor) -> Tensor:
    axes = [i for i, n in enumerate(x.shape) if n == 1] if call.attrs.axis is None else _ints(call.attrs.axis)
    return x.reshape([n for i, n in enumerate(x.shape) if i not in {axis % x.ndim for axis in axes}])


def _expand_dims(call: Call, x: Tensor) -> Tensor:
    rank = x.ndim + len(call.attrs.axis)
    for axis in sorted(axis % rank for axis in _ints(call.attrs.axis)):
        x = x.unsqueeze(axis)
    return x


def _transpose(call: Call, x: Tensor) -> Tensor:
    return x.permute(list(range(x.ndim))[::-1] if call.attrs.axes is None else _ints(call.attrs.axes))


def _split(call: Call, x: Tensor) -> tuple[Tensor, ...]:
    where, axis = call.attrs.indices_or_sections, int(call.attrs.axis)
    if hasattr(where, "__iter__"):
        return tuple(torch.tensor_split(x, _ints(where), dim=axis))
    return tuple(torch.tensor_split(x, int(where), dim=axis))


def _strided_slice(call: Call, x: Tensor, axes: Any, begin: Any, end: Any, strides: Any = None) -> Tensor | None:
    cut = [slice(None)] * x.ndim
    for axis, first, stop, step in zip(axes, begin, end, strides if strides else [1] * len(axes), strict=True):
        if int(step) < 1:
            return None
        cut[int(axis)] = slice(int(first), int(stop), int(step))
    return x[tuple(cut)]


_PADS = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}  # Relax's modes as numpy calls them


def _pad(call: Call, x: Tensor) -> Tensor | None:
    widths, mode = _ints(call.attrs.pad_width), call.attrs.pad_mode
    if mode == "constant":
        backwards = [w for axis in reversed(range(x.ndim)) for w in widths[2 * axis : 2 * axis + 2]]  # torch's order
        return F.pad(x, backwards, value=float(call.attrs.pad_value))
    for axis in range(x.ndim):
        low, high = widths[2 * axis : 2 * axis + 2]
        if low or high:
            rows = np.pad(np.arange(x.shape[axis]), (low, high), mode=_PADS[mode])  # type: ignore[call-overload]
            x = x.index_select(axis, torch.from_numpy(rows))
    return x


def _take(call: Call, x: Tensor, indices: Tensor) -> Tensor | None:
    if call.attrs.axis is None:
        return None
    axis = int(call.attrs.axis) % x.ndim
    wrapped = torch.where(indices < 0, indices + x.shape[axis], indices).long()
    if wrapped.ndim == 0:
        return x.select(axis, int(wrapped)) if not _is_batched(wrapped) else None
    taken = torch.index_select(x, axis, wrapped.reshape(-1))
    return taken.reshape(*x.shape[:axis], *wrapped.shape, *x.shape[axis + 1 :])


def _is_batched(x: Tensor) -> bool:
    return bool(torch._C._functorch.is_batchedtensor(x))  # an index that differs by sample is no plain number


def _resize2d(call: Call, x: Tensor, size: tuple[int, ...]) -> Tensor | None:
    a = call.attrs
    kind = (a.method, a.coordinate_transformation_mode, a.layout)
    if kind == ("nearest_neighbor", "asymmetric", "NCHW") and a.rounding_method == "floor":
        return F.interpolate(x, size=list(size), mode="nearest")
    if kind == ("linear", "half_pixel", "NCHW"):
        return F.interpolate(x, size=list(size), mode="bilinear", align_corners=False)
    if kind == ("linear", "align_corners", "NCHW"):
        return F.interpolate(x, size=list(size), mode="bilinear", align_corners=True)
    return None


def _matmul(a: Tensor, b: Tensor) -> Tensor:
    return torch.matmul(a, b)


_PLAIN: dict[str, Callable[..., Any]] = {
    "abs": torch.abs, "acos": torch.acos, "asin": torch.asin, "atan": torch.atan, "ceil": torch.ceil, "cos": torch.cos,
    "cosh": torch.cosh, "erf": torch.erf, "exp": torch.exp, "floor": torch.floor, "log": torch.log,
    "negative": torch.neg, "sign": torch.sign, "sin": torch.sin, "sinh": torch.sinh, "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt, "tan": torch.tan, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "round": torch.round,
    "trunc": torch.trunc, "square": torch.square, "logical_not": torch.logical_not, "isnan": torch.isnan,
    "add": torch.add, "subtract": torch.sub, "multiply": torch.mul, "divide": _divide, "power": torch.pow,
    "floor_divide": torch.floor_divide, "floor_mod": torch.remainder, "mod": torch.fmod, "maximum": torch.maximum,
    "minimum": torch.minimum, "equal": torch.eq, "not_equal": torch.ne, "less": torch.lt, "less_equal": torch.le,
    "greater": torch.gt, "greater_equal": torch.ge, "logical_and": torch.logical_and, "logical_or": torch.logical_or,
    "where": _where, "matmul": _matmul, "nn.relu": torch.relu, "reshape": torch.reshape,
    "broadcast_to": torch.broadcast_to,
}  # fmt: skip

OPERATORS: dict[str, Operator] = {
    **{name: _plain(function) for name, function in _PLAIN.items()},
    "sum": _reduction(torch.sum), "mean": _reduction(torch.mean), "max": _reduction(torch.amax),
    "min": _reduction(torch.amin), "nn.softmax": _axis(torch.softmax), "nn.log_softmax": _axis(torch.log_softmax),
    "nn.layer_norm": _layer_norm, "nn.prelu": _prelu, "squeeze": _squeeze, "expand_dims": _expand_dims,
    "nn.leakyrelu": lambda call, x: F.leaky_relu(x, float(call.attrs.alpha)),
    "clip": lambda call, x, low, high: x.clamp(low, high),
    "permute_dims": _transpose, "split": _split, "strided_slice": _strided_slice, "nn.pad": _pad, "take": _take,
    "concat": lambda call, parts: torch.cat(parts, dim=int(call.attrs.axis)),
    "flip": lambda call, x: torch.flip(x, [int(call.attrs.axis)]),
    "tile": lambda call, x: torch.tile(x, _ints(call.attrs.repeats)),
    "cumsum": lambda call, x: None if call.attrs.exclusive else torch.cumsum(x, dim=int(call.attrs.axis)),
    "image.resize2d": _resize2d, "call_pure_packed": recurrent,
    "astype": lambda call, x: x.to(getattr(torch, str(call.attrs.dtype))),
    "nn.conv1d": conv, "nn.conv2d": conv, "nn.conv3d": conv, "nn.conv2d_transpose": conv_transpose,
    "nn.max_pool2d": max_pool, "nn.avg_pool2d": avg_pool,
}  # fmt: skip
