"""Float32 matrix products: a vector or a matrix of tokens by packed weights, and two activations by batch.

gemv  x [1, K],    w [NB, K, v], b [NB, v] -> [1, n]        n <= NB*v
gemm  x [M, K],    w [NB/g, K, g*v], b [NB, v] -> [M, NB*v] row-major, so that the tail fuses; g as in ``conv2d.py``
bmm   x [B, M, K], y [B, K, N]             -> [B, M, N]     y packed on the fly, columns padded to whole vectors
"""

from __future__ import annotations

import numpy as np
from tvm import te, tirx

from . import rule
from .math import f32


def f32_gemv(x: te.Tensor, w: te.Tensor, b: te.Tensor, n: int) -> te.Tensor:
    """Return the first ``n`` columns of x times w plus b."""
    nb, k, v = (int(d) for d in w.shape)
    r = te.reduce_axis((0, k), "k")
    acc = te.compute((nb, v), lambda o, i: te.sum(x[0, r] * w[o, r, i], axis=r), "acc", attrs=rule("gemv", nb=nb, k=k))
    y = te.compute((nb, v), lambda o, i: acc[o, i] + b[o, i], "bias")
    return te.compute((1, n), lambda _, j: y[j // v, j % v], "out")


def f32_gemm(x: te.Tensor, w: te.Tensor, b: te.Tensor) -> te.Tensor:
    """Return x times w plus b for M rows."""
    m = int(x.shape[0])
    k, wide = int(w.shape[1]), int(w.shape[2])
    nb, v = (int(d) for d in b.shape)
    r = te.reduce_axis((0, k), "k")
    acc = te.compute(
        (m, nb * v),
        lambda t, j: te.sum(x[t, r] * w[j // wide, r, j % wide], axis=r),
        "acc",
        attrs=rule("gemm", m=m, nb=nb, k=k),
    )
    return te.compute((m, nb * v), lambda t, j: acc[t, j] + b[j // v, j % v], "bias")


def f32_bmm(x: te.Tensor, y: te.Tensor, v: int, g: int = 1) -> te.Tensor:
    """Return the batched product of two activations, columns padded to whole runs of ``g`` blocks."""
    b, m, k = (int(d) for d in x.shape)
    n, wide = int(y.shape[2]), g * v
    runs = -(-n // wide)
    nb = runs * g
    r = te.reduce_axis((0, k), "k")
    packed = te.compute(
        (b, runs, k, wide),
        lambda h, j, t, i: tirx.if_then_else(j * wide + i < n, y[h, t, j * wide + i], f32(0.0)),
        "pad",
        attrs=rule("pad"),
    )
    acc = te.compute(
        (b, m, nb * v),
        lambda h, t, j: te.sum(x[h, t, r] * packed[h, j // wide, r, j % wide], axis=r),
        "acc",
        attrs=rule("bmm", m=m, nb=nb, k=k, n=n),
    )
    return te.compute((b, m, n), lambda h, t, j: acc[h, t, j], "crop")


def pack_matmul_weights(w: np.ndarray, v: int) -> np.ndarray:
    """Return ``w`` [K, N] as [NB, K, v]."""
    k, n = w.shape
    nb = -(-n // v)
    full = np.zeros((k, nb * v), w.dtype)
    full[:, :n] = w
    return np.ascontiguousarray(full.reshape(k, nb, v).transpose(1, 0, 2))


def reference_matmul(x: np.ndarray, y: np.ndarray, b: np.ndarray | float = 0.0) -> np.ndarray:
    """Return ``x`` [..., M, K] times ``y`` [..., K, N] plus ``b`` [N] in float64."""
    return x.astype("f8") @ y.astype("f8") + b
