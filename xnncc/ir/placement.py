"""Where the elements of a coded weight go in the layout that kernels read: strides, found from an index array.

Packing is a permutation with zeros between: a dim i of the weight is cut into blocks, and the element's place is a sum
over dims of (i // radix) * block + (i % radix) * lane. In the packed weights [O/v, I, KH, KW, v] of OIHW, O has radix
v, block I*KH*KW*v and lane 1, the others are uncut. The map is derived from what the packing did to an array of
indices, so no packing describes itself, and it is compared with that array, so none is described wrongly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from .coded import CodedTensor, digest


@dataclass(frozen=True)
class Dim:
    """One dim of a map: index i in [0, extent) lies at (i // radix) * block + (i % radix) * lane elements."""

    extent: int
    radix: int
    block: int
    lane: int

    def places(self) -> np.ndarray:
        """Return the place of each index, int64 [extent]."""
        i = np.arange(self.extent, dtype=np.int64)
        return i // self.radix * self.block + i % self.radix * self.lane


@dataclass(frozen=True)
class Placement:
    """``tensor`` inside bytes [offset, offset + size) of the weights blob, float32, zeros between its elements.

    Element number i, whose digits in the extents of ``dims`` are i0, i1, ..., is at ``base`` plus the dims' places.
    """

    offset: int
    size: int
    tensor: CodedTensor
    base: int
    dims: tuple[Dim, ...]


Change = Callable[[np.ndarray], np.ndarray]


class CodedTable:
    """The coded weights of a module under way, by digest: as they came, and as passes rearranged them."""

    def __init__(self, coded: Mapping[str, CodedTensor] | None = None) -> None:
        self.tensors = dict(coded or {})
        self._places: dict[str, tuple[str, np.ndarray]] = {}  # digest -> original, 1 + its index or 0 for filler

    def find(self, array: np.ndarray) -> tuple[str, np.ndarray] | None:
        """Return the digest of the coded weight that ``array`` holds, and for each element 1 + its index there or 0 for
        a zero that was put in; None when ``array`` is not coded."""
        if not self.tensors or array.dtype != np.float32:
            return None
        key = digest(array)
        if key not in self._places and key in self.tensors:
            self._places[key] = (key, np.arange(1, array.size + 1, dtype=np.int64).reshape(array.shape))
        return self._places.get(key)

    def follow(self, before: np.ndarray, change: Change) -> np.ndarray:
        """Return what ``change``, which moves elements and adds zeros, makes of ``before``; that stays coded."""
        after = change(before)
        found = self.find(before)
        if found is not None:
            original, places = found[0], np.asarray(change(found[1]))
            values = np.concatenate([np.zeros(1, np.float32), self.tensors[original].values().reshape(-1)])
            same = places.shape == after.shape and np.array_equal(
                values[places].view(np.uint32), np.ascontiguousarray(after, np.float32).view(np.uint32)
            )
            if same:
                self._places.setdefault(digest(after), (original, places))
        return after

    def is_followed(self, key: str) -> bool:
        """Return whether the coded weight of digest ``key`` was rearranged and is still known."""
        return any(original == key for other, (original, _) in self._places.items() if other != key)

    def place(self, offset: int, array: np.ndarray) -> tuple[str, Placement] | None:
        """Return the digest of the coded weight in a constant at ``offset`` of the blob, and its placement.

        None when it is not coded, is only a part of a weight, or has no map.
        """
        found = self.find(array)
        if found is None:
            return None
        original, places = found
        tensor = self.tensors[original]
        where = np.full(tensor.size + 1, -1, np.int64)
        where[places.reshape(-1)] = np.arange(places.size)
        once = np.count_nonzero(places) == tensor.size and np.all(where[1:] >= 0)
        dims = dims_of(where[1:].reshape(tensor.shape)) if once else None
        if dims is None:
            return None
        return original, Placement(offset, array.nbytes, tensor, int(where[1]), dims)


def dims_of(where: np.ndarray) -> tuple[Dim, ...] | None:
    """Return the dims of the map in which element i lies at ``where[i] - where[0]``, or None when there are none."""
    if where.size == 0:
        return None
    where = where - where.reshape(-1)[0]
    dims: list[Dim] = []
    total = np.zeros_like(where)
    for axis in range(where.ndim):
        line = where[(0,) * axis + (slice(None),) + (0,) * (where.ndim - axis - 1)]
        found = _cut(line)
        if found is None:
            return None
        dims += found
        total = total + line.reshape([-1 if i == axis else 1 for i in range(where.ndim)])
    if not np.array_equal(total, where):
        return None
    assert prod(d.extent for d in dims) == where.size
    return tuple(dims) or (Dim(1, 1, 0, 0),)


def _cut(line: np.ndarray) -> list[Dim] | None:
    """Return the dims of one axis: one, or several when it was cut more than once."""
    n = len(line)
    if n == 1:
        return [Dim(1, 1, 0, 0)]
    lane = int(line[1])
    breaks = np.flatnonzero(line != np.arange(n) * lane)
    radix = int(breaks[0]) if len(breaks) else n
    dim = Dim(n, radix, int(line[radix]) if radix < n else 0, lane)
    if np.array_equal(dim.places(), line):
        return [dim]
    for inner in range(n // 2, 1, -1):
        if n % inner == 0 and np.array_equal(line.reshape(-1, inner), line[::inner, None] + line[None, :inner]):
            outer, rest = _cut(line[::inner]), _cut(line[:inner])
            return None if outer is None or rest is None else outer + rest
    return None
