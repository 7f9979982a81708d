"""Choose coders and streams for a network's tensors, and undo it.

Small tensors share a stream, because each would pay for learning its own statistics; large ones have a stream each,
because statistics differ and streams are decoded in parallel. Where "large" begins is tried, as are the coders.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from xnncc.ir.coded import CodedTensor
from xnncc.pack.coding import layout
from xnncc.pack.coding.coders import CODERS, decode_stream, encode_stream, may_try_all
from xnncc.pack.coding.layout import Record, Stream, record_of, tensor_of
from xnncc.pack.coding.turn import turning_pays

LARGE = (1 << 62, 1 << 16, 1 << 13)  # weights from which a tensor has a stream of its own; the smallest result wins
PARALLEL = LARGE[1:]  # the same where streams are decoded in parallel


@dataclass(frozen=True)
class Encoded:
    """Coded tensors: ``data``, and how much of it each tensor takes. The sizes sum to that of ``data`` but for its
    head and tail."""

    data: bytes
    sizes: tuple[int, ...]  # bytes of each tensor: record and integers
    coders: tuple[str, ...]  # of each tensor


def encode(tensors: Sequence[CodedTensor], coders: Collection[str] = CODERS, parallel: bool = False) -> bytes:
    """Return ``tensors`` coded in as few bytes as ``coders`` can; ``parallel``: for a runtime, which has large tensors
    in streams apart and none turned."""
    return encode_with_sizes(tensors, coders, parallel).data


def encode_with_sizes(
    tensors: Sequence[CodedTensor], coders: Collection[str] = CODERS, parallel: bool = False
) -> Encoded:
    """Return what ``encode`` does, and what of it belongs to which tensor."""
    tried: dict[tuple[tuple[int, bool], ...], tuple[Stream, list[int]]] = {}
    best: Encoded | None = None
    limits: tuple[int, ...] = PARALLEL if parallel else LARGE
    limits = limits if may_try_all(sum(tensor.size for tensor in tensors)) else PARALLEL[:1]
    plain = tuple(False for _ in tensors)
    paying = plain if parallel else tuple(turning_pays(tensor, coders) for tensor in tensors)
    for turns in dict.fromkeys((plain, paying)):  # what pays alone need not pay in a stream with others
        for groups in dict.fromkeys(_groups(tensors, large) for large in limits):
            keys = [tuple((i, turns[i]) for i in group) for group in groups]
            for key in keys:
                if key not in tried:
                    tried[key] = encode_stream([_plain(tensors[i], is_turned) for i, is_turned in key], coders)
            made = _assemble(tensors, turns, groups, [tried[key] for key in keys])
            if best is None or len(made.data) < len(best.data):
                best = made
    assert best is not None
    return best


def decode(data: bytes) -> list[CodedTensor]:
    """Return the tensors that ``encode`` was given.

    Raises: BadPackage.
    """
    records, streams = layout.read(data)
    tensors: list[CodedTensor | None] = [None] * len(records)
    for number, stream in enumerate(streams):
        members = [i for i, record in enumerate(records) if record.stream == number]
        for i, integers in zip(members, decode_stream(stream, [records[i].view for i in members]), strict=True):
            tensors[i] = tensor_of(records[i], integers)
    return [tensor for tensor in tensors if tensor is not None]


def _groups(tensors: Sequence[CodedTensor], large: int) -> tuple[tuple[int, ...], ...]:
    """Return the tensors of each stream: small ones together, those of ``large`` weights and more alone."""
    small = tuple(i for i, tensor in enumerate(tensors) if tensor.size < large)
    alone = tuple((i,) for i, tensor in enumerate(tensors) if tensor.size >= large)
    return (*((small,) if small else ()), *alone)


def _plain(tensor: CodedTensor, is_turned: bool) -> np.ndarray:
    """Return the integers that a stream holds, [rows, columns]."""
    return record_of(tensor, 0, is_turned).plain(tensor.integers)


def _assemble(
    tensors: Sequence[CodedTensor],
    turns: Sequence[bool],
    groups: tuple[tuple[int, ...], ...],
    coded: list[tuple[Stream, list[int]]],
) -> Encoded:
    stream_of = {i: number for number, group in enumerate(groups) for i in group}
    records: list[Record] = [record_of(tensor, stream_of[i], turns[i]) for i, tensor in enumerate(tensors)]
    streams = [stream for stream, _ in coded]
    sizes = [len(layout.write([record], [])) - len(layout.write([], [])) for record in records]
    for group, (_, ends) in zip(groups, coded, strict=True):
        for i, begin, end in zip(group, [0, *ends[:-1]], ends, strict=True):
            sizes[i] += end - begin
    names = tuple(CODERS[streams[stream_of[i]].coder] for i in range(len(tensors)))
    return Encoded(layout.write(records, streams), tuple(sizes), names)
