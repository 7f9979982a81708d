"""Which function converts which TFLite operator. ``operators.py`` imports every family explicitly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from .op import Op

    Converter: TypeAlias = "Callable[[Op], Any | Sequence[Any]]"

CONVERTERS: dict[str, Converter] = {}  # of real numbers, bools and indices
INTEGER: dict[str, Converter] = {}  # of quantised tensors
MOVERS: set[str] = set()  # kinds that only move, pick or order stored numbers: quantised or not is the same to them


def converter(*kinds: str) -> Callable[[Converter], Converter]:
    """Register a function for operators on real numbers, by TFLite's names or a custom operator's own."""
    return _register(CONVERTERS, kinds)


def integer_converter(*kinds: str) -> Callable[[Converter], Converter]:
    """Register a function for operators on quantised tensors."""
    return _register(INTEGER, kinds)


def mover(*kinds: str) -> Callable[[Converter], Converter]:
    """Register a function for operators that keep stored numbers as they are, quantised or not."""
    MOVERS.update(kinds)
    return _register(CONVERTERS, kinds)


def _register(table: dict[str, Converter], kinds: tuple[str, ...]) -> Callable[[Converter], Converter]:
    def register(function: Converter) -> Converter:
        for kind in kinds:
            if kind in table:
                raise ValueError(f"operator '{kind}' has two converters")
            table[kind] = function
        return function

    return register
