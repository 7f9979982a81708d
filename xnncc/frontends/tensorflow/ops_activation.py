"""Activation functions, each as the plain Relax operators that schedules know."""

from __future__ import annotations

from tvm import relax
from tvm.relax import Expr

from .. import activations
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


@converter("Elu")
def elu(n: Node) -> Expr:
    return activations.elu(n.expr(0))


@converter("Selu")
def selu(n: Node) -> Expr:
    return activations.selu(n.expr(0))


@converter("Sigmoid")
def sigmoid(n: Node) -> Expr:
    return R.sigmoid(n.expr(0))


@converter("Softplus")
def softplus(n: Node) -> Expr:
    return activations.softplus(n.expr(0))


@converter("Softsign")
def softsign(n: Node) -> Expr:
    return activations.softsign(n.expr(0))


@converter("Softmax")
def softmax(n: Node) -> Expr:
    return R.nn.softmax(n.expr(0), n.rank() - 1)


@converter("LogSoftmax")
def log_softmax(n: Node) -> Expr:
    return R.nn.log_softmax(n.expr(0), n.rank() - 1)
