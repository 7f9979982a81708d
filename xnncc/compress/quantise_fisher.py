"""quantise_fisher: a step for each weight from the Fisher information, rounding with second-order compensation.

The loss that rounding layer l with step D_l adds is, to second order, n_l s_l D_l^2 / 24 (n_l weights; s_l = mean of
E[(dL/dw)^2] over the layer, which is the diagonal of the Fisher matrix; D^2 / 12 is the variance of uniform noise).
For a given number of bits the sum is least when every layer adds the same for each weight:

    D_l = min(alpha / sqrt(s_l), cap * rms(w_l)),  and no row finer than its maximum / levels.

(Choi, El-Khamy and Lee 2016, "Towards the Limit of Network Quantization", section 4.2, weight clusters by the Hessian;
one step a layer and entropy coding take the clusters' place.) The cap keeps rows that no sample has touched: classes
never seen have no gradient at all. s_l is the true Fisher information (``sample_loss.py``) of whole weights: the sum
over positions of squared gradients (K-FAC-expand) is 10 to 100 times too small in front layers (measured 2026-11 on
PP-OCRv4's recogniser), because gradients of positions add coherently.

``loss`` = sum over all weights of alpha^2 / 24 for each decision of the network, in nats; 0 takes it from the
strength s as 10^(-3.5 + 4 s). A layer's part follows its own ``config.strength_of``.
Compensation (``compensate.py``) is kept for a layer only when the output error on samples it was not fitted on is
smaller than plain rounding's; the mean of the error goes into the bias where there is one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..ir.coded import CodedTensor
from .choose_layers import calibration, choose_layers
from .compensate import output_error, round_with_compensation
from .layer_bias import biases_of, with_shifted_biases
from .layer_report import coded_line
from .layers import Layer, with_coded
from .result import Data, LayerReport, MethodReport, Progress, Samples, Squeezed, StepConfig
from .statistics import Statistics, cached, collect, statistics_key
from .synthetic_inputs import synthetic_inputs
from .weight_matrix import from_rows, has_matrix, row_steps, to_rows

Array = np.ndarray

DEFAULTS: dict[str, bool | int | float | str | tuple] = {
    "loss": 0.0,  # nats for each decision; 0: from the strength
    "cap": 0.8,  # largest step, in RMS of the weight
    "levels": 127,  # a row's largest magnitude in steps, where steps would be finer
    "damp": 0.01,  # of H's mean diagonal, added to it
    "compensate": "measured",  # "measured", "always", "never"
    "guided": True,  # weigh positions by the loss's gradient there
    "samples": 64,  # at most so many of the calibration samples
    "synthetic": True,  # without samples: learn on noise and rectangles (synthetic_inputs.py)
    "low": 0.0,  # range of synthetic inputs
    "high": 1.0,
    "heads": (),  # "name=softmax", "name=sigmoid", "name=gaussian" where the operators do not tell
}
NEEDS = "nothing"

_MOST_SYNTHETIC = 32
_LARGEST_INTEGER = (
    1 << 15
)  # an integer beyond says that a step is absurd: assert, a clamp would ruin the weight quietly


@dataclass(frozen=True)
class _Result:
    """One layer's integers, and the change of its bias [outputs] or None."""

    tensor: CodedTensor
    error: float
    shift: Array | None
    compensated: bool


def quantise_fisher(state: Squeezed, config: StepConfig, data: Data, seed: int, progress: Progress) -> Squeezed:
    """Return ``state`` with every weight as integers with steps; see the module's docstring."""
    choice = choose_layers(state.mod, config)
    layers, chosen, left = choice.every, choice.chosen, choice.left
    if not chosen:
        return Squeezed(state.mod, state.coded, MethodReport("quantise_fisher", left_alone=left))
    params = {**DEFAULTS, **config.params}
    samples = _samples(state, data, params, seed)
    kinds = dict(text.split("=", 1) for text in params["heads"])
    key = statistics_key(layers, samples, seed, params["guided"], sorted(kinds.items()))
    found = cached(
        config.journal,
        key,
        lambda: collect(state.mod, layers, samples, seed, progress, bool(params["guided"]), kinds),
    )
    biases = biases_of(state.mod, layers)
    coded: dict[str, CodedTensor] = {}
    shifted: dict[str, Array] = {}
    lines: list[LayerReport] = []
    compensated = 0
    total = sum(layer.weights.size for layer in layers)
    for done, layer in enumerate(chosen):
        progress(f"quantise {layer.name}", done, len(chosen))
        bias = biases.get(layer.digest)
        alpha = step_scale(config, layer, params, found.decisions, total)
        result = _quantised(layer, found, alpha, params, bias is not None)
        coded[layer.digest] = result.tensor
        compensated += result.compensated
        lines.append(coded_line(layer, result.tensor, state.coded.get(layer.digest), result.error))
        if bias is not None and result.shift is not None:
            shifted[bias] = result.shift
    facts = {
        "samples": found.samples,
        "samples are": "calibration" if data.calib is not None else "synthetic",
        "layers compensated": compensated,
    }
    report = MethodReport("quantise_fisher", tuple(lines), left, facts)
    return with_coded(with_shifted_biases(state, shifted), coded, report)


def _samples(state: Squeezed, data: Data, params: dict, seed: int) -> Samples:
    """Return the calibration samples, or synthetic ones where there are none and they are allowed."""
    made = None
    if data.calib is None and params["synthetic"]:
        count, low, high = min(int(params["samples"]), _MOST_SYNTHETIC), float(params["low"]), float(params["high"])
        made = synthetic_inputs(state.mod, count, low, high, seed)
    return made if made is not None else calibration("quantise_fisher", data, params["samples"])


def step_scale(config: StepConfig, layer: Layer, params: dict, decisions: int, total: int) -> float:
    """Return alpha for ``layer`` of a network with ``total`` weights that makes ``decisions`` for each sample."""
    strength = config.strength_of(layer.name)
    loss = float(params["loss"]) * 10 ** (4 * (strength - config.strength)) or 10 ** (-3.5 + 4 * strength)
    return float(np.sqrt(24 * loss * decisions / total))


def steps_of(layer: Layer, fisher: Array | None, alpha: float, cap: float, levels: int) -> Array:
    """Return steps, float32 [1] or [outputs], by the rule in the module's docstring.

    Without Fisher information (no gradient reaches the weight) the steps are those of ``levels`` alone.
    """
    w = np.moveaxis(layer.weights, layer.axis, 0).reshape(layer.weights.shape[layer.axis], -1)
    floor = np.abs(w).max(axis=1) / levels
    rms = float(np.sqrt(np.mean(np.square(w))))
    if rms == 0:
        return np.ones(1, np.float32)
    if fisher is None or not np.isfinite(fisher).all():
        return np.where(floor > 0, floor, rms * cap).astype(np.float32)
    step = min(alpha / float(np.sqrt(fisher.mean() + 1e-30)), cap * rms)
    steps = np.maximum(floor, step).astype(np.float32)
    return steps[:1] if np.all(steps == steps[0]) else steps


def _quantised(layer: Layer, found: Statistics, alpha: float, params: dict, has_bias: bool) -> _Result:
    steps = steps_of(layer, found.fisher.get(layer.digest), alpha, float(params["cap"]), int(params["levels"]))
    if not has_matrix(layer) or layer.digest not in found.moments:
        along = [-1 if i == layer.axis and steps.size > 1 else 1 for i in range(layer.weights.ndim)]
        return _Result(_tensor(np.round(layer.weights / steps.reshape(along)), steps, layer), 0.0, None, False)
    rows, by_row = to_rows(layer, layer.weights), row_steps(layer, steps)
    plain = np.round(rows / by_row[:, :, None])
    use = str(params["compensate"])
    second, first = _moments(layer, found, None, has_bias)
    if use == "measured":
        fitted, judged = (_moments(layer, found, half, has_bias)[0] for half in (0, 1))
        trial = round_with_compensation(rows, fitted, by_row, float(params["damp"]))
        errors = [output_error(rows - q * by_row[:, :, None], judged) for q in (plain, trial)]
        use = "always" if errors[1] < errors[0] else "never"
    q = plain if use == "never" else round_with_compensation(rows, second, by_row, float(params["damp"]))
    change = rows - q * by_row[:, :, None]
    energy = output_error(rows, second)
    error = float(np.sqrt(output_error(change, second) / energy)) if energy > 0 else 0.0
    shift = np.matmul(change, first[:, :, None])[:, :, 0].reshape(-1) if has_bias and _takes_bias(layer) else None
    return _Result(_tensor(from_rows(layer, q), steps, layer), error, shift, use != "never")


def _takes_bias(layer: Layer) -> bool:
    """Rows are output channels; those of a transposed convolution are channels and taps."""
    return layer.kind != "conv2d_transpose"


def _moments(layer: Layer, found: Statistics, half: int | None, has_bias: bool) -> tuple[Array, Array]:
    """Return second and first moments; centred when a bias takes up the mean: E[xx'] - E[x]E[x]'."""
    second, first = found.inputs(layer.digest, half)
    if has_bias and _takes_bias(layer):
        second = second - first[:, :, None] * first[:, None, :]
    return second, first


def _tensor(integers: Array, steps: Array, layer: Layer) -> CodedTensor:
    largest = float(np.abs(integers).max(initial=0))
    assert largest < _LARGEST_INTEGER, f"{layer.name}: integers up to {largest:.0f}, the step is far too small"
    return CodedTensor(integers.astype(np.int32), steps=steps, axis=layer.axis)
