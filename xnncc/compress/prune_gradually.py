"""Synapse pruning in stages with training between them, to 90 % zeros and beyond.

    stage k of n keeps the share  d + (1 - d) (1 - k/n)^3  of the weights, then trains with the rest held at zero

for the final density d: Zhu and Gupta 2017, "To prune, or not to prune", equation 1. ``score`` says which go:
"gradient", the mean of (w dL/dw)^2 over the updates of the stage before, which is the first-order loss of cutting w
(Molchanov and others 2019, "Importance Estimation for Neural Network Pruning", equation 8, for single weights); or
"magnitude", |w| divided by the RMS of its layer. One budget serves all layers (``synapse_masks.py``), unless
``densities`` fixes some.

Strength s: 0.98 s of the weights become zero; ``sparsity`` other than 0 wins.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

import numpy as np

from ..errors import CompressError
from .layer_report import pruned_line
from .layers import Layer, weight_layers
from .masked_training import TRAINING, TRAINING_LIMITS, MaskedTraining
from .result import Data, MethodReport, Progress, Squeezed, StepConfig
from .synapse_masks import block_of, global_masks
from .weight_matrix import from_rows, has_matrix, to_rows

Array = np.ndarray

DEFAULTS: dict[str, bool | int | float | str | tuple] = {
    "sparsity": 0.0,  # 0: from the strength
    "densities": (),  # "pattern=share": share of a layer's weights that stays, instead of the common budget
    "pattern": "unstructured",  # "1x4", "4x1", "8x1", "2:4"
    "score": "gradient",  # or "magnitude"
    "stages": 4,
    **TRAINING,
}
LIMITS = {"sparsity": (0.0, 0.999), "score": ("gradient", "magnitude"), "stages": (1, 1000), **TRAINING_LIMITS}
NEEDS = "train"


def prune_gradually(state: Squeezed, config: StepConfig, data: Data, seed: int, progress: Progress) -> Squeezed:
    """Return the network with most weights zero, trained to do without them.

    Raises:
        CompressError: torch is missing, no training samples, no such pattern, score or layer.
    """
    p = config.params
    if p["score"] not in ("gradient", "magnitude"):
        raise CompressError(f"score '{p['score']}'", "there is none of that name", "Use gradient or magnitude.")
    block_of(str(p["pattern"]))
    training = MaskedTraining(state.mod, config, data, seed)
    chosen = {name: layer for name, layer in training.layers.items() if not _why_not(layer, config)}
    left_alone = {layer.name: why for layer in weight_layers(state.mod) if (why := _why_not(layer, config))}
    fixed = densities(p["densities"], chosen)
    masks: dict[str, Array] = {}
    stages = max(int(p["stages"]), 1)
    if p["score"] == "gradient" and chosen:
        training.run("prune, look", progress, {}, epochs=1)
    for stage in range(1, stages + 1):
        share = (1 - stage / stages) ** 3
        masks = _masks(training, chosen, fixed, config, share)
        training.run(f"prune, stage {stage}", progress, masks)
    weights = {name: training.weights()[name] for name in chosen}
    zeros = sum(int((w == 0).sum()) for w in weights.values()) / max(sum(w.size for w in weights.values()), 1)
    facts: dict[str, str | int | float] = {"pattern": str(p["pattern"]), "zeros": round(zeros, 4)}
    lines = tuple(pruned_line(layer, weights[name]) for name, layer in chosen.items())
    report = MethodReport("prune_gradually", lines, left_alone, facts)
    return Squeezed(training.result(), {}, report)


def _why_not(layer: Layer, config: StepConfig) -> str:
    if why := config.why_not(layer.name):
        return why
    return "" if has_matrix(layer) else f"a {layer.kind} weight is no matrix of one input"


def densities(entries: tuple[str, ...], layers: Mapping[str, Layer]) -> dict[str, float]:
    """Return name of a constant -> share of its weights that stays, for entries ``pattern=share``.

    Raises:
        CompressError: no layer has such a name, or the share is not in (0, 1].
    """
    found: dict[str, float] = {}
    for entry in entries:
        pattern, _, text = entry.rpartition("=")
        hits = [name for name, layer in layers.items() if fnmatchcase(layer.name, pattern)]
        try:
            share = float(text)
        except ValueError:
            share = 0.0
        if not hits or not 0 < share <= 1:
            known = ", ".join(layer.name for layer in layers.values())
            raise CompressError(f"densities: '{entry}'", "no such layer, or no share in (0, 1]", f"Layers: {known}.")
        found.update(dict.fromkeys(hits, share))
    return found


def _masks(
    training: MaskedTraining,
    layers: Mapping[str, Layer],
    fixed: Mapping[str, float],
    config: StepConfig,
    share: float,
) -> dict[str, Array]:
    """Return the masks of a stage in the weights' own shapes; ``share``: of the way from full that is still to go."""
    p, weights = config.params, training.weights()
    scores = {}
    for name, layer in layers.items():
        w = weights[name].astype(np.float64)
        plain = np.abs(w) / (float(np.sqrt(np.mean(np.square(w)))) or 1.0)
        by_gradient = training.importance.get(name) if p["score"] == "gradient" else None
        scores[name] = to_rows(layer, plain if by_gradient is None else by_gradient.astype(np.float64))
    masks: dict[str, Array] = {}
    for name, density in fixed.items():
        sparsity = 1 - (density + (1 - density) * share)
        masks[name] = global_masks({name: scores[name]}, {name: sparsity}, str(p["pattern"]))[name]
    common = {name: score for name, score in scores.items() if name not in fixed}
    wanted = {}
    for name in common:
        end = 1 - (float(p["sparsity"]) or 0.98 * config.strength) * config.gentler.get(layers[name].name, 1.0)
        wanted[name] = 1 - (end + (1 - end) * share)
    masks.update(global_masks(common, wanted, str(p["pattern"])))
    return {name: from_rows(layers[name], mask) for name, mask in masks.items()}
