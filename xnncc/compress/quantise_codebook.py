"""quantise_codebook: the weights of a layer share a few values, found by k-means.

Han, Mao and Dally 2015, "Deep Compression", section 3: one-dimensional k-means with linear initialisation over the
range of the weights (their section 3.2: large weights matter, and only this start keeps them). Weights that are zero
stay zero: a pruned network keeps its pattern. With calibration samples each weight counts as much as its Fisher
information (Choi, El-Khamy and Lee 2016, "Towards the Limit of Network Quantization", section 4.2, equation 7).

``bits`` = log2 of the codebook's size; 0 takes it from the strength s: round(8 - 5 s), so 8 to 3.
A codebook never has more entries than an eighth of the non-zero weights: a larger one costs more than it saves.
"""

from __future__ import annotations

import numpy as np

from ..ir.coded import CodedTensor
from .choose_layers import choose_layers
from .layer_report import coded_line
from .layers import with_coded
from .result import Data, MethodReport, Progress, Squeezed, StepConfig
from .statistics import cached, collect, statistics_key

Array = np.ndarray

DEFAULTS: dict[str, bool | int | float | str | tuple] = {
    "bits": 0,  # 0: from the strength
    "bits_conv": 0,  # of convolutions, where they differ; 0: as bits
    "iterations": 50,
    "fisher": True,  # weigh by Fisher information when there are samples
    "samples": 32,
}
NEEDS = "nothing"

_WEIGHTS_FOR_A_VALUE = 8


def quantise_codebook(state: Squeezed, config: StepConfig, data: Data, seed: int, progress: Progress) -> Squeezed:
    """Return ``state`` with every weight as indices into a codebook of its own."""
    params = {**DEFAULTS, **config.params}
    choice = choose_layers(state.mod, config)
    layers, chosen, left = choice.every, choice.chosen, choice.left
    fisher: dict[str, Array] = {}
    if params["fisher"] and data.calib is not None and chosen:
        samples = data.calib[: int(params["samples"])]
        key = statistics_key(layers, samples, seed, "codebook")
        fisher = cached(config.journal, key, lambda: collect(state.mod, [], samples, seed, progress)).fisher
    coded, lines = {}, []
    for done, layer in enumerate(chosen):
        progress(f"quantise {layer.name}", done, len(chosen))
        bits = int(layer.kind.startswith("conv") and params["bits_conv"]) or int(params["bits"])
        bits = bits or round(8 - 5 * config.strength_of(layer.name))
        tensor = shared_values(layer.weights, 1 << bits, fisher.get(layer.digest), int(params["iterations"]))
        coded[layer.digest] = tensor
        lines.append(coded_line(layer, tensor, state.coded.get(layer.digest)))
    return with_coded(state, coded, MethodReport("quantise_codebook", tuple(lines), left))


def shared_values(w: Array, most: int, importance: Array | None, iterations: int) -> CodedTensor:
    """Return ``w`` with at most ``most`` different values, zero among them when w has zeros."""
    flat = w.ravel().astype(np.float64)
    kept = np.flatnonzero(flat)
    has_zero = len(kept) < flat.size
    size = max(min(most - has_zero, len(kept) // _WEIGHTS_FOR_A_VALUE), 1)
    if not len(kept):
        return CodedTensor(np.zeros(w.shape, np.int32), codebook=np.zeros(1, np.float32))
    weight = np.ones(len(kept)) if importance is None else importance.ravel()[kept] + 1e-3 * importance.mean() + 1e-30
    centres = _kmeans(flat[kept], weight, size, iterations)
    book = np.unique(np.concatenate([centres, [0.0]] if has_zero else [centres]).astype(np.float32))
    edges = (book[1:] + book[:-1]) / 2
    index = np.searchsorted(edges, w.ravel())
    if has_zero:
        index[flat == 0] = np.searchsorted(book, 0)
    return CodedTensor(index.reshape(w.shape).astype(np.int32), codebook=book)


def _kmeans(values: Array, weight: Array, size: int, iterations: int) -> Array:
    """Return the centres of weighted k-means in one dimension; sums come from running sums of the sorted values."""
    order = np.argsort(values, kind="stable")
    values, weight = values[order], weight[order]
    mass = np.concatenate([[0], np.cumsum(weight)])
    moment = np.concatenate([[0], np.cumsum(weight * values)])
    centres = np.linspace(values[0], values[-1], size)
    for _ in range(iterations):
        cuts = np.concatenate([[0], np.searchsorted(values, (centres[1:] + centres[:-1]) / 2), [len(values)]])
        heavy = mass[cuts[1:]] - mass[cuts[:-1]]
        found = np.divide(moment[cuts[1:]] - moment[cuts[:-1]], heavy, out=centres.copy(), where=heavy > 0)
        if np.array_equal(found, centres):
            break
        centres = np.sort(found)
    return centres
