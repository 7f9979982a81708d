"""Normalisations. Written as mean, difference, mean of squares: E[x^2] - E[x]^2 would lose digits in float32."""

from __future__ import annotations

import numpy as np
from tvm import relax
from tvm.relax import Expr

from .node import Node, Refused
from .registry import converter

R = relax.op


@converter("LayerNormalization")
def layer_norm(n: Node) -> list[Expr | None]:
    """Over all axes from ``axis`` on; the outputs Mean and InvStdDev are computed when somebody reads them."""
    n.ignore("stash_type")
    axis = n.axis(int(n.attr("axis", -1)))
    axes = list(range(axis, n.rank()))
    inner = n.shape()[axis:]
    epsilon = float(n.attr("epsilon", 1e-5))
    if not n.wants(1) and not n.wants(2):
        scale, bias = _filled(n, 1, inner, 1.0), _filled(n, 2, inner, 0.0)
        return [R.nn.layer_norm(n.expr(0), scale, bias, axes, epsilon), None, None]
    x = n.emit(n.expr(0))
    mean = n.emit(R.mean(x, axes, keepdims=True))
    centred = n.emit(R.subtract(x, mean))
    variance = R.mean(R.multiply(centred, centred), axes, keepdims=True)
    inverse = n.emit(R.divide(n.scalar(1), R.sqrt(R.add(variance, n.scalar(epsilon)))))
    y = R.multiply(R.multiply(centred, inverse), n.expr(1))
    return [R.add(y, n.expr(2)) if n.has(2) else y, mean, inverse]


def _filled(n: Node, index: int, shape: tuple[int, ...], default: float) -> Expr:
    """Return scale or bias in exactly ``shape``, as ``relax.nn.layer_norm`` wants it."""
    if not n.has(index):
        return n.build.constant(np.full(shape, default, n.dtype()))
    if n.shape(index) == shape:
        return n.expr(index)
    if n.is_const(index):
        return n.build.constant(np.broadcast_to(n.const(index, "scale"), shape).copy())
    return n.emit(R.broadcast_to(n.expr(index), shape))


def _centred(n: Node, x: Expr, axes: list[int], epsilon: float) -> Expr:
    """Return (x - mean) / sqrt(variance + epsilon) over ``axes``."""
    x = n.emit(x)
    difference = n.emit(R.subtract(x, R.mean(x, axes, keepdims=True)))
    variance = R.mean(R.multiply(difference, difference), axes, keepdims=True)
    return R.divide(difference, R.sqrt(R.add(variance, n.scalar(epsilon))))


def _scaled(n: Node, y: Expr, channels: int, rank: int) -> Expr:
    shape = [1, channels] + [1] * (rank - 2)
    return R.add(R.multiply(y, _shaped(n, 1, shape)), _shaped(n, 2, shape))


def _shaped(n: Node, index: int, shape: list[int]) -> Expr:
    if n.is_const(index):
        return n.build.derived(n.const(index, "scale"), tuple(shape), lambda v: v.reshape(shape))
    return n.reshaped(n.expr(index), shape)


@converter("InstanceNormalization")
def instance_norm(n: Node) -> Expr:
    """x: [N, C, spatial...], scale and bias: [C]."""
    axes = list(range(2, n.rank()))
    return _scaled(n, _centred(n, n.expr(0), axes, n.attr("epsilon", 1e-5)), n.shape()[1], n.rank())


@converter("GroupNormalization")
def group_norm(n: Node) -> Expr:
    """Scale and bias are per group up to opset 20, per channel later."""
    n.ignore("stash_type")
    groups, shape = int(n.attr("num_groups", 0)), n.shape()
    if groups < 1 or shape[1] % groups:
        raise Refused(f"{shape[1]} channels cannot be cut into num_groups {groups}")
    parts = [shape[0], groups, int(np.prod(shape[1:])) // groups]
    y = _centred(n, n.reshaped(n.expr(0), parts), [2], n.attr("epsilon", 1e-5))
    if n.shape(1)[0] == groups and groups != shape[1]:
        return n.reshaped(_scaled(n, y, groups, 3), list(shape))
    return _scaled(n, n.reshaped(y, list(shape)), shape[1], n.rank())


@converter("MeanVarianceNormalization")
def mean_variance_norm(n: Node) -> Expr:
    return _centred(n, n.expr(0), [n.axis(a) for a in n.attr("axes", [0, 2, 3])], 1e-9)


@converter("RMSNormalization")
def rms_norm(n: Node) -> Expr:
    n.ignore("stash_type")
    axis = n.axis(int(n.attr("axis", -1)))
    x = n.emit(n.expr(0))
    squares = R.mean(R.multiply(x, x), list(range(axis, n.rank())), keepdims=True)
    return R.multiply(R.divide(x, R.sqrt(R.add(squares, n.scalar(n.attr("epsilon", 1e-5))))), n.expr(1))


@converter("LpNormalization")
def lp_norm(n: Node) -> Expr:
    axis, p = n.axis(int(n.attr("axis", -1))), int(n.attr("p", 2))
    if p not in (1, 2):
        raise Refused(f"p={p} is not supported", "Supported: 1, 2.")
    x = n.expr(0)
    total = R.sum(R.multiply(x, x) if p == 2 else R.abs(x), [axis], keepdims=True)
    norm = n.emit(R.sqrt(total) if p == 2 else total)
    return R.divide(x, R.where(R.equal(norm, n.scalar(0)), n.scalar(1), norm))  # zeros stay zeros


@converter("LRN")
def local_response_norm(n: Node) -> Expr:
    """x / (bias + alpha / size * sum of squares over ``size`` channels) ^ beta.

    The sum is a product with a 0/1 band matrix: [C, C] x [N, C, HW].
    """
    size, shape = int(n.attr("size", 0)), n.shape()
    alpha, beta, bias = n.attr("alpha", 1e-4), n.attr("beta", 0.75), n.attr("bias", 1.0)
    if size < 1 or size % 2 == 0:
        raise Refused(f"size {size} is not odd", "No runtime computes even sizes, so that nothing could check them.")
    channels = shape[1]
    distance = np.arange(channels)[None, :] - np.arange(channels)[:, None]
    band = (distance >= -((size - 1) // 2)) & (distance <= size // 2)  # floor((size-1)/2) before, the rest after
    x = n.emit(n.expr(0))
    flat = n.reshaped(R.multiply(x, x), [shape[0], channels, int(np.prod(shape[2:]))])
    factor = n.build.constant((band * (alpha / size)).astype(n.dtype()))
    sums = n.reshaped(R.matmul(factor, flat), list(shape))
    return R.divide(x, R.power(R.add(sums, n.scalar(bias)), n.scalar(beta)))
