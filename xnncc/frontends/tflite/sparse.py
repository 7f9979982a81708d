"""Sparse constants -> dense arrays, for any nesting of dense and compressed (CSR) dimensions and of blocks.

The format is TACO's (Kjolstad et al. 2017, "The Tensor Algebra Compiler"): levels in ``traversal_order``, each dense
(every index is there) or CSR (``segments`` and ``indices``). Levels beyond the rank are positions within a block; level
``rank + i`` splits dimension ``block_map[i]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .flatbuffer import Malformed, Table

_INDEX_VECTORS = {1: "int32", 2: "uint16", 3: "uint8"}


@dataclass(frozen=True, eq=False)
class Level:
    """One level; ``segments`` is None for a dense one."""

    size: int
    segments: np.ndarray | None = None
    indices: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Sparsity:
    """How the stored values of a tensor are arranged."""

    order: tuple[int, ...]
    block_map: tuple[int, ...]
    levels: tuple[Level, ...]


def read_sparsity(table: Table) -> Sparsity:
    """Return the sparsity of a tensor."""
    return Sparsity(table.ints(0), table.ints(1), table.tables(2, _level))


def _level(table: Table) -> Level:
    if table.scalar(0, "int8") == 0:
        return Level(table.scalar(1, "int32"))
    return Level(0, _indices(table, 2), _indices(table, 4))


def _indices(table: Table, slot: int) -> np.ndarray:
    kind, vector = _INDEX_VECTORS.get(table.scalar(slot, "uint8")), table.table(slot + 1)
    if kind is None or vector is None:
        raise Malformed("a compressed dimension of a sparse tensor has no indices")
    return vector.array(0, kind).astype("int64")


def densify(values: np.ndarray, shape: Sequence[int], sparsity: Sparsity) -> np.ndarray:
    """Return ``values`` [stored] as a dense array of ``shape``, zero where nothing is stored.

    Raises:
        Malformed: levels that do not fit the shape, or indices outside of it.
    """
    rank, order = len(shape), sparsity.order
    if sorted(order) != list(range(rank + len(sparsity.block_map))) or len(sparsity.levels) != len(order):
        raise Malformed("the dimensions of a sparse tensor do not fit its shape")
    if any(not 0 <= dim < rank for dim in sparsity.block_map):
        raise Malformed("a block of a sparse tensor lies along no dimension")
    block = [1] * rank
    for dim, place in zip(sparsity.block_map, range(rank, len(order)), strict=True):
        block[dim] = max(sparsity.levels[order.index(place)].size, 1)
    coordinates = _coordinates(sparsity.levels, int(np.prod(shape)))
    if len(coordinates[0]) != values.size:
        raise Malformed(f"a sparse tensor stores {values.size} values and {len(coordinates[0])} positions")
    at = [np.zeros(values.size, "int64")] * rank
    for level, dim in enumerate(order):
        if dim < rank:
            at[dim] = at[dim] + coordinates[level] * block[dim]
        else:
            at[sparsity.block_map[dim - rank]] = at[sparsity.block_map[dim - rank]] + coordinates[level]
    if any(p.size and not 0 <= p.min() <= p.max() < size for p, size in zip(at, shape, strict=True)):
        raise Malformed("an index of a sparse tensor lies outside of its shape")
    dense = np.zeros(shape, values.dtype)
    dense[tuple(at)] = values
    return dense


def _coordinates(levels: Sequence[Level], at_most: int) -> list[np.ndarray]:
    """Return for each level the index of every stored value."""
    found: list[np.ndarray] = []
    count = 1
    for level in levels:
        if level.segments is None or level.indices is None:
            counts, new = np.full(count, max(level.size, 0)), None
        else:
            segments = level.segments
            if len(segments) != count + 1 or segments[0] != 0 or segments[-1] != len(level.indices):
                raise Malformed("the segments of a sparse tensor do not fit its indices")
            counts, new = np.diff(segments), level.indices
        if counts.min(initial=0) < 0 or int(counts.sum()) > at_most:
            raise Malformed("a sparse tensor stores more values than it has elements")
        new = np.tile(np.arange(max(level.size, 0)), count) if new is None else new
        found = [np.repeat(index, counts) for index in found] + [new]
        count = int(counts.sum())
    return found
