"""Activation functions that several formats know, each as the plain Relax operators that schedules know.

Every ``x`` is a variable or a constant (a call would be computed once for each time it stands in the formula).
"""

from __future__ import annotations

import numpy as np
from tvm import relax
from tvm.relax import Expr

from .network import constant, dtype_of

R = relax.op
# Klambauer et al. 2017, "Self-Normalizing Neural Networks": the two constants of SELU.
SELU_ALPHA, SELU_GAMMA = 1.6732632423543772, 1.0507009873554805


def scalar_like(value: float, x: Expr) -> Expr:
    """Return a rank-0 constant of ``x``'s dtype."""
    return constant(np.asarray(value, dtype_of(x)))


def elu(x: Expr, alpha: float = 1.0) -> Expr:
    """Return x where positive, alpha * (exp(x) - 1) elsewhere; exp never sees a positive x."""
    zero = scalar_like(0, x)
    below = R.subtract(R.exp(R.minimum(x, zero)), scalar_like(1, x))
    return R.where(R.greater(x, zero), x, R.multiply(below, scalar_like(alpha, x)))


def selu(x: Expr, alpha: float = SELU_ALPHA, gamma: float = SELU_GAMMA) -> Expr:
    """Return gamma * elu(x, alpha)."""
    return R.multiply(elu(x, alpha), scalar_like(gamma, x))


def softplus(x: Expr) -> Expr:
    """Return log(1 + exp(x)) as max(x, 0) + log(1 + exp(-|x|)), which does not overflow."""
    return R.add(R.nn.relu(x), R.log(R.add(R.exp(R.negative(R.abs(x))), scalar_like(1, x))))


def softsign(x: Expr) -> Expr:
    """Return x / (1 + |x|)."""
    return R.divide(x, R.add(R.abs(x), scalar_like(1, x)))


def mish(x: Expr) -> Expr:
    """Return x * tanh(softplus(x))."""
    return R.multiply(x, R.tanh(softplus(x)))


def hard_sigmoid(x: Expr, alpha: float = 1 / 6, beta: float = 0.5) -> Expr:
    """Return alpha * x + beta held within [0, 1]; by default MobileNetV3's, min(max(x + 3, 0), 6) / 6."""
    return R.clip(R.add(R.multiply(x, scalar_like(alpha, x)), scalar_like(beta, x)), 0.0, 1.0)


def hard_swish(x: Expr) -> Expr:
    """Return x * hard_sigmoid(x) (Howard et al. 2019, "Searching for MobileNetV3")."""
    return R.multiply(x, hard_sigmoid(x))


def swish(x: Expr, beta: float = 1.0) -> Expr:
    """Return x * sigmoid(beta * x)."""
    return R.multiply(x, R.sigmoid(x if beta == 1 else R.multiply(x, scalar_like(beta, x))))
