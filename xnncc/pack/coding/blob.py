"""The weights blob of a package with coded tensors: docs/package.md section 6.3, read by ``runtime/src/decode.c``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from xnncc.errors import BadPackage
from xnncc.ir.placement import Dim, Placement
from xnncc.pack.coding.code import decode, encode_with_sizes
from xnncc.pack.coding.coders import CODERS
from xnncc.pack.coding.layout import put_number, take_number
from xnncc.pack.coding.turn import turned, turning_pays
from xnncc.pack.layout import aligned

MAX_DIMS = 24


@dataclass(frozen=True)
class CodedBlob:
    """``data``: the contents of ``WGHT``. ``sizes`` and ``coders`` are those of each placement."""

    data: bytes
    sizes: tuple[int, ...]
    coders: tuple[str, ...]


def encode_blob(
    weights: bytes | memoryview, placements: Sequence[Placement], coders: Collection[str] = CODERS
) -> CodedBlob:
    """Return ``weights`` with the tensors of ``placements``, which do not overlap, coded and all else as it is."""
    paying = [_best_way(placement, coders) for placement in placements]
    ways = [placements] if all(a is b for a, b in zip(paying, placements, strict=True)) else [placements, paying]
    return min((_encoded(weights, way, coders) for way in ways), key=lambda blob: len(blob.data))


def _encoded(weights: bytes | memoryview, placements: Sequence[Placement], coders: Collection[str]) -> CodedBlob:
    # A runtime wants tensors in the order of their streams, the largest stream last.
    order = sorted(range(len(placements)), key=lambda i: placements[i].tensor.size)
    number = {i: n for n, i in enumerate(order, 1)}
    encoded = encode_with_sizes([placements[i].tensor for i in order], coders, parallel=True)
    pieces, raw, at = bytearray(), bytearray(), 0

    def leave(until: int) -> None:
        if until > at:
            put_number(pieces, until - at)
            put_number(pieces, 0)
            raw.extend(weights[at:until])

    for i in sorted(number, key=lambda i: placements[i].offset):
        placement = placements[i]
        leave(placement.offset)
        end = placement.offset + placement.size
        gap = min(aligned(end), len(weights))
        end = end if any(weights[end:gap]) else gap  # the zeros behind a tensor are no piece of their own
        put_number(pieces, end - placement.offset)
        put_number(pieces, number[i])
        _put_map(pieces, placement)
        at = end
    leave(len(weights))
    head = bytearray()
    put_number(head, len(encoded.data))
    places = [number[i] - 1 for i in range(len(placements))]
    return CodedBlob(
        bytes(head) + encoded.data + bytes(pieces) + bytes(raw),
        tuple(encoded.sizes[n] for n in places),
        tuple(encoded.coders[n] for n in places),
    )


def _best_way(placement: Placement, coders: Collection[str]) -> Placement:
    way = turned(placement) if turning_pays(placement.tensor, coders) else None
    return way or placement


def decode_blob(data: bytes, size: int) -> bytes:
    """Return the blob of ``size`` bytes that ``data`` stands for, as the runtime makes it at open.

    Raises: BadPackage.
    """
    reader = _Reader(data)
    tensors = decode(reader.bytes(reader.number(len(data))))
    pieces: list[tuple[int, int, int, list[Dim]]] = []
    at = 0
    while at < size:
        length, of = reader.number(size - at), reader.number(len(tensors))
        if not length:
            _refuse("a piece of the blob is empty")
        base, dims = (0, []) if of == 0 else reader.map()
        pieces.append((length, of, base, dims))
        at += length
    if sorted(of for _, of, _, _ in pieces if of) != list(range(1, len(tensors) + 1)):
        _refuse("a coded tensor has no place, or two")
    blob = bytearray(size)
    at = 0
    for length, of, base, dims in pieces:
        if of == 0:
            blob[at : at + length] = reader.bytes(length)
        else:
            values = tensors[of - 1].values().reshape(-1)
            places = np.full(1, base, np.int64)
            for dim in dims:
                if places.size * dim.extent > values.size:
                    _refuse("a map is larger than its tensor")
                places = (places[:, None] + dim.places()).reshape(-1)
            if at % 4 or places.size != values.size or not (0 <= places.min() <= places.max() < length // 4):
                _refuse("a map does not fit its tensor")
            region = np.zeros(length // 4, "<f4")
            region[places] = values
            blob[at : at + length] = region.tobytes().ljust(length, b"\0")
        at += length
    if reader.at != len(data):
        _refuse("bytes are left over")
    return bytes(blob)


def _put_map(out: bytearray, placement: Placement) -> None:
    assert len(placement.dims) <= MAX_DIMS, f"{len(placement.dims)} dims of a map"
    put_number(out, placement.base)
    out.append(len(placement.dims))
    for dim in placement.dims:
        put_number(out, dim.extent)
        put_number(out, dim.radix)
        for step in (dim.block, dim.lane):
            put_number(out, step << 1 if step >= 0 else ~step << 1 | 1)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def bytes(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            _refuse("they are cut off")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, most: int) -> int:
        return take_number(lambda: self.bytes(1)[0], most)

    def map(self) -> tuple[int, list[Dim]]:
        base, count = self.number((1 << 31) - 1), self.bytes(1)[0]
        if count > MAX_DIMS:
            _refuse(f"a map has {count} dims")
        return base, [self._dim() for _ in range(count)]

    def _dim(self) -> Dim:
        most = (1 << 31) - 1
        extent, radix = self.number(most), self.number(most)
        block, lane = (value >> 1 ^ -(value & 1) for value in (self.number(most * 2 + 1), self.number(most * 2 + 1)))
        if not extent or not radix:
            _refuse("a map has an empty dim")
        return Dim(extent, radix, block, lane)


def _refuse(why: str) -> NoReturn:
    raise BadPackage("the coded weights cannot be read", why, "Copy the file again, or build it again")
