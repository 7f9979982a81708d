"""Which function converts which TensorFlow operator. ``operators.py`` imports every family explicitly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from tvm.relax import Expr

    from .node import Node

    Result: TypeAlias = "Expr | np.ndarray | Sequence[Expr | None]"
    Converter: TypeAlias = "Callable[[Node], Result]"

CONVERTERS: dict[str, Converter] = {}


def converter(*operators: str) -> Callable[[Converter], Converter]:
    """Register a function for operators.

    Raises:
        ValueError: an operator has a converter already.
    """

    def register(function: Converter) -> Converter:
        for name in operators:
            if name in CONVERTERS:
                raise ValueError(f"operator '{name}' has two converters")
            CONVERTERS[name] = function
        return function

    return register
