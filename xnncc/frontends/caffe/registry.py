"""Which function converts which type of Caffe layer. ``layers.py`` imports every family explicitly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from tvm.relax import Expr

    from .node import Node

    Result: TypeAlias = "Expr | np.ndarray | Sequence[Expr]"
    Converter: TypeAlias = "Callable[[Node], Result]"

CONVERTERS: dict[str, Converter] = {}


def converter(*types: str) -> Callable[[Converter], Converter]:
    """Register a function for types of layers.

    Raises:
        ValueError: a type has a converter already.
    """

    def register(function: Converter) -> Converter:
        for name in types:
            if name in CONVERTERS:
                raise ValueError(f"layer type '{name}' has two converters")
            CONVERTERS[name] = function
        return function

    return register
