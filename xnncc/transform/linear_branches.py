"""A linear operator with constant weights and what follows it, found from its end: what exact rewrites join.

y = nn.conv2d(x, w) | matmul(x, w)        then, each at most once and in this order,
y = add(y, bias)                          a constant along the output channels
y = relu(y), sigmoid(y), ...              an operator on each element alone
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from tvm import relax
from tvm.ir import Call
from tvm.relax import Var

from .flat_network import FlatNetwork, constant_of

Array = np.ndarray
_ELEMENTWISE = frozenset(f"relax.nn.{name}" for name in ("relu", "relu6", "silu", "gelu", "softplus")) | {
    "relax.sigmoid",
    "relax.tanh",
}


@dataclass(frozen=True)
class Branch:
    """``linear``, ``add``, ``unary``: the variables, None where there is none; ``bias`` [O], zeros without ``add``."""

    linear: Var
    weights: Array  # [O, I, KH, KW] of a convolution in one group, [I, O] of a product
    bias: Array
    add: Var | None = None
    unary: Var | None = None

    @property
    def end(self) -> Var:
        """What the branch computes."""
        return self.steps[-1]

    @property
    def steps(self) -> list[Var]:
        """Its variables in order."""
        return [var for var in (self.linear, self.add, self.unary) if var is not None]


def branch_ending(net: FlatNetwork, var: Var) -> Branch | None:
    """Return the branch that ends in ``var`` and whose inner values nothing else reads, if there is one."""
    unary = add = None
    bias: Array | None = None
    call = _call(net, var)
    if call is not None and call.op.name in _ELEMENTWISE:
        unary, var = var, call.args[0]
        call = _call(net, var) if net.uses[var] == 1 else None
    if call is not None and call.op.name == "relax.add":
        at = 0 if isinstance(call.args[0], Var) else 1
        inner, other = call.args[at], constant_of(call.args[1 - at])
        if not isinstance(inner, Var) or other is None or net.uses[inner] != 1:
            return None
        add, var, call = var, inner, _call(net, inner)
        bias = vector_along(other, add.ty.ndim, axis_of(call, add.ty.ndim)) if call is not None else None
        if bias is None or _dims(add) != _dims(inner):
            return None
    weights = _weights(call)
    if call is None or weights is None or not isinstance(call.args[0], Var):
        return None
    outputs = weights.shape[0] if weights.ndim == 4 else weights.shape[1]
    if bias is not None and bias.size not in (1, outputs):
        return None
    bias = np.zeros(outputs, np.float32) if bias is None else np.broadcast_to(bias, (outputs,)).astype(np.float32)
    return Branch(var, weights, bias, add, unary)


def axis_of(call: Call, rank: int) -> int:
    """Return the axis of the output channels in the result, of ``rank`` dims, of a linear operator."""
    return 1 if call.op.name == "relax.nn.conv2d" else rank - 1


def is_pointwise(call: Call, weights: Array) -> bool:
    """Whether a linear operator mixes channels alone: a product, or a convolution of 1x1 without stride and pad."""
    if call.op.name != "relax.nn.conv2d":
        return True
    a = call.attrs
    return weights.shape[2:] == (1, 1) and {*map(int, a.strides)} == {1} and not any(map(int, a.padding))


def vector_along(array: Array, rank: int, axis: int) -> Array | None:
    """Return ``array``, broadcast against a result of ``rank``, as a vector along ``axis``; None if it varies along
    another axis."""
    if array.ndim > rank:
        return None
    shape = (1,) * (rank - array.ndim) + array.shape
    return array.reshape(-1) if all(size == 1 for i, size in enumerate(shape) if i != axis) else None


def added(value: Var, bias: Array, rank: int, axis: int) -> Call:
    """Return ``value`` plus ``bias`` [O] along ``axis``."""
    shape = [-1 if i == axis else 1 for i in range(rank)]
    return relax.op.add(value, relax.const(np.ascontiguousarray(bias.reshape(shape), np.float32), "float32"))


def _call(net: FlatNetwork, var: object) -> Call | None:
    value = net.values.get(var) if isinstance(var, Var) else None
    return value if isinstance(value, Call) and hasattr(value.op, "name") else None


def _weights(call: Call | None) -> Array | None:
    name = call.op.name if call is not None else ""
    if call is None or name not in ("relax.nn.conv2d", "relax.matmul"):
        return None
    weights = constant_of(call.args[1])
    if weights is None or (name == "relax.matmul" and weights.ndim != 2):
        return None
    if name == "relax.nn.conv2d":
        a = call.attrs
        plain = str(a.data_layout) == "NCHW" and str(a.kernel_layout) == "OIHW" and int(a.groups) == 1
        return weights if plain and np.isfinite(weights).all() else None
    return weights if np.isfinite(weights).all() else None


def _dims(var: Var) -> list[int]:
    return [int(dim) for dim in var.ty.shape.values]
