"""drop_dead_branches: what is zero or constant whatever the input, and what only that needed.

    Given:                                      Result:
      y = nn.conv2d(x, 0), matmul(x, 0)           y = 0
      y = multiply(x, 0)                          y = 0
      y = relu(0), reshape(0), max_pool2d(0) ...  y = 0
      z = add(x, 0), subtract(x, 0)               who reads z reads x
      z = nn.conv2d(0, w), multiply(0, x)         z = 0

Constants and results that are zero everywhere; x and z of one shape. Operators that nothing reads any more go as well.
An output of the network is computed as before.
An input that is NaN or infinite comes out as 0 where it came out as NaN.
Why: pruning leaves convolutions without a weight that is not zero, exporters leave switched-off branches.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.ir import Call, GenericConst

from .flat_network import FlatNetwork, substituted, variables

# Operators that are zero when their first operand is, and those that are when either of the first two is.
_KEEP_ZERO = frozenset(
    f"relax.{name}" for name in ("reshape", "permute_dims", "squeeze", "expand_dims", "tanh", "abs")
) | {f"relax.nn.{name}" for name in ("relu", "silu", "gelu", "max_pool2d", "avg_pool2d", "adaptive_avg_pool2d")}
_PRODUCTS = frozenset(("relax.nn.conv2d", "relax.nn.conv2d_transpose", "relax.matmul", "relax.multiply"))


def drop_dead_branches(mod: tvm.IRModule) -> tvm.IRModule:
    """Return ``mod`` without dead branches; the same module when there is none."""
    net = FlatNetwork(mod)
    before = len(net.values)
    zeros: set[relax.Var] = set()
    for var in list(net.values):
        call = net.values[var]
        name = getattr(getattr(call, "op", None), "name", "") if isinstance(call, Call) else ""
        if (name in _KEEP_ZERO and _is_zero(call.args[0], zeros)) or (
            name in _PRODUCTS and any(_is_zero(arg, zeros) for arg in call.args[:2])
        ):
            zeros.add(var)
        elif name in ("relax.add", "relax.subtract"):
            _without(net, var, call, name, zeros)
    dead = {var for var in zeros if not any(var.same_as(out) for out in net.outputs)}
    for var, value in list(net.values.items()):
        if read := {one: _zeros(one) for one in variables(value) if one in dead}:
            net.replace(var, substituted(value, read))
    is_changed = dead or len(net.values) < before or any(not net.uses[var] for var in net.values)
    return net.module() if is_changed else mod


def _without(net: FlatNetwork, var: relax.Var, call: Call, name: str, zeros: set[relax.Var]) -> None:
    """Drop an addition or subtraction of zeros."""
    dead = [_is_zero(arg, zeros) for arg in call.args]
    if all(dead):
        zeros.add(var)
        return
    at = 0 if dead[1] else 1 if dead[0] and name == "relax.add" else None
    kept = call.args[at] if at is not None else None
    if not isinstance(kept, relax.Var) or not _same_type(kept, var):
        return
    if not any(var.same_as(out) for out in net.outputs):
        net.drop(var, kept)


def _is_zero(expr: Any, zeros: set[relax.Var]) -> bool:
    if isinstance(expr, GenericConst):
        return not expr.value.numpy().any()
    return isinstance(expr, relax.Var) and expr in zeros


def _zeros(var: relax.Var) -> relax.Expr:
    shape = [int(dim) for dim in var.ty.shape.values]
    return relax.const(np.zeros(shape, str(var.ty.dtype)), str(var.ty.dtype))


def _same_type(a: relax.Var, b: relax.Var) -> bool:
    dims = [[int(dim) for dim in var.ty.shape.values] for var in (a, b)]
    return dims[0] == dims[1] and str(a.ty.dtype) == str(b.ty.dtype)
