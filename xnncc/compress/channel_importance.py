"""What each neuron is worth, without gradients: by its weights, or by what it does on calibration samples.

    l1, l2          size of the weights that compute it, divided by the mean of its group (Li and others 2017, "Pruning
                    Filters for Efficient ConvNets", section 3.1)
    batch_norm      scale of its batch norm (Liu and others 2017, "Learning Efficient Convolutional Networks through
                    Network Slimming", section 3). Norms are folded by now; but a norm's output has the standard
                    deviation |scale| over its data, so that is measured on calibration samples
    reconstruction  what its readers' outputs lose when it goes and the others make good what they can, as a share of
                    those outputs: tr(W_c ([H^-1]_cc)^-1 W_c') for the columns c of the neuron and the inputs' second
                    moment H (Hassibi and Stork 1993, equation 5, for blocks of columns)

``channel_taylor.py`` has the one that needs gradients.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import tvm

from .channel_groups import ChannelGroups
from .layers import Layer, weight_layers
from .numpy_network import NumpyNetwork, Step
from .result import Samples
from .weight_matrix import columns, has_matrix

Array = np.ndarray
_MOST_POSITIONS = 1024  # of a layer in one sample
DAMP = 0.01  # of the mean of a moment's diagonal, as in compensate.py


def by_weights(mod: tvm.IRModule, groups: ChannelGroups, power: int) -> dict[int, float]:
    """Return the l1 or l2 importance of every neuron."""
    found: dict[int, float] = {n: 0.0 for group in groups.groups for n in group.neurons}
    made = {maker: group for group in groups.groups for maker in group.makers}
    for layer in weight_layers(mod):
        name = layer.name.removesuffix("/r").removesuffix("/w")
        if name not in made or layer.is_depthwise:
            continue
        classes = groups.values[name] if layer.kind != "recurrent" else None
        rows = np.moveaxis(layer.weights, layer.axis, 0).reshape(layer.weights.shape[layer.axis], -1)
        sizes = (np.abs(rows) ** power).sum(axis=1)
        for neuron, size in zip(_output_classes(layer, classes, made[name].neurons), sizes, strict=True):
            if neuron in found:
                found[neuron] += float(size)
    return _relative({n: size ** (1 / power) for n, size in found.items()}, groups)


def _output_classes(layer: Layer, axes: list[Array] | None, neurons: tuple[int, ...]) -> list[int]:
    """Return the neuron of each output row of a layer's weight."""
    if axes is None:  # gates of a recurrent layer, unit by unit
        return list(neurons) * (layer.weights.shape[layer.axis] // len(neurons))
    return [int(n) for n in (axes[-1] if layer.kind in ("matmul", "take") else axes[1])]


def _relative(found: dict[int, float], groups: ChannelGroups) -> dict[int, float]:
    for group in groups.groups:
        mean = sum(found[n] for n in group.neurons) / len(group.neurons)
        for n in group.neurons:
            found[n] = found[n] / mean if mean > 0 else 0.0
    return found


@dataclass
class Inputs:
    """What the readers of neurons read: ``second`` [n + 1, n + 1] sums of products of columns, the last column 1."""

    second: dict[str, Array] = field(default_factory=dict)
    spread: dict[str, Array] = field(default_factory=dict)  # maker -> [C] standard deviation of its output


def watch_inputs(mod: tvm.IRModule, groups: ChannelGroups, samples: Samples, seed: int) -> Inputs:
    """Run ``mod`` on all of ``samples`` and return what its readers and makers saw."""
    network, rng, found = NumpyNetwork(mod), np.random.default_rng(seed), Inputs()
    readers = {reader.name for reader in groups.readers if np.any(reader.classes)}
    layers = {layer.name: layer for layer in weight_layers(mod) if layer.name in readers and has_matrix(layer)}
    makers = {maker for group in groups.groups for maker in group.makers}
    moments: dict[str, list[Array]] = {}

    def watch(step: Step, operands: list[Array]) -> None:
        layer = layers.get(step.result.name)
        if layer is None:
            return
        x = columns(layer, operands)[0]
        if x.shape[1] > _MOST_POSITIONS:
            x = x[:, rng.choice(x.shape[1], _MOST_POSITIONS, replace=False)]
        x = np.concatenate([x, np.ones((1, x.shape[1]), x.dtype)]).astype(np.float64)
        product = x @ x.T
        found.second[layer.name] = found.second[layer.name] + product if layer.name in found.second else product

    keep = [step.result for step in network.steps if step.result.name in makers]
    for feeds in network.feeds(samples):
        trace = network.trace(feeds, watch, remember=False, keep=keep)
        for var in keep:
            axis = 1 if getattr(network.producers[var].call.op, "name", "").startswith("relax.nn.conv") else -1
            y = np.moveaxis(trace.values[var], axis, 0).reshape(trace.values[var].shape[axis], -1).astype(np.float64)
            moments.setdefault(var.name, []).append(np.stack([y.mean(axis=1), np.square(y).mean(axis=1)]))
    for name, parts in moments.items():
        first, second = np.mean(parts, axis=0)
        found.spread[name] = np.sqrt(np.maximum(second - first**2, 0))
    return found


def by_spread(groups: ChannelGroups, inputs: Inputs) -> dict[int, float]:
    """Return the batch-norm importance: the mean over the layers that compute a neuron."""
    found: dict[int, list[float]] = {n: [] for group in groups.groups for n in group.neurons}
    for maker, spread in inputs.spread.items():
        axes = groups.values[maker]
        classes = next((axis for axis in (axes[1:2] + axes[-1:]) if len(axis) == len(spread)), None)
        for neuron, size in zip(classes if classes is not None else [], spread, strict=False):
            if int(neuron) in found:
                found[int(neuron)].append(float(size))
    return {n: float(np.mean(sizes)) if sizes else float("inf") for n, sizes in found.items()}


def by_reconstruction(mod: tvm.IRModule, groups: ChannelGroups, inputs: Inputs) -> dict[int, float]:
    """Return the share of its readers' outputs that each neuron is worth after the best correction."""
    found: dict[int, float] = {}
    for name, layer, classes in reader_columns(mod, groups):
        if name not in inputs.second:
            continue
        second = inputs.second[name]
        w = reader_rows(layer)
        inverse = np.linalg.inv(_damped(second))
        centred = second[:-1, :-1] - np.outer(second[:-1, -1], second[-1, :-1]) / second[-1, -1]
        energy = float(np.einsum("rn,rn->", w @ centred, w)) or 1.0
        for neuron in np.unique(classes[classes > 0]).tolist():
            at = np.flatnonzero(classes == neuron)
            lost = np.linalg.solve(inverse[np.ix_(at, at)], w[:, at].T)
            found[neuron] = found.get(neuron, 0.0) + max(float(np.sum(w[:, at].T * lost)), 0.0) / energy
    return {n: found.get(n, float("inf")) for group in groups.groups for n in group.neurons}


def _damped(second: Array) -> Array:
    mean = float(np.trace(second[:-1, :-1])) / max(len(second) - 1, 1) or 1.0
    damped = second.copy()
    damped[np.arange(len(second) - 1), np.arange(len(second) - 1)] += DAMP * mean
    return damped


def reader_columns(mod: tvm.IRModule, groups: ChannelGroups) -> list[tuple[str, Layer, Array]]:
    """Return each reader with its layer and the neuron of each column of its weight's matrix."""
    layers = {layer.name: layer for layer in weight_layers(mod) if layer.groups == 1 and has_matrix(layer)}
    found = []
    for reader in groups.readers:
        layer = layers.get(reader.name)
        if layer is None or not np.any(reader.classes):
            continue
        taps = int(np.prod(layer.weights.shape[2:])) if layer.kind == "conv2d" else 1
        found.append((reader.name, layer, np.repeat(reader.classes, taps)))
    return found


def reader_rows(layer: Layer) -> Array:
    """Return the weight [outputs, columns] float64."""
    w = layer.weights.astype(np.float64)
    return w.T if layer.kind == "matmul" else w.reshape(len(w), -1)
