"""A layer's weight as a matrix, and the layer's inputs as the columns of that matrix see them.

Second-order methods see every layer as Y = W X for each of G groups: W [G, R, n], X [G, n, positions].

    layer                R (rows)            n (columns)          positions
    convolution          O/G                 C/G * KH * KW        of the output
    transposed conv.     O/G * KH * KW       C/G                  of the input
    matmul x @ w         O                   I                    rows of x
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .layers import Layer
from .numpy_windows import Windows, is_plain

Array = np.ndarray


def has_matrix(layer: Layer) -> bool:
    """Whether the layer is one of the table above."""
    if layer.kind in ("conv2d", "conv2d_transpose"):
        return is_plain(layer.call)
    return layer.kind == "matmul" and layer.weights.ndim == 2 and layer.operand == 1


def to_rows(layer: Layer, w: Array) -> Array:
    """Return [G, R, n] of an array in the weight's own shape."""
    if layer.kind == "matmul":
        return w.T[None]
    if layer.kind == "conv2d":
        return w.reshape(layer.groups, w.shape[0] // layer.groups, -1)
    return w.reshape(layer.groups, w.shape[0] // layer.groups, -1).swapaxes(1, 2)


def from_rows(layer: Layer, rows: Array) -> Array:
    """Return the array in the weight's own shape: the inverse of ``to_rows``."""
    shape = layer.weights.shape
    if layer.kind == "matmul":
        return np.ascontiguousarray(rows[0].T)
    if layer.kind == "conv2d":
        return rows.reshape(shape)
    return np.ascontiguousarray(rows.swapaxes(1, 2)).reshape(shape)


def row_steps(layer: Layer, steps: Array) -> Array:
    """Return [G, R]: the step of each row, for steps [1] or [outputs] along the layer's axis."""
    along = [-1 if i == layer.axis else 1 for i in range(layer.weights.ndim)]
    whole = np.broadcast_to(steps.reshape(along) if steps.size > 1 else steps, layer.weights.shape)
    return to_rows(layer, whole)[:, :, 0]


def columns(layer: Layer, operands: list[Any]) -> Array:
    """Return X [G, n, positions] of one sample, from the operands of the layer's call."""
    x, w = operands[0], operands[1]
    if layer.kind == "matmul":
        return x.reshape(-1, x.shape[-1]).T[None]
    if layer.kind == "conv2d":
        found = Windows(layer.call, x.shape[2:], w.shape[2:]).columns(x, layer.groups)
    else:
        found = x.reshape(x.shape[0], layer.groups, x.shape[1] // layer.groups, -1)
    return np.moveaxis(found, 0, 2).reshape(layer.groups, found.shape[2], -1)


def position_weights(layer: Layer, gradient: Array) -> Array:
    """Return [positions]: the mean square over the rows of dL/dY, for dL/d(result of the layer's call)."""
    if layer.kind == "matmul":
        return np.square(gradient.reshape(-1, gradient.shape[-1])).mean(axis=1)
    if layer.kind == "conv2d":
        return np.square(gradient).mean(axis=1).reshape(-1)
    raise AssertionError("a transposed convolution has no gradient for each position of its input")
