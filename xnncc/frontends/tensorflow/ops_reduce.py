"""Reductions over constant axes, positions of extremes, running sums."""

from __future__ import annotations

from collections.abc import Callable

from tvm import relax
from tvm.relax import Expr

from .node import Node
from .registry import converter

R = relax.op


def _reduced(reduce: Callable[..., Expr]) -> Callable[[Node], Expr]:
    def convert(n: Node) -> Expr:
        axes = sorted({n.axis(a) for a in n.ints(1, "axes")})
        if not axes or n.rank() == 0:
            return n.expr(0)
        return reduce(n.expr(0), axes, keepdims=bool(n.attr("keep_dims", False)))

    return convert


for _kind, _reduce in (("Sum", R.sum), ("Mean", R.mean), ("Prod", R.prod), ("Max", R.max), ("Min", R.min)):
    converter(_kind)(_reduced(_reduce))


def _logical(reduce: Callable[..., Expr]) -> Callable[[Node], Expr]:
    """Booleans are reduced as bytes."""

    def bytes_reduced(x: Expr, axes: list[int], keepdims: bool) -> Expr:
        return R.astype(reduce(R.astype(x, "uint8"), axes, keepdims=keepdims), "bool")

    return _reduced(bytes_reduced)


converter("All")(_logical(R.min))
converter("Any")(_logical(R.max))


@converter("ArgMax", "ArgMin")
def arg_extreme(n: Node) -> Expr:
    """The first extreme along an axis."""
    function = R.argmax if n.operation.kind == "ArgMax" else R.argmin
    found = function(n.expr(0), n.axis(n.integer(1, "axis")), keepdims=False)
    to = n.attr("output_type", "int64")
    return found if to == "int64" else R.astype(found, to)


@converter("Cumsum")
def cumsum(n: Node) -> Expr:
    """Running sum along a constant axis; ``reverse`` runs from the end, ``exclusive`` leaves the element itself out."""
    axis, exclusive = n.axis(n.integer(1, "axis")), bool(n.attr("exclusive", False))
    if n.attr("reverse", False):
        return R.flip(R.cumsum(R.flip(n.expr(0), axis), axis, exclusive=exclusive), axis)
    return R.cumsum(n.expr(0), axis, exclusive=exclusive)
