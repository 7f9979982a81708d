"""Which function converts which TFLite operator. ``operators.py`` imports every family explicitly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ..registering import registrar

if TYPE_CHECKING:
    from .op import Op

    Converter: TypeAlias = "Callable[[Op], Any | Sequence[Any]]"

CONVERTERS: dict[str, Converter] = {}  # of real numbers, bools and indices
INTEGER: dict[str, Converter] = {}  # of quantised tensors
MOVERS: set[str] = set()  # kinds that only move, pick or order stored numbers: quantised or not is the same to them


_TWICE = "operator {} has two converters"
converter = registrar(CONVERTERS, _TWICE)  # on real numbers, by TFLite's names or a custom operator's own
integer_converter = registrar(INTEGER, _TWICE)  # on quantised tensors


def mover(*kinds: str) -> Callable[[Converter], Converter]:
    """Register a function for operators that keep stored numbers as they are, quantised or not."""
    MOVERS.update(kinds)
    return converter(*kinds)
