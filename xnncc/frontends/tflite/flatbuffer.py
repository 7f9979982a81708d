"""A bounded reader of FlatBuffers: every offset of a hostile file is checked before anything is read through it.

The format (flatbuffers.dev, "FlatBuffer Internals"): a table starts with the signed distance back to its vtable; the
vtable holds [own bytes, table bytes, offset of slot 0, of slot 1, ...] as uint16, 0 where a slot has its default.
Strings, vectors and tables are reached by a uint32 distance forward. Little endian.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
MAX_TABLES = 2_000_000  # tables of one file; vectors that share tables could multiply the work of a small file

_SCALARS = {"bool": "<B", "int8": "<b", "uint8": "<B", "int32": "<i", "uint32": "<I", "uint64": "<Q", "float32": "<f"}


class Malformed(Exception):
    """An offset or a length leads outside of the file."""


class Buffer:
    """The bytes of a file, and how many tables may still be read from it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._left = MAX_TABLES

    def root(self) -> Table:
        """Return the root table."""
        return self.table(self.number("<I", 0))

    def number(self, form: str, at: int) -> Any:
        """Return the number of struct format ``form`` at byte ``at``."""
        if not 0 <= at <= len(self.data) - struct.calcsize(form):
            raise Malformed(f"offset {at} lies outside of its {len(self.data)} bytes")
        return struct.unpack_from(form, self.data, at)[0]

    def table(self, at: int) -> Table:
        """Return the table at byte ``at``."""
        self._left -= 1
        if self._left < 0:
            raise Malformed(f"it has more than {MAX_TABLES} tables")
        vtable = at - self.number("<i", at)
        size = self.number("<H", vtable)
        if size < 4 or size % 2 or vtable + size > len(self.data):
            raise Malformed(f"the table at byte {at} has a vtable of {size} bytes")
        return Table(self, at, vtable, (size - 4) // 2)


class Table:
    """One table; slots are numbered in the order of the schema."""

    __slots__ = ("_at", "_buffer", "_slots", "_vtable")

    def __init__(self, buffer: Buffer, at: int, vtable: int, slots: int) -> None:
        self._buffer, self._at, self._vtable, self._slots = buffer, at, vtable, slots

    def _place(self, slot: int) -> int:
        """Return the byte where ``slot`` stands, 0 when it is absent."""
        offset = self._buffer.number("<H", self._vtable + 4 + 2 * slot) if slot < self._slots else 0
        return self._at + offset if offset else 0

    def _target(self, slot: int) -> int:
        place = self._place(slot)
        return place + self._buffer.number("<I", place) if place else 0

    def scalar(self, slot: int, kind: str, default: Any = 0) -> Any:
        """Return a number or bool; ``kind`` is one of int8, uint8, int32, uint32, uint64, float32, bool."""
        place = self._place(slot)
        if not place:
            return default
        value = self._buffer.number(_SCALARS[kind], place)
        return bool(value) if kind == "bool" else value

    def table(self, slot: int) -> Table | None:
        """Return the table in ``slot``, None when it is absent."""
        target = self._target(slot)
        return self._buffer.table(target) if target else None

    def array(self, slot: int, dtype: str) -> np.ndarray:
        """Return a vector of numbers as a view of the file; empty when it is absent."""
        kind = np.dtype(dtype).newbyteorder("<")
        target = self._target(slot)
        if not target:
            return np.empty(0, kind)
        count = self._length(target, kind.itemsize)
        return np.frombuffer(self._buffer.data, kind, count, target + 4)

    def ints(self, slot: int) -> tuple[int, ...]:
        """Return a vector of int32."""
        return tuple(int(value) for value in self.array(slot, "int32"))

    def text(self, slot: int) -> str:
        """Return a string; empty when it is absent."""
        target = self._target(slot)
        if not target:
            return ""
        start, count = target + 4, self._length(target, 1)
        try:
            return self._buffer.data[start : start + count].decode()
        except UnicodeDecodeError:
            raise Malformed(f"the name at byte {start} is not text (UTF-8)") from None

    def tables(self, slot: int, read: Callable[[Table], T]) -> tuple[T, ...]:
        """Return ``read`` of every table of a vector of tables."""
        target = self._target(slot)
        if not target:
            return ()
        count = self._length(target, 4)
        places = (target + 4 + 4 * i for i in range(count))
        return tuple(read(self._buffer.table(place + self._buffer.number("<I", place))) for place in places)

    def _length(self, target: int, item_bytes: int) -> int:
        count = int(self._buffer.number("<I", target))
        if count * item_bytes > len(self._buffer.data) - target - 4:
            raise Malformed(f"a vector of {count} elements at byte {target} is cut off")
        return count
