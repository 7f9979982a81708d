"""fold_affine: constant factors and shifts after a convolution or matrix product go into its weights and one bias.

    Given:                                         Result:
      y = nn.conv2d(x, w)                            y = nn.conv2d(x, w * k)
      z = multiply(y, k); a = add(z, b)              a = add(y, b)
      y = matmul(x, w); z = add(y, b); a = add(z, c)   a = add(y, b + c)

k, b and c are constants that vary along the output channels only; w is a constant that nothing else reads. Subtractions
and divisions count as the shifts and factors that they are. Batch normalisation arrives as these from every importer.
Why: what compression rounds must be what the network multiplies with, and a folded factor needs no bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import tvm
from tvm.ir import Call
from tvm.relax import Var

from .flat_network import FlatNetwork, constant_of, with_operand

# operator -> axis of the outputs in its weights and in its result; both negative ones count from the end
_LINEAR = {"relax.nn.conv2d": (0, 1), "relax.nn.conv2d_transpose": (1, 1), "relax.matmul": (-1, -1)}


@dataclass(frozen=True)
class _Affine:
    """``var`` is ``linear``, or that plus ``bias``; nothing else reads either."""

    linear: Var
    weights: np.ndarray
    bias: np.ndarray | None = None
    add: Var | None = None  # the variable of the addition


def fold_affine(mod: tvm.IRModule) -> tvm.IRModule:
    """Return ``mod`` with every such factor and shift folded; leaves alone what varies along other axes."""
    net = FlatNetwork(mod)
    found: dict[Var, _Affine] = {}
    for var in list(net.values):
        call = net.values[var]
        name = getattr(getattr(call, "op", None), "name", "") if isinstance(call, Call) else ""
        if name in _LINEAR:
            weights = constant_of(call.args[1])
            is_plain = name == "relax.matmul" or (str(call.attrs.data_layout) == "NCHW" and _is_grouped_plainly(call))
            if weights is not None and weights.ndim >= 2 and is_plain:
                found[var] = _Affine(var, weights)
        elif name in ("relax.add", "relax.subtract", "relax.multiply", "relax.divide"):
            _fold(net, var, call, name, found)
    return net.module()


def _is_grouped_plainly(call: Call) -> bool:
    """A transposed convolution in groups has its outputs on two axes of the weights."""
    return "transpose" not in call.op.name or int(call.attrs.groups) == 1


def _fold(net: FlatNetwork, var: Var, call: Call, name: str, found: dict[Var, _Affine]) -> None:
    """Fold one operation with a constant, if its other operand is affine and read here alone."""
    at = 0 if isinstance(call.args[0], Var) else 1
    source, other = call.args[at], constant_of(call.args[1 - at])
    affine = found.get(source) if isinstance(source, Var) else None
    if (
        affine is None
        or other is None
        or net.uses[source] != 1
        or (at == 1 and name in ("relax.subtract", "relax.divide"))
    ):
        return
    linear = net.values[affine.linear]
    axes = _LINEAR[linear.op.name]
    vector = _along(other, affine.linear.ty.ndim, axes[1], affine.weights.shape[axes[0]])
    if vector is None or _dims(var) != _dims(affine.linear):
        return
    if name in ("relax.multiply", "relax.divide"):
        with np.errstate(divide="ignore"):
            factor = vector if name == "relax.multiply" else 1 / vector
        _scale(net, var, affine, factor, found)
    else:
        _shift(net, var, affine, vector if name == "relax.add" else -vector, found)


def _dims(var: Var) -> list[int]:
    return [int(dim) for dim in var.ty.shape.values]


def _along(array: np.ndarray, rank: int, axis: int, outputs: int) -> np.ndarray | None:
    """Return ``array``, broadcast against a result of ``rank``, as a vector [outputs] along ``axis``; None if it varies
    along another axis."""
    if array.ndim > rank:
        return None
    shape = (1,) * (rank - array.ndim) + array.shape
    if any(size != 1 for index, size in enumerate(shape) if index != axis % rank):
        return None
    return np.broadcast_to(array.reshape(-1), (outputs,)).astype(np.float64)


def _scale(net: FlatNetwork, var: Var, affine: _Affine, factor: np.ndarray, found: dict[Var, _Affine]) -> None:
    if not np.isfinite(factor).all():
        return
    call = net.values[affine.linear]
    axis = _LINEAR[call.op.name][0] % affine.weights.ndim
    shape = [-1 if index == axis else 1 for index in range(affine.weights.ndim)]
    weights = (affine.weights * factor.reshape(shape)).astype(np.float32)
    net.replace(affine.linear, with_operand(call, 1, weights))
    if affine.add is None or affine.bias is None:
        net.drop(var, affine.linear)
        found[affine.linear] = _Affine(affine.linear, weights)
        return
    bias = (affine.bias * factor).astype(np.float32)
    _set_bias(net, affine.add, affine.linear, bias)
    net.drop(var, affine.add)
    found[affine.add] = _Affine(affine.linear, weights, bias, affine.add)


def _shift(net: FlatNetwork, var: Var, affine: _Affine, shift: np.ndarray, found: dict[Var, _Affine]) -> None:
    if affine.add is None or affine.bias is None:
        bias = shift.astype(np.float32)
        _set_bias(net, var, affine.linear, bias)
        found[var] = _Affine(affine.linear, affine.weights, bias, var)
        return
    bias = (affine.bias + shift).astype(np.float32)
    _set_bias(net, affine.add, affine.linear, bias)
    net.drop(var, affine.add)
    found[affine.add] = _Affine(affine.linear, affine.weights, bias, affine.add)


def _set_bias(net: FlatNetwork, var: Var, linear: Var, bias: np.ndarray) -> None:
    """Let ``var`` be ``linear`` plus ``bias`` [O], shaped along the axis of the outputs."""
    from tvm import relax

    call = net.values[linear]
    rank = linear.ty.ndim
    axis = _LINEAR[call.op.name][1] % rank
    shape = [-1 if index == axis else 1 for index in range(rank)]
    net.replace(var, relax.op.add(linear, relax.const(bias.reshape(shape), "float32")))
