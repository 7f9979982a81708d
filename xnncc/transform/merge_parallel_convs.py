"""merge_parallel_convs: convolutions that read the same input and meet again become one.

    Given:                                                     Result:
      concat((f(conv2d(x, v) + a), f(conv2d(x, w) + b)), 1)      f(conv2d(x, [v; w]) + [a; b])
      add(conv2d(x, v) + a, conv2d(x, w) + b)                    conv2d(x, v + w) + (a + b)

Shapes: x [N, C, H, W]; v, w [O, C, KH, KW] of one kernel size, stride, pad and dilation, in one group; f: nothing or
the same operator on each element. Either all or none have a bias. Neighbours in a concatenation are merged, the others
stay; products (matmul) likewise.
Why: x is read once, and the copy or addition is gone. Convolutions whose results go apart are left alone: taking the
merged result to pieces again costs the copy that one reading of x saves.
Runs after: fold_affine, which leaves one bias behind each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.ir import Call
from tvm_ffi import structural_equal

from .flat_network import FlatNetwork, with_operand
from .linear_branches import Branch, added, axis_of, branch_ending


def merge_parallel_convs(mod: tvm.IRModule) -> tvm.IRModule:
    """Return ``mod`` with every such group as one operator; the same module when there is none."""
    net, is_changed = FlatNetwork(mod), False
    for var in list(net.values):
        call = net.values[var]
        name = getattr(getattr(call, "op", None), "name", "") if isinstance(call, Call) else ""
        if name == "relax.concat" and isinstance(call.args[0], relax.Tuple):
            is_changed |= _merge_fields(net, var, call)
        elif name == "relax.add":
            is_changed |= _merge_terms(net, var, call)
    return net.module() if is_changed else mod


def _merge_fields(net: FlatNetwork, var: relax.Var, call: Call) -> bool:
    """Merge neighbours among the fields of a concatenation."""
    axis = int(call.attrs.axis) % var.ty.ndim
    groups: list[list[tuple[Any, Branch | None]]] = []
    for field in call.args[0].fields:
        branch = _branch(net, field)
        before = groups[-1][-1][1] if groups else None
        joins = branch is not None and before is not None and _is_alike(net, before, branch)
        if joins and branch is not None and axis == axis_of(net.values[branch.linear], var.ty.ndim):
            groups[-1].append((field, branch))
        else:
            groups.append([(field, branch)])
    if len(groups) == len(call.args[0].fields):
        return False
    for group in groups:
        some = [branch for _, branch in group if branch is not None]
        if len(group) > 1:
            weights = np.concatenate([one.weights for one in some], axis=0 if some[0].weights.ndim == 4 else 1)
            _join(net, some, weights, np.concatenate([one.bias for one in some]))
    ends = [_end(group) for group in groups]
    net.replace(var, net.values[ends[0]] if len(ends) == 1 else relax.op.concat(ends, axis))
    return True


def _end(group: list[tuple[Any, Branch | None]]) -> Any:
    field, branch = group[0]
    return branch.end if branch is not None and len(group) > 1 else field


def _merge_terms(net: FlatNetwork, var: relax.Var, call: Call) -> bool:
    """Merge the two terms of an addition."""
    terms = [_branch(net, arg) for arg in call.args]
    some = [one for one in terms if one is not None and one.unary is None]
    if len(some) < 2 or not _is_alike(net, *some) or some[0].weights.shape != some[1].weights.shape:
        return False
    _join(net, some, some[0].weights + some[1].weights, some[0].bias + some[1].bias)
    net.replace(var, net.values[some[0].end])
    return True


def _branch(net: FlatNetwork, end: Any) -> Branch | None:
    return branch_ending(net, end) if isinstance(end, relax.Var) and net.uses[end] == 1 else None


def _is_alike(net: FlatNetwork, a: Branch, b: Branch) -> bool:
    """Whether two branches are the same operators on the same input, but for constants and number of outputs."""
    one, other = net.values[a.linear], net.values[b.linear]
    kernels = [w.shape[1:] if w.ndim == 4 else w.shape[:1] for w in (a.weights, b.weights)]
    ends = [net.values[branch.unary].op.name if branch.unary is not None else "" for branch in (a, b)]
    attributes = one.attrs is other.attrs or structural_equal(one.attrs, other.attrs)
    shifts = (a.add is None) == (b.add is None)  # a branch without a bias has no variable to add one
    same = (
        shifts
        and one.op.name == other.op.name
        and one.args[0].same_as(other.args[0])
        and not a.linear.same_as(b.linear)
    )
    return same and attributes and kernels[0] == kernels[1] and ends[0] == ends[1]


def _join(net: FlatNetwork, group: Sequence[Branch], weights: np.ndarray, bias: np.ndarray) -> None:
    """Let the first branch of ``group`` compute what all do."""
    first = group[0]
    call = net.values[first.linear]
    net.replace(first.linear, with_operand(call, 1, weights))
    if first.add is not None:
        rank = first.linear.ty.ndim
        net.replace(first.add, added(first.linear, bias, rank, axis_of(call, rank)))
