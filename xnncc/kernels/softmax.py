"""Softmax along the last axis: x [..., K] float32 -> the same shape, in three passes over a row.

What is over after the whole vectors of a row is filled up with -inf, whose power is 0: no pass has a rest.
"""

from __future__ import annotations

import numpy as np
from tvm import te, tirx

from . import math


def f32_softmax(x: te.Tensor, lanes: int = 1) -> te.Tensor:
    """Return e**(x - max) / sum, with the polynomial exp; rows are computed as multiples of ``lanes``."""
    *rows, k = (int(d) for d in x.shape)
    whole, wide = k - k % lanes, -(-k // lanes) * lanes
    r, s = te.reduce_axis((0, wide), "r"), te.reduce_axis((0, wide), "s")

    def filled(*i: tirx.Expr) -> tirx.Expr:
        return tirx.if_then_else(i[-1] < k - whole, x(*i[:-1], whole + i[-1]), math.f32(-np.inf))

    rest = te.compute((*rows, lanes), filled, "rest") if whole < k else x

    def row(*i: tirx.Expr) -> tirx.Expr:
        if whole == k:
            return x(*i)
        return tirx.if_then_else(i[-1] < whole, x(*i), rest(*i[:-1], i[-1] - whole)) if whole else rest(*i)

    largest = te.compute(rows, lambda *i: te.max(row(*i, r), axis=r), "largest")
    power = te.compute((*rows, wide), lambda *i: math.exp(row(*i) - largest(*i[:-1])), "power")
    total = te.compute(rows, lambda *i: te.sum(power(*i, s), axis=s), "total")
    share = te.compute(rows, lambda *i: math.f32(1.0) / total(*i), "share")
    return te.compute(x.shape, lambda *i: power(*i) * share(*i[:-1]), "softmax")


def reference_softmax(x: np.ndarray) -> np.ndarray:
    """Return the softmax along the last axis in float64."""
    power = np.exp(x - x.max(axis=-1, keepdims=True).astype("f8"))
    return power / power.sum(axis=-1, keepdims=True)
