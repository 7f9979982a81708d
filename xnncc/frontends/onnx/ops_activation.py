"""Activation functions, each as the plain Relax operators that schedules know."""

from __future__ import annotations

import math

import numpy as np
from tvm import relax
from tvm.relax import Expr

from .. import activations
from .node import Node, Refused
from .registry import converter

R = relax.op


@converter("Relu")
def relu(n: Node) -> Expr:
    return R.nn.relu(n.expr(0))


@converter("LeakyRelu")
def leaky_relu(n: Node) -> Expr:
    return R.nn.leakyrelu(n.expr(0), float(n.attr("alpha", 0.01)))


@converter("PRelu")
def prelu(n: Node) -> Expr:
    """x where positive, slope * x elsewhere; the slope broadcasts to x, up to opset 6 along the channels."""
    x, slope = n.emit(n.expr(0)), n.expr(1)
    if n.opset < 7 and n.rank(1) == 1 and n.rank() > 2:
        slope = n.emit(n.reshaped(slope, [*n.shape(1), *[1] * (n.rank() - 2)]))
    n.ignore("consumed_inputs")
    return R.where(R.less(x, n.scalar(0)), R.multiply(x, slope), x)


@converter("ThresholdedRelu")
def thresholded_relu(n: Node) -> Expr:
    x = n.expr(0)
    return R.where(R.greater(x, n.scalar(n.attr("alpha", 1.0))), x, n.scalar(0))


@converter("Elu")
def elu(n: Node) -> Expr:
    return activations.elu(n.expr(0), n.attr("alpha", 1.0))


@converter("Selu")
def selu(n: Node) -> Expr:
    alpha, gamma = n.attr("alpha", 1.67326319217681884765625), n.attr("gamma", 1.05070102214813232421875)
    return activations.selu(n.expr(0), alpha, gamma)


@converter("Celu")
def celu(n: Node) -> Expr:
    """Return max(0, x) + min(0, alpha * (exp(x / alpha) - 1))."""
    alpha = n.attr("alpha", 1.0)
    x = n.expr(0)
    grown = R.subtract(R.exp(R.multiply(R.minimum(x, n.scalar(0)), n.scalar(1 / alpha))), n.scalar(1))
    return R.add(R.nn.relu(x), R.minimum(R.multiply(grown, n.scalar(alpha)), n.scalar(0)))


@converter("HardSigmoid")
def hard_sigmoid(n: Node) -> Expr:
    return activations.hard_sigmoid(n.expr(0), n.attr("alpha", 0.2), n.attr("beta", 0.5))


@converter("HardSwish")
def hard_swish(n: Node) -> Expr:
    return activations.hard_swish(n.expr(0))


@converter("Softplus")
def softplus(n: Node) -> Expr:
    return activations.softplus(n.expr(0))


@converter("Softsign")
def softsign(n: Node) -> Expr:
    return activations.softsign(n.expr(0))


@converter("Mish")
def mish(n: Node) -> Expr:
    return activations.mish(n.expr(0))


@converter("Shrink")
def shrink(n: Node) -> Expr:
    bias, limit = n.attr("bias", 0.0), n.attr("lambd", 0.5)
    x, zero = n.expr(0), n.scalar(0)
    inner = R.where(R.greater(x, n.scalar(limit)), R.subtract(x, n.scalar(bias)), zero)
    return R.where(R.less(x, n.scalar(-limit)), R.add(x, n.scalar(bias)), inner)


def _erf_gelu(n: Node, x: Expr) -> Expr:
    half = R.multiply(x, n.scalar(0.5))
    return R.multiply(half, R.add(R.erf(R.multiply(x, n.scalar(math.sqrt(0.5)))), n.scalar(1)))


def _tanh_gelu(n: Node, x: Expr) -> Expr:
    cube = R.multiply(R.multiply(R.multiply(x, x), x), n.scalar(0.044715))
    inner = R.multiply(R.add(x, cube), n.scalar(math.sqrt(2 / math.pi)))
    return R.multiply(R.multiply(x, n.scalar(0.5)), R.add(R.tanh(inner), n.scalar(1)))


@converter("Gelu", "com.microsoft.Gelu")
def gelu(n: Node) -> Expr:
    approximate = n.choice("approximate", "none", ("none", "tanh"))
    return (_erf_gelu if approximate == "none" else _tanh_gelu)(n, n.expr(0))


@converter("com.microsoft.FastGelu")
def fast_gelu(n: Node) -> Expr:
    x = n.emit(R.add(n.expr(0), n.expr(1))) if n.has(1) else n.expr(0)
    return _tanh_gelu(n, x)


@converter("com.microsoft.BiasGelu")
def bias_gelu(n: Node) -> Expr:
    return _erf_gelu(n, n.emit(R.add(n.expr(0), n.expr(1))))


@converter("com.microsoft.QuickGelu")
def quick_gelu(n: Node) -> Expr:
    return activations.swish(n.expr(0), n.attr("alpha", 1.702))


@converter("Softmax")
def softmax(n: Node) -> Expr:
    halves = n.dtype() == "float16"
    return _normalised(n, (lambda x, axis: _half_softmax(n, x, axis)) if halves else R.nn.softmax)


def _half_softmax(n: Node, x: Expr, axis: int) -> Expr:
    """Softmax of float16 as the standard's reference computes it: every step in float16, the sum itself in float32.

    Attention says so in words (``softmax_precision`` is by default that of its inputs). Float32 in between gives other
    last digits: up to two steps of float16 in a row of 6 (onnx 1.23.2, test_attention_4d_causal_fp16).
    """

    def rounded(value: Expr) -> Expr:
        return R.astype(R.astype(value, "float16"), "float32")

    wide = n.emit(R.astype(x, "float32"))
    powers = n.emit(rounded(R.exp(rounded(R.subtract(wide, R.max(wide, [axis], keepdims=True))))))
    return R.astype(R.divide(powers, rounded(R.sum(powers, [axis], keepdims=True))), "float16")


@converter("LogSoftmax")
def log_softmax(n: Node) -> Expr:
    return _normalised(n, R.nn.log_softmax)


def _normalised(n: Node, function: object) -> Expr:
    """Up to opset 12 all axes from ``axis`` on are normalised together (default 1), later just one (default -1)."""
    rank, shape = n.rank(), n.shape()
    axis = n.axis(int(n.attr("axis", -1 if n.opset >= 13 else 1)))
    if n.opset >= 13 or axis == rank - 1:
        return function(n.expr(0), axis)  # type: ignore[operator]
    flat = n.reshaped(n.expr(0), [math.prod(shape[:axis]), math.prod(shape[axis:])])
    return n.reshaped(function(flat, 1), shape)  # type: ignore[operator]


@converter("Hardmax")
def hardmax(n: Node) -> Expr:
    """One at the first largest element along the axis, zero elsewhere."""
    rank, shape = n.rank(), n.shape()
    axis = n.axis(int(n.attr("axis", -1 if n.opset >= 13 else 1)))
    rows = shape if n.opset >= 13 else (math.prod(shape[:axis]), math.prod(shape[axis:]))
    axis = axis if n.opset >= 13 else 1
    x = n.emit(n.reshaped(n.expr(0), rows))
    best = R.argmax(x, axis, keepdims=True)
    positions = np.arange(rows[axis], dtype="int64").reshape([-1 if i == axis else 1 for i in range(len(rows))])
    hit = R.astype(R.equal(best, n.build.constant(positions)), n.dtype())
    return n.reshaped(hit, shape) if len(rows) != rank or rows != shape else hit


@converter("Dropout")
def dropout(n: Node) -> list[Expr | None]:
    """Nothing at inference; the mask is all true."""
    n.ignore("ratio", "seed", "is_test")
    if n.has(2) and bool(n.const(2, "training_mode").reshape(-1)[0]):
        raise Refused("training_mode is set", "Export the network for inference (model.eval()).")
    mask = R.ones(n.shape(), "bool") if n.wants(1) else None
    return [n.expr(0), mask]
