"""prune_synapses: weights become zero in one shot, the others of their row make good for them.

The loss of cutting weight w_c alone, the others moved to their best, is w_c^2 / (2 [H^-1]_cc) (Hassibi and Stork
1993, "Second Order Derivatives for Network Pruning: Optimal Brain Surgeon", equation 5; Frantar and Alistarh 2022,
"Optimal Brain Compression", equation 3). H is the second moment of the layer's inputs with positions weighed by the
loss's gradient (``statistics.py``), times the mean square gradient of an output, so that scores of different layers
can share one budget. Frantar and Alistarh cut one weight at a time and update H^-1 for each row; here the mask is
chosen at once and the columns are walked in one order for all rows (their later SparseGPT, 2023), which costs n^3
instead of R n^3.

``score``: "second-order" (with samples), "magnitude" (|w| / RMS of the layer; the only one without samples).
``sparsity`` of all weights together; 0 takes it from the strength s: 0.9 s.
"""

from __future__ import annotations

import numpy as np

from ..errors import CompressError
from .choose_layers import choose_layers
from .compensate import inverse_factor, output_error, walk_columns
from .layer_report import pruned_line
from .layers import Layer, with_constants
from .result import Data, MethodReport, Progress, Squeezed, StepConfig
from .statistics import Statistics, cached, collect, statistics_key
from .synapse_masks import block_of, global_masks
from .weight_matrix import from_rows, has_matrix, to_rows

Array = np.ndarray

DEFAULTS: dict[str, bool | int | float | str | tuple] = {
    "sparsity": 0.0,  # 0: from the strength
    "pattern": "unstructured",  # "1x4", "4x1", "8x1", "2:4", ...
    "score": "second-order",  # "magnitude"
    "damp": 0.01,
    "samples": 64,
    "depthwise": False,  # cut depthwise layers as well: they hold few weights and each one counts
}
NEEDS = "nothing"


def prune_synapses(state: Squeezed, config: StepConfig, data: Data, seed: int, progress: Progress) -> Squeezed:
    """Return ``state`` with the least important weights zero.

    Raises: CompressError for a pattern or score that does not exist.
    """
    params = {**DEFAULTS, **config.params}
    block_of(str(params["pattern"]))
    if params["score"] not in ("second-order", "magnitude"):
        raise CompressError(
            f"score '{params['score']}'", "there is none of that name", "Use second-order or magnitude."
        )
    choice = choose_layers(state.mod, config, lambda layer: _refused(layer, bool(params["depthwise"])))
    layers, chosen, left = choice.every, choice.chosen, choice.left
    found = Statistics()
    if params["score"] == "second-order" and data.calib is not None and chosen:
        samples = data.calib[: int(params["samples"])]
        key = statistics_key(layers, samples, seed, True, [])
        found = cached(config.journal, key, lambda: collect(state.mod, layers, samples, seed, progress))
    scores = {layer.digest: _scores(layer, found, float(params["damp"])) for layer in chosen}
    wanted = {
        layer.digest: (float(params["sparsity"]) or 0.9 * config.strength) * config.gentler.get(layer.name, 1.0)
        for layer in chosen
    }
    masks = global_masks(scores, wanted, str(params["pattern"]))
    new, lines = {}, []
    for done, layer in enumerate(chosen):
        progress(f"prune {layer.name}", done, len(chosen))
        new[layer.digest], error = _cut(layer, masks[layer.digest], found, float(params["damp"]))
        lines.append(pruned_line(layer, new[layer.digest], error))
    coded = {key: tensor for key, tensor in state.coded.items() if key not in new}
    facts: dict[str, str | int | float] = {"pattern": str(params["pattern"]), "zeros": _share_of_zeros(new)}
    report = MethodReport("prune_synapses", tuple(lines), left, facts)
    return Squeezed(with_constants(state.mod, new), coded, report)


def _refused(layer: Layer, depthwise: bool) -> str:
    if not has_matrix(layer):
        return f"a {layer.kind} weight is no matrix of one input"
    return "" if depthwise or not layer.is_depthwise else "a depthwise layer: few weights and each one counts"


def _scores(layer: Layer, found: Statistics, damp: float) -> Array:
    """Return [G, R, n]: what cutting each weight costs."""
    rows = to_rows(layer, layer.weights).astype(np.float64)
    if layer.digest not in found.moments:
        return np.abs(rows) / (float(np.sqrt(np.mean(np.square(rows)))) or 1.0)
    second, _ = found.inputs(layer.digest)
    factor = inverse_factor(second, damp).astype(np.float64)
    inverse = np.square(factor).sum(axis=1)  # diag(U'U) [G, n]
    diagonal = float(np.mean(np.diagonal(second, axis1=1, axis2=2)))
    fisher = float(found.fisher[layer.digest].mean())
    return np.square(rows) / inverse[:, None, :] * (fisher / diagonal if diagonal > 0 else 0.0)


def _cut(layer: Layer, mask: Array, found: Statistics, damp: float) -> tuple[Array, float]:
    """Return the weight, zero outside ``mask``, and the relative RMS error of the layer's output (of the weight)."""
    rows = to_rows(layer, layer.weights)
    if mask.all():
        return layer.weights, 0.0
    if layer.digest not in found.moments:
        cut = rows * mask
        return from_rows(layer, cut), float(np.sqrt(np.sum(np.square(rows - cut)) / np.sum(np.square(rows))))
    second, _ = found.inputs(layer.digest)
    lead = np.arange(rows.shape[0])

    def masked(column: Array, index: Array, pivot: Array) -> Array:
        return column * mask[lead, :, index]

    cut = walk_columns(rows, second, damp, masked)
    energy = output_error(rows, second)
    return from_rows(layer, cut), float(np.sqrt(output_error(rows - cut, second) / energy)) if energy > 0 else 0.0


def _share_of_zeros(new: dict[str, Array]) -> float:
    total = sum(array.size for array in new.values())
    return round(sum(int(np.sum(array == 0)) for array in new.values()) / max(total, 1), 4)
