"""Products with an activation in the same node, as onnxruntime's optimiser writes them (domain com.microsoft)."""

from __future__ import annotations

from tvm import relax
from tvm.relax import Expr

from ..refused import Refused
from .node import Node
from .ops_conv import conv
from .ops_matmul import gemm
from .registry import converter

R = relax.op
_ACTIVATIONS = ("Relu", "LeakyRelu", "Tanh", "Sigmoid", "Clip", "HardSigmoid")


@converter("com.microsoft.FusedConv")
def fused_conv(n: Node) -> Expr:
    """Conv, plus input 3 of the result's shape where it is given, then the activation."""
    y = n.emit(conv(n))
    y = n.emit(R.add(y, n.expr(3))) if n.has(3) else y
    return _activated(n, y, [float(value) for value in n.attr("activation_params") or ()])


@converter("com.microsoft.FusedGemm")
def fused_gemm(n: Node) -> Expr:
    """Gemm, then the activation with parameters alpha and beta."""
    y = n.emit(gemm(n))
    return _activated(n, y, [float(n.attr(f"activation_{name}", 0.0)) for name in ("alpha", "beta")])


def _activated(n: Node, y: Expr, parameters: list[float]) -> Expr:
    n.ignore("activation_gamma")  # of none of these
    kind = n.attr("activation", "")
    if not kind:
        return y
    kind = n.choice("activation", "", _ACTIVATIONS)
    first, second = [*parameters, 0.0, 0.0][:2]
    match kind:
        case "Relu":
            return R.nn.relu(y)
        case "LeakyRelu":
            return R.nn.leakyrelu(y, first)
        case "Tanh":
            return R.tanh(y)
        case "Sigmoid":
            return R.sigmoid(y)
        case "Clip":
            return R.clip(y, first, second)
    return R.clip(R.add(R.multiply(y, n.scalar(first)), n.scalar(second)), 0.0, 1.0)


@converter("com.microsoft.FusedMatMul", "com.microsoft.TransposeMatMul")
def fused_matmul(n: Node) -> Expr:
    """alpha * A' B', where the last two axes of either may be exchanged first."""
    if n.attr("transBatchA", 0) or n.attr("transBatchB", 0):
        raise Refused("transBatchA and transBatchB are not supported", "Export without onnxruntime's fusions.")
    a, b = (_turned(n, index, bool(n.attr(name, 0))) for index, name in enumerate(("transA", "transB")))
    y = R.matmul(a, b)
    alpha = float(n.attr("alpha", 1.0))
    return y if alpha == 1.0 else R.multiply(y, n.scalar(alpha))


def _turned(n: Node, index: int, is_turned: bool) -> Expr:
    """Return an input with its last two axes exchanged."""
    rank = n.rank(index)
    if not is_turned or rank < 2:
        return n.expr(index)
    axes = [*range(rank - 2), rank - 1, rank - 2]
    if n.is_const(index):
        return n.build.derived(n.const(index, "matrix"), tuple(axes), lambda matrix: matrix.transpose(axes))
    return n.emit(R.permute_dims(n.expr(index), axes))
