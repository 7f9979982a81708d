"""Matrix products."""

from __future__ import annotations

from tvm import relax
from tvm.relax import Expr

from .node import Node
from .registry import converter

R = relax.op


def _turned(n: Node, index: int, turn: bool) -> Expr:
    """Return input ``index``, its last two dimensions exchanged when asked; constants are turned at import."""
    if not turn:
        return n.expr(index)
    if n.is_const(index):
        return n.build.derived(n.const(index, "matrix"), "turned", lambda w: w.swapaxes(-1, -2))
    axes = list(range(n.rank(index)))
    return R.permute_dims(n.expr(index), [*axes[:-2], axes[-1], axes[-2]])


@converter("MatMul")
def mat_mul(n: Node) -> Expr:
    return R.matmul(_turned(n, 0, n.attr("transpose_a", False)), _turned(n, 1, n.attr("transpose_b", False)))


@converter("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def batch_mat_mul(n: Node) -> Expr:
    return R.matmul(_turned(n, 0, n.attr("adj_x", False)), _turned(n, 1, n.attr("adj_y", False)))


@converter("Einsum")
def einsum(n: Node) -> Expr:
    return R.einsum([n.expr(i) for i in range(len(n))], n.attr("equation", ""))
