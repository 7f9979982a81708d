"""What cutting neurons saves: multiply-adds and weights of the layers that compute or read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import tvm

from .channel_groups import ChannelGroups
from .channel_labels import Array
from .constants import constant_names
from .layers import weight_layers


@dataclass(frozen=True)
class Cost:
    """A layer: ``amount`` with all its neurons, and the classes along each axis of its weight that can shrink."""

    amount: float
    axes: tuple[Array, ...]


class Costs:
    """The cost of a network as neurons go. ``kind``: "macs" or "weights"."""

    def __init__(self, mod: tvm.IRModule, groups: ChannelGroups, kind: str) -> None:
        names = constant_names(mod)
        self._layers: list[Cost] = []
        self._of_neuron: dict[int, list[int]] = {}
        for layer in weight_layers(mod):
            amount = layer.macs if kind == "macs" else layer.weights.size
            axes = groups.constants[names[layer.call.args[layer.operand]]]
            shrinking = tuple(axis for axis in axes if np.any(axis))
            for neuron in {int(n) for axis in shrinking for n in np.unique(axis) if n}:
                self._of_neuron.setdefault(neuron, []).append(len(self._layers))
            self._layers.append(Cost(float(amount), shrinking))
        self._left = [[np.ones(len(axis), bool) for axis in layer.axes] for layer in self._layers]

    def total(self) -> float:
        """Return the cost of all layers as they are now."""
        return sum(self._cost(i, self._left[i]) for i in range(len(self._layers)))

    def saving(self, neurons: Iterable[int]) -> float:
        """Return what cutting ``neurons`` would save now."""
        gone = np.array(sorted(neurons))
        touched = {i for neuron in gone.tolist() for i in self._of_neuron.get(neuron, [])}
        return sum(self._cost(i, self._left[i]) - self._cost(i, self._without(i, gone)) for i in touched)

    def cut(self, neurons: Iterable[int]) -> None:
        """Take ``neurons`` away."""
        gone = np.array(sorted(neurons))
        for i in {i for neuron in gone.tolist() for i in self._of_neuron.get(neuron, [])}:
            self._left[i] = self._without(i, gone)

    def _without(self, index: int, gone: Array) -> list[Array]:
        pairs = zip(self._left[index], self._layers[index].axes, strict=True)
        return [left & ~np.isin(axis, gone) for left, axis in pairs]

    def _cost(self, index: int, left: list[Array]) -> float:
        return self._layers[index].amount * float(np.prod([mask.mean() for mask in left]))


def choose(
    groups: ChannelGroups,
    costs: Costs,
    importance: Mapping[int, float],
    target: float,
    smallest: Mapping[str, int],
    multiple: int,
) -> tuple[set[int], float]:
    """Return the neurons to cut so that the cost falls to ``target``, and the cost that is reached.

    Blocks of the least important neurons go, those first that cost least importance for what they save. A block ends
    where its group has a multiple of ``multiple`` neurons left; no group falls below ``smallest`` (by name).
    """
    queues = {g.name: sorted(g.neurons, key=lambda n: (importance[n], n)) for g in groups.groups}
    gone: set[int] = set()
    total = costs.total()
    while total > target:
        best: tuple[float, str, list[int]] | None = None
        for name, queue in queues.items():
            count = (len(queue) - 1) % multiple + 1 if len(queue) > multiple else 1
            if len(queue) - count < smallest[name]:
                continue
            block = queue[:count]
            saved = costs.saving(block)
            if saved > 0:
                price = sum(importance[n] for n in block) / saved
                if best is None or price < best[0]:
                    best = (price, name, block)
        if best is None:
            break
        _, name, block = best
        queues[name] = queues[name][len(block) :]
        costs.cut(block)
        gone.update(block)
        total = costs.total()
    return gone, total
