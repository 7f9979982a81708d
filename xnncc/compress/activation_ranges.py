"""Ranges of activations for 8-bit integers, from samples: four ways to choose what is cut off.

minmax      the largest magnitude seen
percentile  the magnitude that ``share`` of the elements stay below
mse         the range whose rounding and clipping errors together are least in the mean square (Sung, Shin and Hwang
            2015, "Resiliency of Deep Neural Networks under Quantization")
kl          the range whose 128-level histogram is nearest to the whole one in Kullback-Leibler divergence (Migacz 2017,
            "8-bit Inference with TensorRT")

Ranges are symmetric, [-r, r] for signed and [0, r] for tensors that are never negative, which get twice the levels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .numpy_network import NumpyNetwork, Step
from .result import Samples

Array = np.ndarray
_BINS = 2048
_KL_LEVELS = 128


@dataclass
class Histogram:
    """Magnitudes of one tensor: ``counts`` [2048] over [0, ``largest``]; grows by merging neighbouring bins."""

    counts: Array
    largest: float = 0.0
    is_signed: bool = False

    @classmethod
    def empty(cls) -> Histogram:
        """Return one that has seen nothing."""
        return cls(np.zeros(_BINS))

    def add(self, x: Array) -> None:
        """Add the elements of one tensor; NaN and infinities are left out."""
        x = x[np.isfinite(x)].ravel()
        if not x.size:
            return
        self.is_signed = self.is_signed or bool(x.min() < 0)
        magnitude = np.abs(x)
        seen = float(magnitude.max())
        if self.largest == 0 < seen:
            self.counts, self.largest = self.counts * 1.0, seen
        while seen > self.largest:
            self.counts = np.concatenate([self.counts.reshape(-1, 2).sum(axis=1), np.zeros(_BINS // 2)])
            self.largest *= 2
        self.counts += np.histogram(magnitude, _BINS, (0, self.largest or 1.0))[0]

    @property
    def middles(self) -> Array:
        """Middle of each bin."""
        return (np.arange(_BINS) + 0.5) * (self.largest / _BINS)


def range_minmax(h: Histogram, levels: int) -> float:
    """Return the largest magnitude."""
    filled = np.flatnonzero(h.counts)
    return h.largest * (filled[-1] + 1) / _BINS if len(filled) else 0.0


def range_percentile(h: Histogram, levels: int, share: float = 0.9999) -> float:
    """Return the magnitude that ``share`` of the elements stay below."""
    below = np.cumsum(h.counts)
    return h.largest * (int(np.searchsorted(below, share * below[-1])) + 1) / _BINS if below[-1] else 0.0


def range_mse(h: Histogram, levels: int) -> float:
    """Return the range of least mean square error with ``levels`` steps in [0, r]."""
    most = range_minmax(h, levels)
    candidates = most * np.linspace(0.05, 1, 96)
    errors = []
    for r in candidates:
        step = r / levels
        found = np.clip(np.round(h.middles / step), 0, levels) * step if step > 0 else 0 * h.middles
        errors.append(float((h.counts * np.square(h.middles - found)).sum()))
    return float(candidates[int(np.argmin(errors))]) if most > 0 else 0.0


def range_kl(h: Histogram, levels: int) -> float:
    """Return the range whose clipped histogram loses least information when it is kept in 128 levels."""
    last = int(np.flatnonzero(h.counts)[-1]) + 1 if h.counts.any() else 0
    if last <= _KL_LEVELS:
        return range_minmax(h, levels)
    best, least = last, np.inf
    for end in range(_KL_LEVELS, last + 1, 16):
        p = h.counts[:end].copy()
        p[-1] += h.counts[end:].sum()
        bounds = np.linspace(0, end, _KL_LEVELS + 1).astype(int)
        filled = (h.counts[:end] > 0).astype(np.float64)
        mass, places = np.add.reduceat(h.counts[:end], bounds[:-1]), np.add.reduceat(filled, bounds[:-1])
        each = np.divide(mass, places, out=np.zeros_like(mass), where=places > 0)
        q = np.repeat(each, np.diff(bounds)) * filled
        if (divergence := _divergence(p, q)) < least:
            best, least = end, divergence
    return h.largest * best / _BINS


def _divergence(p: Array, q: Array) -> float:
    """Return KL(p || q) of two histograms; where q is empty it counts as a tenth of an element."""
    p, q = p / p.sum(), np.maximum(q, 0.1)
    q = q / q.sum()
    inside = p > 0
    return float((p[inside] * np.log(p[inside] / q[inside])).sum())


RANGES: dict[str, Callable[[Histogram, int], float]] = {
    "minmax": range_minmax,
    "percentile": range_percentile,
    "mse": range_mse,
    "kl": range_kl,
}


def histograms(network: NumpyNetwork, samples: Samples) -> dict[str, Histogram]:
    """Return the histogram of the first operand of every linear operator, by the name of the operator's result."""
    found: dict[str, Histogram] = {}

    def watch(step: Step, operands: list) -> None:
        name = getattr(getattr(step.call, "op", None), "name", "")
        if name in ("relax.nn.conv2d", "relax.matmul", "relax.nn.conv2d_transpose"):
            found.setdefault(step.result.name, Histogram.empty()).add(operands[0])

    for feeds in network.feeds(samples):
        network.run(feeds, watch)
    return found


def activation_steps(found: dict[str, Histogram], how: str, bits: int = 8) -> dict[str, tuple[float, bool]]:
    """Return (step, is signed) for each tensor; step 1 for tensors that are always zero."""
    steps = {}
    for name, h in found.items():
        levels = (1 << (bits - h.is_signed)) - 1
        r = RANGES[how](h, levels)
        steps[name] = (r / levels if r > 0 else 1.0, h.is_signed)
    return steps


def rounded(x: Array, step: float, is_signed: bool, bits: int = 8) -> Array:
    """Return ``x`` as integers of ``bits`` would carry it."""
    levels = (1 << (bits - is_signed)) - 1
    return (np.clip(np.round(x / step), -levels if is_signed else 0, levels) * step).astype(x.dtype)
