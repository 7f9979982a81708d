"""quantise_mixed: each layer gets the width that its measured loss allows.

Every layer alone is rounded to ``probe`` bits and the change of the network's answer is measured on samples, before
a softmax or sigmoid, which would hide large changes. Noise falls with the square of the number of levels,
2^(bits - 1) - 1, so that one measurement gives a layer's loss at any width; widths are then handed out bit by bit to
the layer that gains most for the bits it costs, until the mean is ``bits`` (Dong, Yao, Gholami, Mahoney and Keutzer
2019, "HAWQ", give widths by the Hessian's spectrum; here the loss itself is measured).

``bits``: mean over all weights; 0 takes it from the strength s: 8 - 5 s. One step for each output channel.
"""

from __future__ import annotations

import heapq

import numpy as np
from tvm.relax import Var

from .choose_layers import calibration, choose_layers
from .layer_report import coded_line
from .layers import Layer, with_coded
from .numpy_network import NumpyNetwork
from .quantise_admm import by_output, from_output, project, row_tensor
from .result import Data, MethodReport, Progress, Samples, Squeezed, StepConfig
from .sample_loss import find_heads

Array = np.ndarray

DEFAULTS: dict[str, bool | int | float | str | tuple] = {"bits": 0.0, "probe": 4, "samples": 8}
NEEDS = "calib"

_NARROWEST, _WIDEST = 2, 8


def quantise_mixed(state: Squeezed, config: StepConfig, data: Data, seed: int, progress: Progress) -> Squeezed:
    """Return ``state`` with every weight as integers of a width of its own.

    Raises: CompressError without samples.
    """
    params = {**DEFAULTS, **config.params}
    samples = calibration("quantise_mixed", data, params["samples"])
    choice = choose_layers(state.mod, config)
    chosen, left = choice.chosen, choice.left
    if not chosen:
        return Squeezed(state.mod, state.coded, MethodReport("quantise_mixed", left_alone=left))
    losses = measured_losses(state, chosen, samples, int(params["probe"]), progress)
    mean = float(params["bits"]) or 8 - 5 * config.strength
    widths = shared_bits([layer.weights.size for layer in chosen], losses, int(params["probe"]), mean)
    coded, lines = {}, []
    for layer, bits in zip(chosen, widths, strict=True):
        q, steps = project(by_output(layer, layer.weights.astype(np.float64)), bits)
        coded[layer.digest] = row_tensor(layer, from_output(layer, q), steps)
        lines.append(coded_line(layer, coded[layer.digest], state.coded.get(layer.digest)))
    facts: dict[str, str | int | float] = {f"bits of {layer.name}": b for layer, b in zip(chosen, widths, strict=True)}
    return with_coded(state, coded, MethodReport("quantise_mixed", tuple(lines), left, facts))


def measured_losses(
    state: Squeezed, layers: list[Layer], samples: Samples, bits: int, progress: Progress
) -> list[float]:
    """Return for each layer how far the answer moves, relative mean square, when it alone has ``bits``."""
    network = NumpyNetwork(state.mod)
    heads = [head.var for head in find_heads(network, {})]

    def answers() -> list[dict[Var, Array]]:
        runs = (network.trace(feeds, remember=False, keep=heads).values for feeds in network.feeds(samples))
        return [{head: run[head] for head in heads} for run in runs]

    expected = answers()
    size = sum(float(np.square(value).sum()) for answer in expected for value in answer.values()) or 1.0
    found = []
    for done, layer in enumerate(layers):
        progress(f"measure {layer.name}", done, len(layers))
        before = network.constants[layer.digest]
        q, steps = project(by_output(layer, layer.weights.astype(np.float64)), bits)
        network.constants[layer.digest] = row_tensor(layer, from_output(layer, q), steps).values()
        moved = sum(
            float(np.square(now[head] - then[head]).sum())
            for now, then in zip(answers(), expected, strict=True)
            for head in heads
        )
        network.constants[layer.digest] = before
        found.append(moved / size)
    return found


def shared_bits(sizes: list[int], losses: list[float], probe: int, mean: float) -> list[int]:
    """Return widths in 2..8 whose mean over all weights is at most ``mean``, of least total loss.

    ``losses`` at ``probe`` bits; a bit more in layer l takes away 3/4 of loss_l 4^(probe - bits) and costs sizes_l
    bits.
    """
    widths = [_NARROWEST] * len(sizes)
    budget = mean * sum(sizes) - _NARROWEST * sum(sizes)

    def loss(layer: int, bits: int) -> float:
        return losses[layer] * (_levels(probe) / _levels(bits)) ** 2

    def gain(layer: int) -> float:
        return (loss(layer, widths[layer]) - loss(layer, widths[layer] + 1)) / sizes[layer]

    heap = [(-gain(layer), layer) for layer in range(len(sizes))]
    heapq.heapify(heap)
    while heap:
        _, layer = heapq.heappop(heap)
        if sizes[layer] > budget:
            continue
        budget -= sizes[layer]
        widths[layer] += 1
        if widths[layer] < _WIDEST:
            heapq.heappush(heap, (-gain(layer), layer))
    return widths


def _levels(bits: int) -> int:
    return (1 << (bits - 1)) - 1
