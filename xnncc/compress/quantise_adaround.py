"""quantise_adaround: whether each weight is rounded up or down is learnt, one layer at a time.

Nagel, Amjad, van Baalen, Louizos and Blankevoort 2020, "Up or Down? Adaptive Rounding for Post-Training
Quantization": the rounding of w is floor(w / D) + h(V), h the stretched sigmoid of their equation 23, and

    min over V   E|W x - W~ x|^2 + lambda sum(1 - |2 h(V) - 1|^beta)              (equations 21 and 24)

with beta falling from 20 to 2, which first lets h move and then drives it to 0 or 1. Where we differ: the expectation
is (W - W~) H (W - W~)' with H the second moment of the layer's inputs, so an iteration is one matrix product and
needs no samples; the gradient is exact.

``bits`` with a step for each output channel (of least square error); 0 takes them from the strength s: round(8 - 5 s).
"""

from __future__ import annotations

import numpy as np

from ..ir.coded import CodedTensor
from .choose_layers import calibration, choose_layers
from .compensate import output_error
from .layer_report import coded_line
from .layers import Layer, with_coded
from .quantise_admm import project, row_tensor
from .result import Data, MethodReport, Progress, Squeezed, StepConfig
from .statistics import even_statistics
from .weight_matrix import from_rows, has_matrix, to_rows

Array = np.ndarray

DEFAULTS: dict[str, bool | int | float | str | tuple] = {
    "bits": 0,  # 0: from the strength
    "bits_depthwise": 8,
    "iterations": 400,
    "rate": 0.02,
    "pull": 5.0,  # lambda, in units of the error of plain rounding for each weight
    "samples": 64,
}
NEEDS = "calib"

_LOW, _HIGH = -0.1, 1.1  # of the stretched sigmoid


def quantise_adaround(state: Squeezed, config: StepConfig, data: Data, seed: int, progress: Progress) -> Squeezed:
    """Return ``state`` with every weight of a plain layer as integers whose rounding was learnt.

    Raises: CompressError without samples.
    """
    params = {**DEFAULTS, **config.params}
    samples = calibration("quantise_adaround", data, params["samples"])
    choice = choose_layers(state.mod, config, _refused)
    layers, chosen, left = choice.every, choice.chosen, choice.left
    if not chosen:
        return Squeezed(state.mod, state.coded, MethodReport("quantise_adaround", left_alone=left))
    found = even_statistics(state.mod, layers, samples, seed, config.journal, progress)
    coded: dict[str, CodedTensor] = {}
    lines = []
    for done, layer in enumerate(chosen):
        progress(f"quantise {layer.name}", done, len(chosen))
        bits = int(params["bits"]) or round(8 - 5 * config.strength_of(layer.name))
        bits = int(params["bits_depthwise"]) if layer.is_depthwise else bits
        rows = to_rows(layer, layer.weights).astype(np.float64)
        second = found.inputs(layer.digest)[0].astype(np.float64)
        integers, steps = learnt_rounding(rows, second, max(bits, 2), params)
        coded[layer.digest] = row_tensor(layer, from_rows(layer, integers), steps)
        lines.append(coded_line(layer, coded[layer.digest], state.coded.get(layer.digest)))
    return with_coded(state, coded, MethodReport("quantise_adaround", tuple(lines), left))


def _refused(layer: Layer) -> str:
    return "" if has_matrix(layer) and layer.kind != "conv2d_transpose" else f"rows of a {layer.kind} are no outputs"


def learnt_rounding(rows: Array, second: Array, bits: int, params: dict) -> tuple[Array, Array]:
    """Return (integers [G, R, n], steps [G * R]) for rows [G, R, n] and H [G, n, n]; at worst plain rounding."""
    groups, count, n = rows.shape
    limit = (1 << (bits - 1)) - 1
    plain, steps = project(rows.reshape(-1, n), bits)
    plain, by_row = plain.reshape(rows.shape), steps.reshape(groups, count, 1)
    scaled = rows / by_row
    floor = np.clip(np.floor(scaled), -limit, limit)
    v = _start(np.clip(scaled - floor, 0.01, 0.99))
    plain_error = output_error(rows - plain * by_row, second)
    if plain_error <= 0:
        return plain, steps
    pull = float(params["pull"]) * plain_error * groups * count / rows.size
    mean, square, iterations = np.zeros_like(v), np.zeros_like(v), int(params["iterations"])
    for i in range(1, iterations + 1):
        soft = 1 / (1 + np.exp(-v))
        h = np.clip(soft * (_HIGH - _LOW) + _LOW, 0, 1)
        change = rows - np.clip(floor + h, -limit, limit) * by_row
        by_h = -2 * np.matmul(change, second) * by_row
        if i > iterations // 5:
            beta = 20 - 18 * (i / iterations)
            away = 2 * h - 1
            by_h -= pull * 2 * beta * np.abs(away) ** (beta - 1) * np.sign(away)
        gradient = by_h * soft * (1 - soft) * (_HIGH - _LOW) * ((h > 0) & (h < 1))
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient * gradient
        step = mean / (1 - 0.9**i) / (np.sqrt(square / (1 - 0.999**i)) + 1e-30)
        v -= float(params["rate"]) * step
    h = np.clip(1 / (1 + np.exp(-v)) * (_HIGH - _LOW) + _LOW, 0, 1)
    learnt = np.clip(floor + (h >= 0.5), -limit, limit)
    return (learnt if output_error(rows - learnt * by_row, second) < plain_error else plain), steps


def _start(h: Array) -> Array:
    """Return V with h(V) = h."""
    soft = (h - _LOW) / (_HIGH - _LOW)
    return np.log(soft / (1 - soft))
