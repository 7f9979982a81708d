"""Softmax along the last axis: x [..., K] float32 -> the same shape, in three passes over a row."""

from __future__ import annotations

import numpy as np
from tvm import te

from . import math


def f32_softmax(x: te.Tensor) -> te.Tensor:
    """Return e**(x - max) / sum, with the polynomial exp."""
    *rows, k = (int(d) for d in x.shape)
    r, s = te.reduce_axis((0, k), "r"), te.reduce_axis((0, k), "s")
    largest = te.compute(rows, lambda *i: te.max(x(*i, r), axis=r), "largest")
    power = te.compute(x.shape, lambda *i: math.exp(x(*i) - largest(*i[:-1])), "power")
    total = te.compute(rows, lambda *i: te.sum(power(*i, s), axis=s), "total")
    return te.compute(x.shape, lambda *i: power(*i) / total(*i[:-1]), "softmax")


def reference_softmax(x: np.ndarray) -> np.ndarray:
    """Return the softmax along the last axis in float64."""
    power = np.exp(x - x.max(axis=-1, keepdims=True).astype("f8"))
    return power / power.sum(axis=-1, keepdims=True)
