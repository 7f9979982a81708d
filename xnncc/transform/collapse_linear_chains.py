"""collapse_linear_chains: two linear operators with nothing between them become one, where that is less work.

    Given:                                     Result:
      y = matmul(x, v) + a                       z = matmul(x, v w) + (a w + b)
      z = matmul(y, w) + b
      y = nn.conv2d(x, v) + a    (1x1)           z = nn.conv2d(x, w * v) + (w a + b)
      z = nn.conv2d(y, w) + b

One of the two convolutions is 1x1 without stride and pad, both are in one group; a only where the second does not pad:
in the margin it would meet zeros. Weights are joined in float64. Left alone when either multiply-adds or weights would
grow (a bottleneck is there on purpose), and when something else reads y.
Runs after: fold_affine, which leaves one bias behind each.
"""

from __future__ import annotations

from math import prod

import numpy as np
import tvm
from tvm import relax
from tvm.ir import Call

from .flat_network import FlatNetwork, with_operand
from .linear_branches import Branch, added, axis_of, branch_ending, is_pointwise

Array = np.ndarray


def collapse_linear_chains(mod: tvm.IRModule) -> tvm.IRModule:
    """Return ``mod`` with every such pair as one operator; the same module when there is none."""
    net, is_changed = FlatNetwork(mod), False
    for var in list(net.values):
        while (pair := _pair(net, var)) is not None:
            _join(net, *pair)
            is_changed = True
    return net.module() if is_changed else mod


def _pair(net: FlatNetwork, var: relax.Var) -> tuple[Branch, Branch, Call, Array] | None:
    """Return the branches that end before ``var``'s operator and with it, the joined operator and its bias."""
    last = branch_ending(net, var) if var in net.values else None
    if last is None or last.unary is not None or (last.add is None and _is_added_to(net, last)):
        return None
    second = net.values[last.linear]
    middle = second.args[0]
    first = branch_ending(net, middle) if net.uses[middle] == 1 else None
    if first is None or first.unary is not None or net.values[first.linear].op.name != second.op.name:
        return None
    call, weights = net.values[first.linear], None
    has_pad = second.op.name == "relax.nn.conv2d" and any(map(int, second.attrs.padding))
    if second.op.name == "relax.matmul":
        weights = first.weights.astype(np.float64) @ last.weights
        bias = first.bias.astype(np.float64) @ last.weights
    else:
        bias = last.weights.sum(axis=(2, 3), dtype=np.float64) @ first.bias
        if is_pointwise(second, last.weights):
            weights = np.einsum("om,mchw->ochw", last.weights[:, :, 0, 0].astype(np.float64), first.weights)
        elif is_pointwise(call, first.weights) and not (has_pad and first.bias.any()):
            weights = np.einsum("omhw,mc->ochw", last.weights.astype(np.float64), first.weights[:, :, 0, 0])
    if weights is None or (bias.any() and last.add is None):
        return None
    rest = second if is_pointwise(call, first.weights) else call
    joined = Call(rest.op, [call.args[0], *rest.args[1:]], rest.attrs, rest.ty_args)
    work = [_macs(net, branch.linear, branch.weights) for branch in (first, last)]
    pays = _macs(net, last.linear, weights) <= sum(work) and weights.size <= first.weights.size + last.weights.size
    return (first, last, with_operand(joined, 1, weights), bias + last.bias) if pays else None


def _is_added_to(net: FlatNetwork, last: Branch) -> bool:
    """Whether an addition of a constant follows, which is looked at in its turn."""
    if net.uses[last.linear] != 1:
        return False
    found = (branch_ending(net, var) for var, value in net.values.items() if _reads(value, last.linear))
    return any(one is not None and one.add is not None for one in found)


def _reads(value: object, var: relax.Var) -> bool:
    return isinstance(value, Call) and any(isinstance(arg, relax.Var) and arg.same_as(var) for arg in value.args)


def _join(net: FlatNetwork, first: Branch, last: Branch, call: Call, bias: Array) -> None:
    rank = last.linear.ty.ndim
    axis = axis_of(call, rank)
    net.replace(last.linear, call)
    if last.add is not None:
        net.replace(last.add, added(last.linear, bias, rank, axis))


def _macs(net: FlatNetwork, var: relax.Var, weights: Array) -> int:
    """Return the multiply-adds of a linear operator whose result is ``var``."""
    each = weights.shape[0] if weights.ndim == 2 else prod(weights.shape[1:])
    return prod(int(dim) for dim in var.ty.shape.values) * each
