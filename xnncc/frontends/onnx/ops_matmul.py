"""Matrix products."""

from __future__ import annotations

import numpy as np
from tvm import relax
from tvm.relax import Expr

from .node import Node, Refused
from .registry import converter

R = relax.op


@converter("MatMul")
def matmul(n: Node) -> Expr:
    """As numpy: vectors become matrices, leading dimensions broadcast."""
    left, right = n.shape(0), n.shape(1)
    if not left or not right or left[-1] != right[-2 if len(right) > 1 else 0]:
        raise Refused(f"matrices {list(left)} and {list(right)} do not fit")
    return R.matmul(n.expr(0), n.expr(1))


@converter("Gemm")
def gemm(n: Node) -> Expr:
    """alpha * A' * B' + beta * C; factors and transpositions of constants are computed here."""
    n.ignore("broadcast")  # up to opset 6: C broadcasts now in any case
    alpha, beta = n.attr("alpha", 1.0), n.attr("beta", 1.0)
    a = R.permute_dims(n.expr(0), [1, 0]) if n.attr("transA", 0) else n.expr(0)
    if n.is_const(1):
        turned = bool(n.attr("transB", 0))

        def factor(weight: np.ndarray) -> np.ndarray:
            return ((weight.T if turned else weight) * np.asarray(alpha, weight.dtype)).astype(weight.dtype)

        plain = alpha == 1.0 and not turned
        b = n.expr(1) if plain else n.build.derived(n.const(1, "B"), ("gemm", alpha, turned), factor)
        y = R.matmul(a, b)
    else:
        b = R.permute_dims(n.expr(1), [1, 0]) if n.attr("transB", 0) else n.expr(1)
        y = R.matmul(a, b)
        y = y if alpha == 1.0 else R.multiply(y, n.scalar(alpha))
    if not n.has(2) or beta == 0:
        return y
    if beta == 1.0:
        return R.add(y, n.expr(2))
    if n.is_const(2):
        return R.add(y, n.build.derived(n.const(2, "C"), ("gemm", beta), lambda c: (c * beta).astype(c.dtype)))
    return R.add(y, R.multiply(n.expr(2), n.scalar(beta)))


@converter("Einsum")
def einsum(n: Node) -> Expr:
    return R.einsum(tuple(n.exprs()), n.attr("equation", "").replace(" ", ""))
