"""quantise_round: weights to the nearest of a few evenly spaced values, one step for each output channel. No data.

    D_o = max |w_o| / L,    q = rint(w / D_o) in [-L, L],    L = 2^(bits - 1) - 1

(Symmetric uniform quantisation per channel: Krishnamoorthi 2018, "Quantizing deep convolutional networks for efficient
inference", section 2.4.) ``bits`` = 0 takes L from the strength s as 2^(7 - 6 s) - 1, rounded: 127 at 0, 1 at 1, every
whole number between. Stems and depthwise convolutions keep at least ``sensitive_bits``: they have few weights and
each is read everywhere (section 4 there; measured on PP-OCRv4 2026-11).

A channel of zeros stays zero with step 1; channels too small for a float32 step stay as they are, and a weight with
NaN or infinity is left alone with the reason in the report.
"""

from __future__ import annotations

import numpy as np

from ..ir.coded import CodedTensor
from .layer_report import coded_line
from .layers import Layer, weight_layers, with_coded
from .result import Data, LayerReport, MethodReport, Progress, Squeezed, StepConfig

DEFAULTS: dict[str, bool | int | float | str | tuple] = {
    "bits": 0,  # 2 to 16; 0: from the strength
    "sensitive_bits": 8,  # at least, for the first layer and depthwise convolutions
    "scale": "channel",  # "channel" or "tensor": what shares a step
}
LIMITS = {"bits": (0, 16), "sensitive_bits": (2, 16), "scale": ("channel", "tensor")}
NEEDS = "nothing"
SMALLEST_STEP = 1e-30  # below, products with activations leave float32's normal numbers


def quantise_round(state: Squeezed, config: StepConfig, data: Data, seed: int, progress: Progress) -> Squeezed:
    """Return ``state`` with every chosen weight rounded; see the module's docstring."""
    layers = weight_layers(state.mod)
    new: dict[str, CodedTensor] = {}
    lines: list[LayerReport] = []
    left: dict[str, str] = {}
    for number, layer in enumerate(layers):
        progress("rounding", number, len(layers))
        reason = config.why_not(layer.name) or unsuitable(layer.weights)
        if reason:
            left[layer.name] = reason
            continue
        largest = _levels(layer, config, is_first=number == 0)
        new[layer.digest] = rounded(layer.weights, largest, layer.axis if config.params["scale"] == "channel" else None)
        lines.append(coded_line(layer, new[layer.digest], state.coded.get(layer.digest)))
    return with_coded(state, new, MethodReport("quantise_round", tuple(lines), left))


def unsuitable(weights: np.ndarray) -> str:
    """Return why a weight cannot be made integers, an empty string when it can."""
    if not np.isfinite(weights).all():
        return "it holds NaN or infinity"
    largest = float(np.max(np.abs(weights), initial=0.0))
    if 0 < largest < 127 * SMALLEST_STEP:
        return f"its largest value is {largest:.1e}: too small for a float32 step"
    return ""


def rounded(weights: np.ndarray, largest: int, axis: int | None) -> CodedTensor:
    """Return ``weights`` as integers in [-largest, largest] with a step for each index along ``axis``, or one step."""
    others = tuple(i for i in range(weights.ndim) if i != axis) if axis is not None else None
    peak = np.max(np.abs(weights), axis=others, initial=0.0).astype(np.float64).reshape(-1)
    steps = (peak / largest).astype(np.float32)
    steps[steps < SMALLEST_STEP] = 1.0  # a channel of zeros, or of nothing that its neighbours would notice
    shape = [-1 if i == axis else 1 for i in range(weights.ndim)]
    integers = np.rint(weights / steps.astype(np.float64).reshape(shape))
    assert np.abs(integers).max(initial=0) <= largest + 1, "a step does not fit its channel"
    return CodedTensor(np.clip(integers, -largest, largest).astype(np.int32), steps, axis=axis or 0)


def _levels(layer: Layer, config: StepConfig, is_first: bool) -> int:
    bits = int(config.params["bits"])
    strength = config.strength_of(layer.name)
    largest = max(1, 2 ** (bits - 1) - 1) if bits else max(1, round(2 ** (7 - 6 * strength) - 1))
    if layer.is_depthwise or is_first:
        largest = max(largest, 2 ** (int(config.params["sensitive_bits"]) - 1) - 1)
    return largest
