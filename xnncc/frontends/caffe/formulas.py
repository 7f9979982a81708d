"""Which numpy function is Caffe's formula of which type of layer. ``reference.py`` imports every family explicitly.

A formula gets the layer and its inputs, computes in float64 where sums are deep, and states each default of a field
itself: it shares no line with the converter of the same layer, so that a misreading shows as a difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from ..registering import registrar
from .net import Layer

Array: TypeAlias = np.ndarray
Formula: TypeAlias = "Callable[[Layer, list[Array]], Array | Sequence[Array]]"

FORMULAS: dict[str, Formula] = {}

formula = registrar(FORMULAS, "layer type {} has two formulas")  # for types of layers
