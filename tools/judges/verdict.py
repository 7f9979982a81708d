"""The words that judges and engines share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Feeds = dict[str, np.ndarray]
Run = Callable[[Feeds], dict[str, np.ndarray]]


@dataclass(frozen=True)
class Verdict:
    """``right``: whether every answer asked for was the expected one; ``said``: what was answered, in one sentence."""

    right: bool
    said: str


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Logistic function in float64, without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * np.asarray(x, np.float64)))
