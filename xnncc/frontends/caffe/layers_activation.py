"""Layers that compute each element from itself, as the plain Relax operators that schedules know."""

from __future__ import annotations

import math

import numpy as np
from tvm import relax
from tvm.relax import Expr

from .. import activations
from .node import Node
from .params import Params
from .refused import Broken
from .registry import converter

R = relax.op


@converter("ReLU")
def relu(n: Node) -> Expr:
    n.need(1)
    slope = n.params("relu_param").number("negative_slope", 0.0)
    return R.nn.leakyrelu(n.expr(), slope) if slope else R.nn.relu(n.expr())


@converter("ReLU6")
def relu6(n: Node) -> Expr:
    n.need(1)
    n.params("relu_param").ignore("negative_slope")
    n.params("relu6_param")
    return R.clip(n.expr(), 0.0, 6.0)


@converter("PReLU")
def prelu(n: Node) -> Expr:
    """x where positive, slope * x elsewhere, with one slope for each channel or one for all."""
    n.need(1)
    shared = n.params("prelu_param").flag("channel_shared", False)
    if n.rank() < 2:
        raise Broken(f"input {list(n.shape())} has no channels")
    channels = n.shape()[1]
    if shared:
        slope = n.blob(0, (1,), "slope").reshape(())
    else:
        slope = n.blob(0, (channels,), "slopes").reshape([1, channels] + [1] * (n.rank() - 2))
    x = n.expr()
    return R.where(R.less(x, n.scalar(0)), R.multiply(x, n.build.constant(slope)), x)


@converter("ELU")
def elu(n: Node) -> Expr:
    n.need(1)
    return activations.elu(n.expr(), n.params("elu_param").number("alpha", 1.0))


@converter("Sigmoid")
def sigmoid(n: Node) -> Expr:
    n.need(1)
    n.params("sigmoid_param")
    return R.sigmoid(n.expr())


@converter("TanH")
def tanh(n: Node) -> Expr:
    n.need(1)
    n.params("tanh_param")
    return R.tanh(n.expr())


@converter("AbsVal")
def absolute(n: Node) -> Expr:
    n.need(1)
    return R.abs(n.expr())


@converter("BNLL")
def bnll(n: Node) -> Expr:
    n.need(1)
    return activations.softplus(n.expr())


@converter("Mish")
def mish(n: Node) -> Expr:
    n.need(1)
    return activations.mish(n.expr())


@converter("Swish")
def swish(n: Node) -> Expr:
    n.need(1)
    return activations.swish(n.expr(), n.params("swish_param").number("beta", 1.0))


@converter("HSigmoid")
def hard_sigmoid(n: Node) -> Expr:
    n.need(1)
    return activations.hard_sigmoid(n.expr())


@converter("HardSwish")
def hard_swish(n: Node) -> Expr:
    n.need(1)
    return activations.hard_swish(n.expr())


@converter("Clip")
def clip(n: Node) -> Expr:
    n.need(1)
    p = n.params("clip_param")
    if not (p.has("min") and p.has("max")):
        raise Broken(f"{p.name} gives no min and max")
    return R.clip(n.expr(), p.number("min", 0.0), p.number("max", 0.0))


@converter("Threshold")
def threshold(n: Node) -> Expr:
    """One above the threshold, zero elsewhere."""
    n.need(1)
    limit = n.params("threshold_param").number("threshold", 0.0)
    return R.astype(R.greater(n.expr(), n.scalar(limit)), "float32")


@converter("Dropout")
def dropout(n: Node) -> Expr:
    """Nothing at inference, unless Caffe was told not to scale during training."""
    n.need(1)
    p = n.params("dropout_param")
    if p.flag("scale_train", True):
        p.ignore("dropout_ratio")
        return n.expr()
    return R.multiply(n.expr(), n.scalar(1 - p.number("dropout_ratio", 0.5)))


def _scaled(n: Node, x: Expr, scale: float, shift: float) -> Expr:
    y = R.multiply(x, n.scalar(scale)) if scale != 1 else x
    return R.add(y, n.scalar(shift)) if shift else y


@converter("Power")
def power(n: Node) -> Expr:
    """(shift + scale * x) ^ power."""
    n.need(1)
    p = n.params("power_param")
    exponent, scale, shift = p.number("power", 1.0), p.number("scale", 1.0), p.number("shift", 0.0)
    if exponent == 0 or scale == 0:
        with np.errstate(all="ignore"):
            value = np.float32(1.0) if exponent == 0 else np.power(np.float32(shift), np.float32(exponent))
        return n.build.constant(np.full(n.shape(), value, "float32"))
    base = n.emit(_scaled(n, n.expr(), scale, shift))
    if exponent == 1:
        return base
    if exponent == 2:
        return R.multiply(base, base)
    return R.sqrt(base) if exponent == 0.5 else R.power(base, n.scalar(exponent))


@converter("Exp")
def exponential(n: Node) -> Expr:
    """base ^ (shift + scale * x), base e when it is not given."""
    n.need(1)
    p = n.params("exp_param")
    log_base = math.log(_base(p))
    return R.exp(_scaled(n, n.expr(), p.number("scale", 1.0) * log_base, p.number("shift", 0.0) * log_base))


@converter("Log")
def logarithm(n: Node) -> Expr:
    """log(shift + scale * x) to ``base``, natural when it is not given."""
    n.need(1)
    p = n.params("log_param")
    y = R.log(_scaled(n, n.expr(), p.number("scale", 1.0), p.number("shift", 0.0)))
    log_base = math.log(_base(p))
    if log_base == 0:
        raise Broken(f"{p.name} base is 1: there is no such logarithm")
    return y if log_base == 1 else R.multiply(y, n.scalar(1 / log_base))


def _base(p: Params) -> float:
    base = p.number("base", -1.0)
    if base != -1 and base <= 0:
        raise Broken(f"{p.name} base is {base:g}, expected a positive number or -1 for e")
    return math.e if base == -1 else base
