"""What make_models.py stored: frozen graphs with inputs and the outputs that TensorFlow 2.21 computes for them."""

from __future__ import annotations

import io
import lzma
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parents[2] / "data" / "tensorflow"
NETWORKS = ("mobilenet", "recurrent_unrolled", "recurrent_loop", "ssd", "fake_quantised")


@dataclass
class Stored:
    """One graph with inputs and expected outputs by name."""

    graph: bytes = b""
    feeds: dict[str, np.ndarray] = field(default_factory=dict)
    expected: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: value.shape for name, value in self.feeds.items()}


def operator_cases() -> dict[str, Stored]:
    """Return all cases of operator_cases.py."""
    data = lzma.decompress((FOLDER / "operators.npz.xz").read_bytes())
    cases: dict[str, Stored] = defaultdict(Stored)
    with np.load(io.BytesIO(data)) as arrays:
        for key in arrays.files:
            case, kind, *name = key.split("|")
            if kind == "graph":
                cases[case].graph = arrays[key].tobytes()
            else:
                (cases[case].feeds if kind == "in" else cases[case].expected)[name[0]] = arrays[key]
    return dict(cases)


def network(name: str) -> Stored:
    """Return a stored network."""
    stored = Stored((FOLDER / f"{name}.pb").read_bytes())
    with np.load(FOLDER / f"{name}.npz") as arrays:
        for key in arrays.files:
            kind, _, tensor = key.partition(":")
            (stored.feeds if kind == "in" else stored.expected)[tensor] = arrays[key]
    return stored


def error_of(found: np.ndarray, expected: np.ndarray) -> float:
    """Return max |found - expected| / max(|expected|, 1); infinity when shape or dtype differ, exact for integers."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return float("inf")
    if expected.dtype.kind != "f":
        return float("inf") if (found != expected).any() else 0.0
    difference = np.abs(found.astype("float64") - expected)
    return float(difference.max(initial=0.0) / max(1.0, float(np.abs(expected).max(initial=0.0))))
