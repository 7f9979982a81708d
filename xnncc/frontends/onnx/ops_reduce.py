"""Reductions over axes, given as attribute or (opset 13, 18) as constant input."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from tvm import relax
from tvm.relax import Expr

from .node import Node
from .registry import converter

R = relax.op
_Reduce = Callable[..., Expr]


def _axes(n: Node) -> list[int] | None:
    """Return the axes; None when there is nothing to reduce (``noop_with_empty_axes``)."""
    given = n.ints(1, "axes") if n.has(1) else n.attr("axes")
    noop = n.attr("noop_with_empty_axes", 0)
    if not given:
        return None if noop else list(range(n.rank()))
    return sorted({n.axis(a) for a in given})


def _reduced(reduce: _Reduce, before: Callable[[Expr], Expr], after: Callable[[Expr], Expr]) -> Callable[[Node], Expr]:
    def convert(n: Node) -> Expr:
        axes, keep = _axes(n), bool(n.attr("keepdims", 1))
        x = before(n.emit(n.expr(0)))
        return after(x if axes is None or n.rank() == 0 else reduce(x, axes, keepdims=keep))

    return convert


def _same(x: Expr) -> Expr:
    return x


def _square(x: Expr) -> Expr:
    return R.multiply(x, x)


for _name, _reduce, _before, _after in (
    ("ReduceSum", R.sum, _same, _same),
    ("ReduceMean", R.mean, _same, _same),
    ("ReduceProd", R.prod, _same, _same),
    ("ReduceL1", R.sum, R.abs, _same),
    ("ReduceL2", R.sum, _square, R.sqrt),
    ("ReduceSumSquare", R.sum, _square, _same),
    ("ReduceLogSum", R.sum, _same, R.log),
):
    converter(_name)(_reduced(_reduce, _before, _after))


def _extreme(reduce: _Reduce, reduce_bool: _Reduce) -> Callable[[Node], Expr]:
    """Booleans (opset 20) are reduced as bytes."""

    def convert(n: Node) -> Expr:
        if n.dtype() != "bool":
            return _with_infinities(n, reduce, _reduced(reduce, _same, _same)(n))
        as_byte = _reduced(reduce_bool, lambda x: R.astype(x, "uint8"), _same)(n)
        return R.astype(as_byte, "bool")

    return convert


def _with_infinities(n: Node, reduce: _Reduce, y: Expr) -> Expr:
    """TVM starts a maximum from the lowest finite number, so that one of nothing but -inf would come out as that.

    Where the result is that number, halves tell which it was: the half of -inf still comes out as the lowest number.
    Global pools over [N, C, H, W] stay a plain maximum: our kernels know it.
    """
    axes = _axes(n)
    if "float" not in n.dtype() or axes is None or n.rank() == 0 or (n.rank() == 4 and axes == [2, 3]):
        return y
    y = n.emit(y)
    limit = n.scalar(float(np.finfo(n.dtype()).min if reduce is R.max else np.finfo(n.dtype()).max))
    infinity = n.scalar(-np.inf if reduce is R.max else np.inf)
    keep = bool(n.attr("keepdims", 1))
    half = reduce(R.multiply(n.expr(0), n.scalar(0.5)), axes, keepdims=keep)
    return R.where(R.logical_and(R.equal(y, limit), R.equal(half, limit)), infinity, y)


converter("ReduceMax")(_extreme(R.max, R.max))
converter("ReduceMin")(_extreme(R.min, R.min))


@converter("ReduceLogSumExp")
def reduce_log_sum_exp(n: Node) -> Expr:
    """log(sum(exp(x))) with the largest x taken out first, so that exp cannot overflow."""
    axes, keep = _axes(n), bool(n.attr("keepdims", 1))
    x = n.emit(n.expr(0))
    if axes is None:
        return x
    largest = n.emit(R.max(x, axes, keepdims=True))
    log_sum = R.log(R.sum(R.exp(R.subtract(x, largest)), axes, keepdims=True))
    y = R.add(log_sum, largest)
    if keep:
        return y
    return n.reshaped(y, [size for i, size in enumerate(n.shape()) if i not in axes])
