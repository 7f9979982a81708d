"""Elementwise float32 kernels; on packed tensors with per-channel, per-image and scalar second operands.

``UNARY`` maps the name of a Relax operator to its expression. All are finite for finite input, so whatever stands in
the zero-padded lanes of a packed tensor meets zero weights as a number, never as a NaN.
"""

from __future__ import annotations

from collections.abc import Callable

from tvm import te, tirx
from tvm.tirx import Expr

from . import math

Fn1 = Callable[[Expr], Expr]
Fn2 = Callable[[Expr, Expr], Expr]

UNARY: dict[str, Fn1] = {
    "relax.nn.relu": lambda x: tirx.max(x, math.f32(0.0)),
    "relax.sigmoid": math.sigmoid,
    "relax.tanh": math.tanh,
    "relax.exp": math.exp,
    "relax.erf": math.erf,
    "relax.nn.silu": lambda x: x * math.sigmoid(x),
    "relax.nn.gelu": lambda x: math.f32(0.5) * x * (math.f32(1.0) + math.erf(x * math.f32(0.70710678118654752))),
    "relax.abs": tirx.abs,
    "relax.negative": lambda x: -x,
    "relax.floor": tirx.floor,
    "relax.ceil": tirx.ceil,
}

BINARY: dict[str, Fn2] = {
    "relax.add": lambda x, y: x + y,
    "relax.subtract": lambda x, y: x - y,
    "relax.multiply": lambda x, y: x * y,
    "relax.divide": lambda x, y: x / y,
    "relax.maximum": tirx.max,
    "relax.minimum": tirx.min,
}


def unary(x: te.Tensor, fn: Fn1, name: str) -> te.Tensor:
    """Return ``fn`` of every element."""
    return te.compute(x.shape, lambda *i: fn(x(*i)), name)


def clip(low: float, high: float) -> Fn1:
    """Return the function that limits x to [low, high]; an infinite bound costs nothing."""

    def limited(x: Expr) -> Expr:
        if low > -3.4e38:
            x = tirx.max(x, math.f32(low))
        return tirx.min(x, math.f32(high)) if high < 3.4e38 else x

    return limited


def leaky_relu(alpha: float) -> Fn1:
    """Return the function x if x > 0 else alpha x."""
    return lambda x: tirx.Select(x > math.f32(0.0), x, x * math.f32(alpha))


def binary(x: te.Tensor, y: te.Tensor, fn: Fn2, name: str) -> te.Tensor:
    """Return ``fn`` of two tensors of one shape; of packed ones, one may have a block of padding more."""
    shape = [min(int(a), int(b)) for a, b in zip(x.shape, y.shape, strict=True)]
    return te.compute(shape, lambda *i: fn(x(*i), y(*i)), name)


def with_scalar(x: te.Tensor, value: float, fn: Fn2, swapped: bool, name: str) -> te.Tensor:
    """Return ``fn(x, value)``, or ``fn(value, x)`` when ``swapped``."""
    c = math.f32(value)
    return te.compute(x.shape, lambda *i: fn(c, x(*i)) if swapped else fn(x(*i), c), name)


def with_channels(x: te.Tensor, y: te.Tensor, fn: Fn2, swapped: bool, name: str) -> te.Tensor:
    """Return ``fn`` of packed ``x`` [N, CB, P, v] and per-channel ``y`` [1 or N, CB, 1, v]; one CB may be larger."""
    n, blocks, p, v = (int(d) for d in x.shape)
    one = int(y.shape[0]) == 1

    def element(t: Expr, c: Expr, p: Expr, i: Expr) -> Expr:
        other = y[0 if one else t, c, 0, i]
        return fn(other, x[t, c, p, i]) if swapped else fn(x[t, c, p, i], other)

    return te.compute((n, min(blocks, int(y.shape[1])), p, v), element, name)


def with_plane(x: te.Tensor, y: te.Tensor, fn: Fn2, swapped: bool, name: str) -> te.Tensor:
    """Return ``fn`` of packed ``x`` [N, CB, H*W, v] and plain ``y`` [N, 1, H, W], the same for all channels."""
    w = int(y.shape[3])
    one = int(y.shape[0]) == 1

    def element(t: Expr, c: Expr, p: Expr, i: Expr) -> Expr:
        other = y[0 if one else t, 0, p // w, p % w]
        return fn(other, x[t, c, p, i]) if swapped else fn(x[t, c, p, i], other)

    return te.compute(x.shape, element, name)
