"""What calibration learns about each weight from unlabelled samples: second moments of inputs, Fisher information.

One forward and one backward run a sample, with labels from ``sample_loss.py``. Samples are halved by turns, so that a
method can fit on one half and judge on the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tvm

from ..ir.coded import digest
from .layers import Layer
from .numpy_network import ConstantRef, NumpyNetwork, Step
from .result import Progress, Samples
from .sample_loss import decisions, find_heads, sampled_gradient
from .weight_matrix import columns, has_matrix, position_weights

Array = np.ndarray
_HALVES = 2
_MOST_POSITIONS = 2048  # of a layer in one sample: more add time, but no rank


@dataclass
class Moments:
    """Inputs of one layer in one half: ``second`` [G, n, n] = E[v x x'], ``first`` [G, n] = E[v x], E over positions.

    v is the weight of a position: the mean square of the loss's gradient there, scaled to a mean of 1 over all
    positions, so that what the network's answer hangs on counts and the margin of an image does not.
    """

    second: Array
    first: Array
    weight: float = 0.0

    def add(self, x: Array, v: Array) -> None:
        """Add the positions of one sample: x [G, n, positions], v [positions]."""
        weighted = x * v
        self.second += np.matmul(weighted, x.swapaxes(1, 2))
        self.first += weighted.sum(axis=2)
        self.weight += float(v.sum())


@dataclass
class Statistics:
    """``moments``: digest -> one ``Moments`` a half, not yet divided by their weight. ``fisher``: digest of any float
    constant -> E[(dL/dw)^2] for one sample, in the constant's shape. ``decisions``: labels of a sample."""

    moments: dict[str, list[Moments]] = field(default_factory=dict)
    fisher: dict[str, Array] = field(default_factory=dict)
    decisions: int = 1
    samples: int = 0

    def inputs(self, key: str, half: int | None = None) -> tuple[Array, Array]:
        """Return (second [G, n, n], first [G, n]) of a layer's inputs; of both halves when ``half`` is None."""
        chosen = self.moments[key] if half is None else [self.moments[key][half]]
        weight = sum(m.weight for m in chosen) or 1.0
        return sum(m.second for m in chosen) / weight, sum(m.first for m in chosen) / weight  # type: ignore[return-value]


class _Collector:
    """Adds samples to ``Statistics``."""

    def __init__(self, layers: list[Layer], guided: bool, rng: np.random.Generator) -> None:
        self.found = Statistics()
        self._layers = {layer.digest: layer for layer in layers if has_matrix(layer)}
        self._guided = guided
        self._rng = rng
        self._operands: dict[Any, list[Any]] = {}

    def _layer(self, step: Step) -> Layer | None:
        weight = step.operands[1] if len(step.operands) > 1 else None
        return self._layers.get(weight.digest) if isinstance(weight, ConstantRef) else None

    def forward(self, step: Step, operands: list[Any]) -> None:
        if self._layer(step) is not None:
            self._operands[step.result] = operands

    def backward(self, step: Step, gradient: Array) -> None:
        layer = self._layer(step)
        if layer is None:
            return
        x = columns(layer, self._operands.pop(step.result))
        even = not self._guided or layer.kind == "conv2d_transpose"
        v = np.ones(x.shape[2], x.dtype) if even else position_weights(layer, gradient)
        if len(v) > _MOST_POSITIONS:
            some = self._rng.choice(len(v), _MOST_POSITIONS, replace=False)
            x, v = x[:, :, some], v[some] * np.float32(len(v) / _MOST_POSITIONS)
        if layer.digest not in self.found.moments:
            groups, n, _ = x.shape
            self.found.moments[layer.digest] = [
                Moments(np.zeros((groups, n, n), np.float32), np.zeros((groups, n), np.float32)) for _ in range(_HALVES)
            ]
        self.found.moments[layer.digest][self.found.samples % _HALVES].add(x, v)

    def gradients(self, gradients: Mapping[str, Array]) -> None:
        for key, gradient in gradients.items():
            square = np.square(gradient)
            self.found.fisher[key] = self.found.fisher[key] + square if key in self.found.fisher else square
        self.found.samples += 1
        self._operands.clear()


def collect(
    mod: tvm.IRModule,
    layers: list[Layer],
    samples: Samples,
    seed: int,
    progress: Progress,
    guided: bool = True,
    kinds: Mapping[str, str] | None = None,
) -> Statistics:
    """Return the statistics of ``mod`` on all of ``samples``; ``kinds`` as in ``find_heads``."""
    network, rng = NumpyNetwork(mod), np.random.default_rng(seed)
    heads = find_heads(network, kinds or {})
    keep = {head.var for head in heads}
    collector = _Collector(layers, guided, rng)
    for feeds in network.feeds(samples):
        trace = network.trace(feeds, collector.forward, keep=keep)
        values = {head: trace.values[head.var] for head in heads}
        collector.found.decisions = sum(decisions(head, value) for head, value in values.items())
        seeds = {head.var: sampled_gradient(head, value, rng) for head, value in values.items()}
        collector.gradients(trace.backward(seeds, collector.backward))
        progress("calibrate", collector.found.samples, len(samples))
    for key in collector.found.fisher:
        collector.found.fisher[key] = collector.found.fisher[key] / max(collector.found.samples, 1)
    return collector.found


def cached(folder: str | None, key: str, make: Any) -> Statistics:
    """Return the statistics stored in ``folder`` under ``key``, or those that ``make()`` returns, stored there."""
    if folder is None:
        return make()
    path = Path(folder) / f"statistics-{key}.npz"
    if path.is_file():
        return _read(path)
    found = make()
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(".tmp.npz")
    np.savez(aside, **_arrays(found))  # type: ignore[arg-type]
    aside.rename(path)
    return found


def even_statistics(
    mod: tvm.IRModule, layers: list[Layer], samples: Samples, seed: int, folder: str | None, progress: Progress
) -> Statistics:
    """Return what ``collect`` gives when every sample counts alike, kept in ``folder``."""
    key = statistics_key(layers, samples, seed, "even")
    return cached(folder, key, lambda: collect(mod, layers, samples, seed, progress, guided=False))


def statistics_key(layers: list[Layer], samples: Samples, *rest: object) -> str:
    """Return what tells the statistics of one network on some samples from all others."""
    parts = [digest(samples.inputs[name]) for name in sorted(samples.inputs)] + [layer.digest for layer in layers]
    return digest(np.frombuffer(repr((parts, rest)).encode(), np.uint8))[:16]


def _arrays(found: Statistics) -> dict[str, Array]:
    arrays = {f"fisher/{key}": value for key, value in found.fisher.items()}
    for key, halves in found.moments.items():
        for half, m in enumerate(halves):
            arrays |= {
                f"second/{key}/{half}": m.second,
                f"first/{key}/{half}": m.first,
                f"weight/{key}/{half}": np.float64(m.weight),  # type: ignore[dict-item]
            }
    return arrays | {"counts": np.array([found.decisions, found.samples])}


def _read(path: Path) -> Statistics:
    with np.load(path) as arrays:
        count, samples = arrays["counts"]
        found = Statistics(decisions=int(count), samples=int(samples))
        for name in arrays.files:
            kind, _, key = name.partition("/")
            if kind == "fisher":
                found.fisher[key] = arrays[name]
            elif kind == "weight":
                own = key.partition("/")[0]
                moments = Moments(arrays[f"second/{key}"], arrays[f"first/{key}"], float(arrays[name]))
                found.moments.setdefault(own, []).append(moments)
    return found
