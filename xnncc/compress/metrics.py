"""How much worse a compressed network is: one number, 0 as the original, larger is worse.

    top1, top5   share of samples that the original has right, less the share of the compressed one; needs labels
    agreement    share of decisions (place of the first output's largest value on its last axis) unlike the original's
    sqnr         energy of the difference divided by the original's: 10^(-dB / 10), worst output
    cosine       1 - cosine similarity, mean over samples, worst output
    FILE.py:F    F(outputs: dict of arrays, labels) -> a score, larger is better; the loss is the original's less it

All arrays are [M, ...]: the outputs of M samples, one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import CompressError, nearest

Outputs = Mapping[str, np.ndarray]
Loss = Callable[[Outputs, Outputs, "np.ndarray | None"], float]  # original, compressed, labels

NAMES = ("top1", "top5", "agreement", "sqnr", "cosine")


@dataclass(frozen=True)
class Metric:
    """A named loss. ``unit``: how a person reads it."""

    name: str
    loss: Loss
    unit: str = "%"

    def words(self, loss: float) -> str:
        """Return ``loss`` in words: "0.31 %"."""
        return f"{100 * loss:.3g} %" if self.unit == "%" else f"{loss:.3g}"


def load_metric(name: str | None, outputs: Outputs, labels: np.ndarray | None) -> Metric:
    """Return the metric called ``name``; without a name the one that fits: top1 with labels, agreement, or sqnr.

    ``outputs``: the original's, to see what fits.

    Raises: CompressError.
    """
    if name is None:
        first = next(iter(outputs.values()))
        is_choice = len(outputs) == 1 and first.ndim >= 2 and first.shape[-1] >= 2 and first.dtype.kind == "f"
        is_class = is_choice and first.size == len(first) * first.shape[-1]
        fits = labels is not None and labels.ndim == 1 and labels.dtype.kind in "iu"
        name = "top1" if is_class and fits else "agreement" if is_class else "sqnr"
    if ":" in name:
        return Metric(name, _own(name), "")
    if name not in NAMES:
        known = f"Known: {', '.join(NAMES)}, or FILE.py:FUNCTION."
        raise CompressError(f"--metric {name}", f"no such metric{nearest(name, list(NAMES))}", known)
    if name in ("top1", "top5") and labels is None:
        raise CompressError(f"--metric {name}", "the samples have no labels", "Add an array 'labels' to --eval.")
    functions: dict[str, Loss] = {
        "top1": lambda before, after, labels: _right(before, labels, 1) - _right(after, labels, 1),
        "top5": lambda before, after, labels: _right(before, labels, 5) - _right(after, labels, 5),
        "agreement": _disagreement,
        "sqnr": _noise,
        "cosine": _angle,
    }
    return Metric(name, functions[name])


def _first(outputs: Outputs) -> np.ndarray:
    return next(iter(outputs.values()))


def _right(outputs: Outputs, labels: Any, best: int) -> float:
    """Return the share of samples whose label is among the ``best`` largest values."""
    scores = _first(outputs).reshape(len(labels), -1)
    chosen = np.argpartition(-scores, min(best, scores.shape[1]) - 1, axis=1)[:, :best]
    return float(np.mean((chosen == np.asarray(labels).reshape(-1, 1)).any(axis=1)))


def _disagreement(before: Outputs, after: Outputs, labels: Any) -> float:
    return float(np.mean(_first(before).argmax(axis=-1) != _first(after).argmax(axis=-1)))


def _noise(before: Outputs, after: Outputs, labels: Any) -> float:
    worst = 0.0
    for name, array in before.items():
        wanted, found = array.astype("float64"), after[name].astype("float64")
        energy = float(np.sum(np.square(wanted)))
        difference = float(np.sum(np.square(found - wanted)))
        worst = max(worst, difference / energy if energy else float(difference > 0))
        worst = worst if np.isfinite(difference) else float("inf")
    return worst


def _angle(before: Outputs, after: Outputs, labels: Any) -> float:
    worst = 0.0
    for name, array in before.items():
        a, b = (side.reshape(len(side), -1).astype("float64") for side in (array, after[name]))
        sizes = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
        cosines = np.where(sizes > 0, np.sum(a * b, axis=1) / np.where(sizes > 0, sizes, 1), (a == b).all(axis=1))
        worst = max(worst, float(np.mean(1 - cosines)))
    return worst


def _own(name: str) -> Loss:
    """Return the loss by a function in the user's own file."""
    from importlib.util import module_from_spec, spec_from_file_location

    file, _, function = name.rpartition(":")
    spec = spec_from_file_location(Path(file).stem, file) if Path(file).is_file() else None
    if spec is None or spec.loader is None:
        raise CompressError(f"--metric {name}", f"there is no Python file '{file}'", "Write FILE.py:FUNCTION.")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    score = getattr(module, function, None)
    if not callable(score):
        raise CompressError(f"--metric {name}", f"'{file}' has no function '{function}'", "Write FILE.py:FUNCTION.")
    return lambda before, after, labels: float(score(dict(before), labels)) - float(score(dict(after), labels))
