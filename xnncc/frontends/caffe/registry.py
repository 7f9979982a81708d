"""Which function converts which type of Caffe layer. ``layers.py`` imports every family explicitly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from ..registering import registrar

if TYPE_CHECKING:
    import numpy as np
    from tvm.relax import Expr

    from .node import Node

    Result: TypeAlias = "Expr | np.ndarray | Sequence[Expr]"
    Converter: TypeAlias = "Callable[[Node], Result]"

CONVERTERS: dict[str, Converter] = {}

converter = registrar(CONVERTERS, "layer type {} has two converters")  # for types of layers
