"""quantise_admm: uniform integers of 1 to 8 bits with a scale for each output channel, found by ADMM.

Leng, Li, Zhu and Jin 2018, "Extremely Low Bit Neural Network: Squeeze the Last Bit Out with ADMM": the weight W and its
quantised copy G are two variables that a multiplier U pulls together (their equations 7 to 9),

    W <- argmin loss(W) + rho/2 |W - G + U|^2
    G <- projection of W + U onto scale * integers: both in turn, each the best for the other (equation 12)
    U <- U + W - G.

Where we differ: without training the loss is the layer's output error (W - W0) H (W - W0)', with H the second moment
of its inputs on the calibration samples, so the first step is one linear solve; without samples H is the identity and
the projection alone is the answer: the scale of least square error.

``bits`` in 1..8; 0 takes them from the strength s: round(8 - 5 s). One bit is a sign, more bits are -M..M with
M = 2^(bits-1) - 1 (1 and 2 bits differ by zero). Depthwise layers get ``bits_depthwise``: few weights,
and each one counts.
"""

from __future__ import annotations

import numpy as np

from ..ir.coded import CodedTensor
from .choose_layers import choose_layers
from .compensate import output_error
from .layer_report import coded_line
from .layers import Layer, with_coded
from .result import Data, MethodReport, Progress, Squeezed, StepConfig
from .statistics import Statistics, even_statistics
from .weight_matrix import from_rows, has_matrix, to_rows

Array = np.ndarray

DEFAULTS: dict[str, bool | int | float | str | tuple] = {
    "bits": 0,  # 0: from the strength
    "bits_depthwise": 8,
    "iterations": 30,
    "rho": 0.5,  # in units of H's mean diagonal
    "samples": 64,
}
NEEDS = "nothing"

_PROJECTION_ROUNDS = 20


def quantise_admm(state: Squeezed, config: StepConfig, data: Data, seed: int, progress: Progress) -> Squeezed:
    """Return ``state`` with every weight as integers of few bits and a step for each output channel."""
    params = {**DEFAULTS, **config.params}
    choice = choose_layers(state.mod, config)
    layers, chosen, left = choice.every, choice.chosen, choice.left
    found = Statistics()
    if data.calib is not None and chosen:
        samples = data.calib[: int(params["samples"])]
        found = even_statistics(state.mod, layers, samples, seed, config.journal, progress)
    coded, lines = {}, []
    for done, layer in enumerate(chosen):
        progress(f"quantise {layer.name}", done, len(chosen))
        bits = int(params["bits"]) or round(8 - 5 * config.strength_of(layer.name))
        bits = int(params["bits_depthwise"]) if layer.is_depthwise else bits
        second = found.inputs(layer.digest)[0] if layer.digest in found.moments else None
        coded[layer.digest] = _quantised(layer, second, bits, params)
        lines.append(coded_line(layer, coded[layer.digest], state.coded.get(layer.digest)))
    return with_coded(state, coded, MethodReport("quantise_admm", tuple(lines), left))


def project(rows: Array, bits: int) -> tuple[Array, Array]:
    """Return (integers [O, n], steps [O]) of least square error for each row of [O, n]; rows of zeros get step 1."""
    largest = np.abs(rows).max(axis=1, initial=0)
    dead = largest == 0
    if bits == 1:
        scale = np.abs(rows).mean(axis=1)
        return np.where(rows < 0, -1.0, 1.0) * ~dead[:, None], np.where(dead, 1, scale)
    limit = (1 << (bits - 1)) - 1
    best = (np.zeros_like(rows), np.ones(len(rows)))
    least = np.full(len(rows), np.inf)
    for start in (1.0, 0.8, 0.6, 0.45):
        scale = np.where(dead, 1, start * largest / limit)
        for _ in range(_PROJECTION_ROUNDS):
            q = np.clip(np.round(rows / scale[:, None]), -limit, limit)
            norm = (q * q).sum(axis=1)
            found = np.where(norm > 0, (rows * q).sum(axis=1) / np.maximum(norm, 1), scale)
            if np.allclose(found, scale, rtol=1e-6):
                break
            scale = found
        error = np.square(rows - q * scale[:, None]).sum(axis=1)
        better = error < least
        least = np.where(better, error, least)
        best = (np.where(better[:, None], q, best[0]), np.where(better, scale, best[1]))
    return best


def _quantised(layer: Layer, second: Array | None, bits: int, params: dict) -> CodedTensor:
    if second is None or not has_matrix(layer) or layer.kind == "conv2d_transpose":
        q, steps = project(by_output(layer, layer.weights.astype(np.float64)), bits)
        return row_tensor(layer, from_output(layer, q), steps)
    rows = to_rows(layer, layer.weights).astype(np.float64)
    groups, count, n = rows.shape
    h = second.astype(np.float64)
    rho = float(params["rho"]) * np.maximum(np.trace(h, axis1=1, axis2=2) / n, 1e-20)[:, None, None]
    solve = np.linalg.inv(h + rho * np.eye(n))
    pull = np.matmul(rows, h)

    def snapped(w: Array) -> tuple[Array, Array]:
        q, steps = project(w.reshape(-1, n), bits)
        return (q * steps[:, None]).reshape(groups, count, n), steps

    g, steps = snapped(rows)
    u, best, least = np.zeros_like(rows), (g, steps), output_error(rows - g, h)
    for _ in range(int(params["iterations"])):
        w = np.matmul(pull + rho * (g - u), solve)
        g, steps = snapped(w + u)
        u = u + w - g
        if (error := output_error(rows - g, h)) < least:
            best, least = (g, steps), error
    integers = np.round(best[0].reshape(-1, n) / best[1][:, None]).reshape(groups, count, n)
    return row_tensor(layer, from_rows(layer, integers), best[1])


def by_output(layer: Layer, w: Array) -> Array:
    """Return [outputs, rest]."""
    return np.moveaxis(w, layer.axis, 0).reshape(w.shape[layer.axis], -1)


def from_output(layer: Layer, q: Array) -> Array:
    """Return the array in the weight's own shape: the inverse of ``by_output``."""
    shape = layer.weights.shape
    moved = (shape[layer.axis], *(size for i, size in enumerate(shape) if i != layer.axis))
    return np.moveaxis(q.reshape(moved), 0, layer.axis)


def row_tensor(layer: Layer, integers: Array, steps: Array) -> CodedTensor:
    """Return ``integers``, in the weight's own shape, with a step for each output channel."""
    whole = np.ascontiguousarray(integers).astype(np.int32)
    return CodedTensor(whole, steps=steps.astype(np.float32), axis=layer.axis)
