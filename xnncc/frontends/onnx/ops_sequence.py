"""Sequences whose length is known at import: Python lists of tensors while the graph is converted, gone afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax
from tvm.relax import Expr

from ..network import shape_of
from .node import Node, Refused, Value
from .registry import converter

R = relax.op


def _shape(value: Value) -> tuple[int, ...]:
    return tuple(value.shape) if isinstance(value, np.ndarray) else shape_of(value)


def _position(n: Node, index: int, length: int) -> int:
    """Return a constant position counted from the front."""
    position = n.ints(index, "position")[0]
    if not -length <= position < max(length, 1):
        raise Refused(f"position {position} is out of range for a sequence of {length}")
    return position % length if length else 0


@converter("SequenceConstruct")
def sequence_construct(n: Node) -> list[Any]:
    return [[n.values[i] for i in range(len(n))]]


@converter("SequenceEmpty")
def sequence_empty(n: Node) -> list[Any]:
    n.ignore("dtype")
    return [[]]


@converter("SequenceInsert")
def sequence_insert(n: Node) -> list[Any]:
    items = list(n.sequence(0))
    place = _insert_place(n, len(items)) if n.has(2) else len(items)
    return [[*items[:place], n.values[1], *items[place:]]]


def _insert_place(n: Node, length: int) -> int:
    place = n.ints(2, "position")[0]
    if not -length <= place <= length:
        raise Refused(f"position {place} is out of range for a sequence of {length}")
    return place + length if place < 0 else place


@converter("SequenceErase")
def sequence_erase(n: Node) -> list[Any]:
    items = list(n.sequence(0))
    del items[_position(n, 1, len(items)) if n.has(1) else -1]
    return [items]


@converter("SequenceAt")
def sequence_at(n: Node) -> list[Any]:
    items = n.sequence(0)
    return [items[_position(n, 1, len(items))]]


@converter("SequenceLength")
def sequence_length(n: Node) -> np.ndarray:
    return np.asarray(len(n.sequence(0)), "int64")


@converter("SplitToSequence")
def split_to_sequence(n: Node) -> list[Any]:
    """Pieces of the given sizes, or of one size with a smaller last; without sizes single slices."""
    axis, shape = n.axis(int(n.attr("axis", 0))), n.shape()
    size, keep = shape[axis], bool(n.attr("keepdims", 1))
    if not n.has(1):
        pieces = [1] * size
    elif n.rank(1) == 0:
        each = n.ints(1, "split")[0]
        pieces = [min(each, size - start) for start in range(0, size, each)]
    else:
        pieces = n.ints(1, "split")
    if sum(pieces) != size or min(pieces, default=0) < 0:
        raise Refused(f"pieces {pieces} do not make up dimension {axis} of {list(shape)}")
    parts, start = [], 0
    for piece in pieces:
        part = n.emit(R.strided_slice(n.expr(0), [axis], [start], [start + piece], [1]))
        if not n.has(1) and not keep:
            part = n.emit(n.reshaped(part, [*shape[:axis], *shape[axis + 1 :]]))
        parts.append(part)
        start += piece
    return [parts]


@converter("ConcatFromSequence")
def concat_from_sequence(n: Node) -> Expr:
    items = n.sequence(0)
    if not items:
        raise Refused("the sequence is empty")
    rank, axis = len(_shape(items[0])), int(n.attr("axis", 0))
    exprs = [n.build.constant(item) if isinstance(item, np.ndarray) else item for item in items]
    if n.attr("new_axis", 0):
        axis = n.axis(axis, rank + 1)
        exprs = [n.emit(n.reshaped(e, [*shape_of(e)[:axis], 1, *shape_of(e)[axis:]])) for e in exprs]
    else:
        axis = n.axis(axis, rank)
    return exprs[0] if len(exprs) == 1 else R.concat(exprs, axis)


@converter("Optional", "OptionalGetElement")
def optional(n: Node) -> list[Any]:
    """What is there; an absent optional can only be asked whether it has an element."""
    n.ignore("type")
    if not n.values or n.values[0] is None:
        raise Refused("the optional has no element")
    return [n.values[0]]


@converter("OptionalHasElement")
def optional_has_element(n: Node) -> np.ndarray:
    return np.asarray(bool(n.values) and n.values[0] is not None)
