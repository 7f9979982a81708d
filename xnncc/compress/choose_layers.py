"""Which layers a method works on and with which samples: what all one-shot methods decide in the same way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import tvm

from ..errors import CompressError
from .layers import Layer, weight_layers
from .result import Data, Samples, StepConfig


@dataclass(frozen=True)
class Choice:
    """``every`` weight of the network, those ``chosen``, and why the others are ``left`` alone, by name."""

    every: list[Layer]
    chosen: list[Layer]
    left: dict[str, str]


def choose_layers(mod: tvm.IRModule, config: StepConfig, refused: Callable[[Layer], str] = lambda layer: "") -> Choice:
    """Return the weights that the recipe and the method allow; ``refused``: why the method cannot take a layer, an
    empty string when it can."""
    every = weight_layers(mod)
    left = {layer.name: reason for layer in every if (reason := _unfit(layer, config) or refused(layer))}
    return Choice(every, [layer for layer in every if layer.name not in left], left)


def _unfit(layer: Layer, config: StepConfig) -> str:
    if not np.isfinite(layer.weights).all():
        return "it has NaN or infinite values"
    return config.why_not(layer.name)


def calibration(method: str, data: Data, count: object) -> Samples:
    """Return the first ``count`` calibration samples.

    Raises: CompressError when there are none.
    """
    if data.calib is None:
        raise CompressError(method, "it needs samples and there are none", "Give some with --calib.")
    return data.calib[: int(str(count))]
