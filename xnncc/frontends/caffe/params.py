"""Params: the fields of one message of a layer, by type and with Caffe's defaults; remembers which were asked for."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

from ..refused import Refused
from .prototxt import Message, Scalar
from .refused import Broken

MAX_COUNT = 2**31 - 1
_T = TypeVar("_T")
_TRUE, _FALSE = ("true", "t", "True", "1"), ("false", "f", "False", "0")


class Params:
    """``pooling_param`` of a layer, say; of a layer that has none all fields are at their defaults."""

    def __init__(self, name: str, message: Message | None) -> None:
        self.name, self.message = name, message or Message(0)
        self._read: set[str] = set()

    def has(self, field: str) -> bool:
        """Return whether the field is given."""
        self._read.add(field)
        return field in self.message.fields

    def ignore(self, *fields: str) -> None:
        """Say that fields change nothing at inference."""
        self._read.update(fields)

    def unread(self) -> list[str]:
        """Return the fields that nobody asked for."""
        return sorted(set(self.message.fields) - self._read)

    def wholes(self, field: str, low: int = 0) -> list[int]:
        """Return a repeated whole number, each at least ``low``."""
        return [self._whole(field, scalar, low) for scalar in self._scalars(field)]

    def numbers(self, field: str) -> list[float]:
        """Return a repeated number."""
        return [self._number(field, scalar) for scalar in self._scalars(field)]

    def whole(self, field: str, default: int, low: int = 0) -> int:
        """Return a whole number, at least ``low``."""
        return self._single(field, default, lambda scalar: self._whole(field, scalar, low))

    def number(self, field: str, default: float) -> float:
        """Return a finite number."""
        return self._single(field, default, lambda scalar: self._number(field, scalar))

    def flag(self, field: str, default: bool) -> bool:
        """Return true or false."""

        def parse(scalar: Scalar) -> bool:
            if scalar.text in _TRUE or scalar.text in _FALSE:
                return scalar.text in _TRUE
            raise self._wrong(field, scalar, "true or false")

        return self._single(field, default, parse)

    def choice(self, field: str, default: str, allowed: dict[str, str]) -> str:
        """Return one of the words of ``allowed``, which may also be given as their numbers: ``{"0": "MAX", ...}``."""

        def parse(scalar: Scalar) -> str:
            word = allowed.get(scalar.text, scalar.text)
            if word not in allowed.values():
                words = ", ".join(sorted(set(allowed.values())))
                raise Refused(f"{self.name} {field} '{scalar.text}' is not supported", f"Supported: {words}.")
            return word

        return self._single(field, default, parse)

    def message_of(self, field: str) -> Params | None:
        """Return a message within this one; None when it is not given."""
        self._read.add(field)
        found = self.message.messages(field)
        return Params(f"{self.name}.{field}", found[0]) if found else None

    def messages_of(self, field: str) -> list[Params]:
        """Return all messages of a repeated field."""
        self._read.add(field)
        return [Params(f"{self.name}.{field}", message) for message in self.message.messages(field)]

    def _scalars(self, field: str) -> list[Scalar]:
        self._read.add(field)
        values = self.message.fields.get(field, [])
        scalars = [value for value in values if isinstance(value, Scalar)]
        if len(scalars) != len(values):
            raise Broken(f"{self.name} {field} is a message, a value was expected")
        return scalars

    def _single(self, field: str, default: _T, parse: Callable[[Scalar], _T]) -> _T:
        scalars = self._scalars(field)
        if len(scalars) > 1:
            raise Broken(f"{self.name} {field} is given {len(scalars)} times")
        return parse(scalars[0]) if scalars else default

    def _whole(self, field: str, scalar: Scalar, low: int) -> int:
        try:
            value = int(scalar.text, 0) if not scalar.is_string else None
        except ValueError:
            value = None
        if value is None:
            raise self._wrong(field, scalar, "a whole number")
        if not low <= value <= MAX_COUNT:
            raise Broken(f"{self.name} {field} is {scalar.text}, expected {low} to {MAX_COUNT}")
        return value

    def _number(self, field: str, scalar: Scalar) -> float:
        try:
            value = float(scalar.text.removesuffix("f")) if not scalar.is_string else math.nan
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise self._wrong(field, scalar, "a finite number")
        return value

    def _wrong(self, field: str, scalar: Scalar, expected: str) -> Broken:
        return Broken(f"{self.name} {field} is '{scalar.text}' (line {scalar.line}), expected {expected}")
