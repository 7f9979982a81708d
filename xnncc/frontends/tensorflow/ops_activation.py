"""Activation functions, each as the plain Relax operators that schedules know."""

from __future__ import annotations

from tvm import relax
from tvm.relax import Expr

from .node import Node
from .registry import converter

R = relax.op


@converter("Relu")
def relu(n: Node) -> Expr:
    return R.nn.relu(n.expr(0))


@converter("Relu6")
def relu6(n: Node) -> Expr:
    return R.clip(n.expr(0), 0.0, 6.0)


@converter("LeakyRelu")
def leaky_relu(n: Node) -> Expr:
    return R.nn.leakyrelu(n.expr(0), float(n.attr("alpha", 0.2)))


def _elu(n: Node, alpha: float) -> Expr:
    """Return x where positive, alpha * (exp(x) - 1) elsewhere; exp never sees a positive x."""
    below = R.subtract(R.exp(R.minimum(n.expr(0), n.scalar(0))), n.scalar(1))
    return R.where(R.greater(n.expr(0), n.scalar(0)), n.expr(0), R.multiply(below, n.scalar(alpha)))


@converter("Elu")
def elu(n: Node) -> Expr:
    return _elu(n, 1.0)


@converter("Selu")
def selu(n: Node) -> Expr:
    """Klambauer et al. 2017, "Self-Normalizing Neural Networks": its two constants."""
    return R.multiply(_elu(n, 1.6732632423543772), n.scalar(1.0507009873554805))


@converter("Sigmoid")
def sigmoid(n: Node) -> Expr:
    return R.sigmoid(n.expr(0))


@converter("Softplus")
def softplus(n: Node) -> Expr:
    """Return log(1 + exp(x)) as max(x, 0) + log(1 + exp(-|x|)), which does not overflow."""
    x = n.expr(0)
    return R.add(R.nn.relu(x), R.log(R.add(R.exp(R.negative(R.abs(x))), n.scalar(1))))


@converter("Softsign")
def softsign(n: Node) -> Expr:
    return R.divide(n.expr(0), R.add(R.abs(n.expr(0)), n.scalar(1)))


@converter("Softmax")
def softmax(n: Node) -> Expr:
    return R.nn.softmax(n.expr(0), n.rank() - 1)


@converter("LogSoftmax")
def log_softmax(n: Node) -> Expr:
    return R.nn.log_softmax(n.expr(0), n.rank() - 1)
