"""The raw section of an ``.xq`` file: constants that are no coded weights, one after another.

A float constant of at most 256 values (the grid of a detector's boxes) may lie there as a table: its values, then an
index byte for each element, last axis first, where runs are longest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .packing import MAX_LZMA_BYTES, damaged, is_in_planes, packed, unpacked

MAX_RAW_BYTES = 2 << 30
MAX_RANK = 8
SMALLEST_TABLE = 512  # elements of a constant that may become a table
DTYPES = ("float32", "float16", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
          "bool")  # fmt: skip


def raw_parts(array: np.ndarray) -> list[np.ndarray]:
    """Return the parts that stand for ``array`` in the raw section: itself, or its values and their indices."""
    if array.size < SMALLEST_TABLE or array.dtype.kind != "f" or array.size * array.itemsize > MAX_LZMA_BYTES:
        return [array]
    bits = array.reshape(-1).view(f"u{array.itemsize}")  # as bits: -0.0 is not 0.0, and a NaN is itself
    values, where = np.unique(bits, return_inverse=True)
    if len(values) > 256:
        return [array]
    indices = np.moveaxis(where.reshape(array.shape).astype(np.uint8), -1, 0) if array.ndim else where
    made = [values.view(array.dtype), np.ascontiguousarray(indices).reshape(-1)]
    sizes = [len(packed([b"".join(one.tobytes() for one in parts), in_planes(parts)])) for parts in ([array], made)]
    return [array] if sizes[0] <= sizes[1] else made


def raw_place(array: np.ndarray, parts: Sequence[np.ndarray]) -> list[Any]:
    """Return the entry in the file's list of constants for ``array``, which lies there as ``parts``."""
    return [list(array.shape), str(array.dtype), *([len(parts[0])] if len(parts) > 1 else [])]


@dataclass(frozen=True)
class RawEntry:
    """A raw constant: of ``count`` values in a table, if that is not 0."""

    shape: tuple[int, ...]
    dtype: np.dtype
    count: int = 0

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=object))

    @property
    def parts(self) -> list[tuple[int, np.dtype]]:
        """Elements and dtype of each part in the raw section."""
        return [(self.count, self.dtype), (self.size, np.dtype(np.uint8))] if self.count else [(self.size, self.dtype)]

    def array(self, parts: Sequence[np.ndarray], what: str) -> np.ndarray:
        """Return the constant that ``parts`` stand for."""
        if not self.count:
            return parts[0].reshape(self.shape)
        values, indices = parts
        if indices.max(initial=0) >= self.count:
            raise damaged(what, f"an index beyond {self.count} values")
        turned = (self.shape[-1], *self.shape[:-1])
        return np.ascontiguousarray(np.moveaxis(values[indices].reshape(turned), 0, -1))


def raw_entry(place: Any, what: str) -> RawEntry | None:
    """Return what a raw constant is, None for a coded one."""
    if place == 0 and not isinstance(place, bool):
        return None
    if isinstance(place, list) and len(place) in (2, 3) and place[1] in DTYPES and isinstance(place[0], list):
        dims, count = place[0], place[2] if len(place) == 3 else 0
        fits = len(dims) <= MAX_RANK and all(type(dim) is int and 0 <= dim <= MAX_RAW_BYTES for dim in dims)
        if fits and type(count) is int and 0 <= count <= 256 and (dims or not count):
            return RawEntry(tuple(dims), np.dtype(place[1]), count)
    raise damaged(what, "a constant without shape or dtype")


def raw_arrays(entries: list[RawEntry], rest: bytes, what: str) -> list[np.ndarray]:
    sizes = [(count, dtype) for entry in entries for count, dtype in entry.parts]
    total = sum(count * dtype.itemsize for count, dtype in sizes)
    if total > MAX_RAW_BYTES or sum(entry.size * entry.dtype.itemsize for entry in entries) > MAX_RAW_BYTES:
        raise damaged(what, f"{total} bytes of constants")
    data = unpacked(rest, total, what) if rest else b""
    if len(data) != total:
        raise damaged(what, f"{len(data)} bytes of constants, {total} expected")
    if rest and is_in_planes(rest):
        data = _from_planes(data, sizes)
    parts, at = [], 0
    for count, dtype in sizes:
        parts.append(np.frombuffer(data, dtype, count, at))
        at += count * dtype.itemsize
    if any(part.dtype == bool and part.view(np.uint8).max(initial=0) > 1 for part in parts):
        raise damaged(what, "a bool that is neither 0 nor 1")
    left = iter(parts)
    return [entry.array([next(left) for _ in entry.parts], what) for entry in entries]


def in_planes(arrays: list[np.ndarray]) -> bytes:
    """Return the first bytes of all elements, then the second, ...: exponents of floats lie together then."""
    width = max(array.dtype.itemsize for array in arrays)
    planes = [array.reshape(-1).view(np.uint8).reshape(-1, array.dtype.itemsize) for array in arrays if array.size]
    return b"".join(plane[:, byte].tobytes() for byte in range(width) for plane in planes if byte < plane.shape[1])


def _from_planes(data: bytes, sizes: list[tuple[int, np.dtype]]) -> bytes:
    parts = [np.empty((count, dtype.itemsize), np.uint8) for count, dtype in sizes]
    at, source = 0, np.frombuffer(data, np.uint8)
    for byte in range(max((dtype.itemsize for _, dtype in sizes), default=0)):
        for part in parts:
            if byte < part.shape[1]:
                part[:, byte] = source[at : at + len(part)]
                at += len(part)
    return b"".join(part.tobytes() for part in parts)
