"""calibrate_int8: 8-bit weights, and steps for 8-bit activations found on samples.

Weights get a step for each output channel. The mean of what rounding does to each output goes into the bias (Nagel,
van Baalen, Blankevoort and Welling 2019, "Data-Free Quantization Through Weight Equalization and Bias Correction",
section 4.2, with means measured on samples). Activations get one step for each input of a linear layer, chosen by
``ranges`` (``activation_ranges.py``). The file keeps 8-bit weights and float activations, with which the kernels here
compute; the steps are for whoever takes the network to an integer engine. The report has them under "step of <tensor>",
and what integers of both would cost, which is simulated: each line's error is the relative RMS error of the layer's
output then, "sqnr_db" the signal to noise ratio of the network's answer.
"""

from __future__ import annotations

import numpy as np
import tvm

from ..errors import CompressError
from ..ir.coded import CodedTensor
from .activation_ranges import RANGES, activation_steps, histograms, rounded
from .choose_layers import calibration, choose_layers
from .layer_bias import biases_of, with_shifted_biases
from .layer_report import coded_line
from .layers import Layer, with_coded
from .numpy_network import NumpyNetwork, Step
from .quantise_admm import by_output, from_output, project, row_tensor
from .result import Data, MethodReport, Progress, Samples, Squeezed, StepConfig
from .statistics import even_statistics
from .weight_matrix import has_matrix, to_rows

Array = np.ndarray

DEFAULTS: dict[str, bool | int | float | str | tuple] = {
    "ranges": "mse",  # "minmax", "percentile", "kl"
    "correct_bias": True,
    "samples": 64,
    "simulated": 8,  # samples on which the integers' error is measured
}
NEEDS = "calib"


def calibrate_int8(state: Squeezed, config: StepConfig, data: Data, seed: int, progress: Progress) -> Squeezed:
    """Return ``state`` with 8-bit weights; the report has the activations' steps.

    Raises: CompressError without samples, or for an unknown way to choose ranges.
    """
    params = {**DEFAULTS, **config.params}
    if params["ranges"] not in RANGES:
        known = ", ".join(sorted(RANGES))
        raise CompressError(f"ranges '{params['ranges']}'", "there is no way of that name", f"There are {known}.")
    samples = calibration("calibrate_int8", data, params["samples"])
    choice = choose_layers(state.mod, config)
    layers, chosen, left = choice.every, choice.chosen, choice.left
    if not chosen:
        return Squeezed(state.mod, state.coded, MethodReport("calibrate_int8", left_alone=left))
    coded = {layer.digest: _eight_bits(layer) for layer in chosen}
    shifted: dict[str, Array] = {}
    if params["correct_bias"]:
        found = even_statistics(state.mod, layers, samples, seed, config.journal, progress)
        for layer in chosen:
            bias = biases_of(state.mod, layers).get(layer.digest)
            if bias is not None and has_matrix(layer) and layer.kind != "conv2d_transpose":
                change = to_rows(layer, layer.weights - coded[layer.digest].values())
                shifted[bias] = np.matmul(change, found.inputs(layer.digest)[1][:, :, None]).reshape(-1)
    progress("ranges of activations", 0, 0)
    steps = activation_steps(histograms(NumpyNetwork(state.mod), samples), str(params["ranges"]))
    result = with_coded(with_shifted_biases(state, shifted), coded, state.report)
    errors, sqnr = simulated_errors(state.mod, result.mod, steps, samples[: int(params["simulated"])])
    lines = tuple(
        coded_line(layer, coded[layer.digest], state.coded.get(layer.digest), errors.get(layer.name))
        for layer in chosen
    )
    facts: dict[str, str | int | float] = {
        "ranges": str(params["ranges"]),
        "steps of activations": "for integer engines; simulated here, the file keeps float activations",
        "sqnr_db": round(sqnr, 2),
    }
    facts |= {f"step of {name}": step for name, (step, _) in steps.items()}
    return Squeezed(result.mod, result.coded, MethodReport("calibrate_int8", lines, left, facts))


def _eight_bits(layer: Layer) -> CodedTensor:
    q, steps = project(by_output(layer, layer.weights.astype(np.float64)), 8)
    return row_tensor(layer, from_output(layer, q), steps)


def simulated_errors(
    original: tvm.IRModule, quantised: tvm.IRModule, steps: dict[str, tuple[float, bool]], samples: Samples
) -> tuple[dict[str, float], float]:
    """Return each linear layer's relative RMS output error, and the answer's signal to noise ratio in dB.

    The layer's inputs are those of the quantised network, rounded: errors add up from layer to layer as they will.
    """
    plain, rounding = NumpyNetwork(original), NumpyNetwork(quantised)
    noise: dict[str, float] = {}
    signal: dict[str, float] = {}
    ends = [0.0, 0.0]

    def round_inputs(step: Step, operands: list) -> None:
        if step.result.name in steps:
            operands[0] = rounded(operands[0], *steps[step.result.name])

    keep = [[step.result for step in net.steps if step.result.name in steps] for net in (plain, rounding)]
    for feeds in plain.feeds(samples):
        expected = plain.trace(feeds, remember=False, keep=keep[0]).values
        found = rounding.trace(feeds, round_inputs, remember=False, keep=keep[1]).values
        for a, b in zip(keep[0], keep[1], strict=True):
            noise[a.name] = noise.get(a.name, 0.0) + float(np.square(found[b] - expected[a]).sum())
            signal[a.name] = signal.get(a.name, 0.0) + float(np.square(expected[a]).sum())
        for a, b in zip(plain.heads, rounding.heads, strict=True):
            ends[0] += float(np.square(expected[a]).sum())
            ends[1] += float(np.square(found[b] - expected[a]).sum())
    errors = {name: float(np.sqrt(noise[name] / signal[name])) if signal[name] else 0.0 for name in noise}
    return errors, float(10 * np.log10(ends[0] / ends[1])) if ends[1] > 0 else float("inf")
