"""What each Relax operator does to the labels of channels: ``rule(labels, op) -> axes of the result``.

An operator without a rule fixes every axis of its operands and its result: its channels are then never cut, which is
always right. Weights and other constants are operands like any other; their labels say which of their slices go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm.ir import Call

from ..ir.recurrent import NAME, Recurrent
from .channel_labels import Array, Axes, Labels, broadcast, fixed, reshape

Rule = Callable[[Labels, "Op"], "Axes | list[Axes] | None"]


@dataclass(frozen=True)
class Op:
    """One call: the axes of its tensor operands by place, plain operands as they are, the result's shape."""

    name: str  # of the tensor that it computes
    call: Call
    operands: tuple[Any, ...]
    shape: tuple[int, ...]


def _ints(values: Any) -> list[int]:
    return [int(value) for value in values]


def _elementwise(labels: Labels, op: Op) -> Axes:
    return broadcast(labels, [axes for axes in op.operands if isinstance(axes, list)], op.shape)


def _convolution(labels: Labels, op: Op) -> Axes | None:
    """x [N, C, ...], w [O, C/G, ...]. With groups position i of all of them goes together, or groups of one channel."""
    x, w = op.operands[:2]
    groups, channels, outs = int(op.call.attrs.groups), len(x[1]), len(w[0])
    if op.call.attrs.data_layout[:2] != "NC" or op.call.attrs.kernel_layout[:2] != "OI":
        return None
    if groups == 1 or len(w[1]) > 1:  # a depthwise layer has no neurons of its own
        labels.made(w[0], op.name)
    return [x[0], _joined(labels, x[1], w[0], w[1], groups, channels, outs), *fixed(op.shape[2:])]


def _transposed(labels: Labels, op: Op) -> Axes | None:
    """x [N, C, H, W], w [C, O/G, KH, KW]."""
    x, w = op.operands[:2]
    groups = int(op.call.attrs.groups)
    if op.call.attrs.data_layout != "NCHW" or op.call.attrs.kernel_layout != "IOHW":
        return None
    if groups == 1:
        labels.tie(x[1], w[0])
        return [x[0], labels.made(w[1], op.name), *fixed(op.shape[2:])]
    if len(w[1]) > 1:
        return None
    labels.tie(x[1], w[0])  # depthwise
    return [x[0], x[1], *fixed(op.shape[2:])]


def _joined(labels: Labels, x: Array, outs: Array, ins: Array, groups: int, channels: int, count: int) -> Array:
    """Tie a convolution's channels to its weight's axes; returns the labels of the result's channels."""
    if groups == 1:
        labels.tie(x, ins)
        return outs
    if len(ins) == 1:  # depthwise: each group is a channel and goes with its outputs
        labels.tie(np.repeat(x, count // groups), outs)
        return outs
    inner, outer = x.reshape(groups, channels // groups), outs.reshape(groups, count // groups)
    labels.tie(inner, np.broadcast_to(ins, inner.shape))
    labels.tie(outer, np.broadcast_to(outer[:1], outer.shape))
    return outs


def _matmul(labels: Labels, op: Op) -> Axes | None:
    a, b = op.operands[:2]
    if len(a) < 2 or len(b) < 2:
        return None
    labels.tie(a[-1], b[-2])
    if len(b) == 2:
        labels.made(b[-1], op.name)
    lead = broadcast(labels, [a[:-2], b[:-2]], op.shape[:-2])
    return [*lead, a[-2], b[-1]]


def _pool(labels: Labels, op: Op) -> Axes | None:
    x = op.operands[0]
    return [x[0], x[1], *fixed(op.shape[2:])] if op.call.attrs.layout[:2] == "NC" else None


def _mean(labels: Labels, op: Op) -> Axes:
    """Axes that are averaged over are fixed: a mean of fewer channels is another number."""
    return _reduced(labels, op, "a mean or an extreme is taken over it")


def _sum(labels: Labels, op: Op) -> Axes:
    """A sum over channels simply loses the terms of those that are cut."""
    return _reduced(labels, op, "")


def _reduced(labels: Labels, op: Op, reason: str) -> Axes:
    x = op.operands[0]
    axes = set(range(len(x))) if op.call.attrs.axis is None else {a % len(x) for a in _ints(op.call.attrs.axis)}
    if reason:
        for axis in axes:
            labels.freeze(x[axis], reason)
    if op.call.attrs.keepdims:
        return [np.zeros(1, np.int64) if i in axes else x[i] for i in range(len(x))]
    return [x[i] for i in range(len(x)) if i not in axes]


def _along(reason: str) -> Rule:
    """An operator that mixes the positions of the axis in its attribute ``axis``."""

    def rule(labels: Labels, op: Op) -> Axes:
        x = op.operands[0]
        labels.freeze(x[int(op.call.attrs.axis)], reason)
        return list(x)

    return rule


def _layer_norm(labels: Labels, op: Op) -> Axes:
    x, gamma, beta = op.operands[:3]
    for axis in _ints(op.call.attrs.axes):
        labels.freeze(x[axis], "a layer norm runs over it")
    for axes in (gamma, beta):
        for axis in axes:
            labels.freeze(axis, "a layer norm runs over it")
    return list(x)


def _prelu(labels: Labels, op: Op) -> Axes:
    x, alpha = op.operands[:2]
    if len(alpha[0]) == len(x[int(op.call.attrs.axis)]):
        labels.tie(x[int(op.call.attrs.axis)], alpha[0])
    return list(x)


def _reshape(labels: Labels, op: Op) -> Axes:
    return reshape(labels, op.operands[0], op.shape)


def _broadcast_to(labels: Labels, op: Op) -> Axes:
    return broadcast(labels, [op.operands[0]], op.shape)


def _transpose(labels: Labels, op: Op) -> Axes:
    x, axes = op.operands[0], op.call.attrs.axes
    return list(x)[::-1] if axes is None else [x[axis] for axis in _ints(axes)]


def _concat(labels: Labels, op: Op) -> Axes:
    parts: list[Axes] = list(op.operands[0])
    axis = int(op.call.attrs.axis) % len(op.shape)
    result = list(parts[0])
    for part in parts[1:]:
        for i in range(len(op.shape)):
            if i != axis:
                labels.tie(result[i], part[i])
    result[axis] = np.concatenate([part[axis] for part in parts])
    return result


def _split(labels: Labels, op: Op) -> list[Axes]:
    x, where, axis = op.operands[0], op.call.attrs.indices_or_sections, int(op.call.attrs.axis)
    parts = np.split(x[axis], _ints(where) if hasattr(where, "__iter__") else int(where))
    at = axis % len(x)
    return [[part if i == at else x[i] for i in range(len(x))] for part in parts]


def _strided_slice(labels: Labels, op: Op) -> Axes:
    x, axes, begin, end = op.operands[:4]
    strides: Sequence[Any] = op.operands[4] if len(op.operands) > 4 else [1] * len(axes)
    result = list(x)
    for axis, first, stop, step in zip(axes, begin, end, strides, strict=True):
        axis = int(axis) % len(x)
        if int(step) != 1:
            labels.freeze(x[axis], "a slice takes every n-th position of it")
        result[axis] = x[axis][slice(int(first), int(stop), int(step))]
    return result


def _take(labels: Labels, op: Op) -> Axes | None:
    x = op.operands[0]
    if op.call.attrs.axis is None:
        return None
    axis, indices = int(op.call.attrs.axis) % len(x), op.operands[1]
    if len(x) == 2 and axis == 0:
        labels.made(x[1], op.name)  # a table of embeddings
    labels.freeze(x[axis], "positions are taken out of it by index")
    inner = fixed(op.shape[axis : axis + len(indices)]) if isinstance(indices, list) else []
    return [*x[:axis], *inner, *x[axis + 1 :]]


def _pad(labels: Labels, op: Op) -> Axes:
    x, widths = op.operands[0], np.array(_ints(op.call.attrs.pad_width)).reshape(-1, 2)
    result = []
    for axis, (low, high), size in zip(x, widths, op.shape, strict=True):
        if low or high:
            labels.freeze(axis, "it is padded")
            result.append(np.zeros(size, np.int64))
        else:
            result.append(axis)
    return result


def _resize(labels: Labels, op: Op) -> Axes | None:
    x = op.operands[0]
    return [x[0], x[1], *fixed(op.shape[2:])] if op.call.attrs.layout == "NCHW" else None


def _recurrent(labels: Labels, op: Op) -> Axes | list[Axes] | None:
    """Unit h of all gates and directions goes together, with its place in the state."""
    function, *tensors, text = op.operands
    if getattr(function, "global_symbol", "") != NAME:
        return None
    spec = Recurrent.from_json(text.value)
    own: dict[str, Axes] = dict(zip(spec.operands, tensors, strict=True))
    units = labels.made(own["r"][2], op.name)
    labels.tie(own["x"][2], own["w"][2])
    for name, copies in (("w", spec.gates), ("r", spec.gates), ("b", 2 * spec.gates), ("p", 3)):
        if name in own:
            labels.tie(own[name][1], np.tile(units, copies))
    for name in ("h0", "c0"):
        if name in own:
            labels.tie(own[name][2], units)
    for name in ("w", "r", "b", "p", "h0", "c0"):  # directions stay
        if name in own:
            labels.freeze(own[name][0], "directions of a recurrent layer")
    steps, batch = own["x"][0], own["x"][1]
    ways = np.zeros(len(spec.reverse), np.int64)
    results = [[steps, ways, batch, units] if name == "y" else [ways, batch, units] for name in spec.outputs]
    return results if len(results) > 1 else results[0]


_ELEMENTWISE = (
    "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "exp", "floor", "log", "negative", "sign", "sin",
    "sinh", "sqrt", "rsqrt", "tan", "tanh", "sigmoid", "round", "trunc", "square", "add", "subtract", "multiply",
    "divide", "power", "maximum", "minimum", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
    "logical_and", "logical_or", "logical_not", "where", "nn.relu", "nn.leakyrelu", "clip", "astype", "isnan",
)  # fmt: skip

RULES: dict[str, Rule] = {
    **dict.fromkeys(_ELEMENTWISE, _elementwise),
    "nn.conv1d": _convolution, "nn.conv2d": _convolution, "nn.conv3d": _convolution, "nn.conv2d_transpose": _transposed,
    "matmul": _matmul, "nn.max_pool2d": _pool, "nn.avg_pool2d": _pool, "mean": _mean, "max": _mean, "min": _mean,
    "sum": _sum, "nn.softmax": _along("a softmax runs over it"), "nn.log_softmax": _along("a softmax runs over it"),
    "cumsum": _along("a running sum goes over it"), "flip": _along("it is reversed"), "nn.layer_norm": _layer_norm,
    "nn.prelu": _prelu, "reshape": _reshape, "squeeze": _reshape, "expand_dims": _reshape,
    "broadcast_to": _broadcast_to, "permute_dims": _transpose, "concat": _concat, "split": _split,
    "strided_slice": _strided_slice, "take": _take, "nn.pad": _pad, "image.resize2d": _resize,
    "call_pure_packed": _recurrent,
}  # fmt: skip
