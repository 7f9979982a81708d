"""Which numpy function is Caffe's formula of which type of layer. ``reference.py`` imports every family explicitly.

A formula gets the layer and its inputs, computes in float64 where sums are deep, and states each default of a field
itself: it shares no line with the converter of the same layer, so that a misreading shows as a difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from .net import Layer

Array: TypeAlias = np.ndarray
Formula: TypeAlias = "Callable[[Layer, list[Array]], Array | Sequence[Array]]"

FORMULAS: dict[str, Formula] = {}


def formula(*types: str) -> Callable[[Formula], Formula]:
    """Register a function for types of layers.

    Raises:
        ValueError: a type has a formula already.
    """

    def register(function: Formula) -> Formula:
        for name in types:
            if name in FORMULAS:
                raise ValueError(f"layer type '{name}' has two formulas")
            FORMULAS[name] = function
        return function

    return register
