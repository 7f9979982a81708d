"""The bytes of coded tensors, as docs/package.md section 6.4 has them: what a container holds beside the streams.

A group is a stream and the tensors in it. Numbers of variable length have seven bits a byte, lowest first, the top bit
of a byte says that another follows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import NoReturn
from zlib import crc32

import numpy as np

from xnncc.errors import BadPackage
from xnncc.ir.coded import LARGEST, CodedTensor

VERSION = 1
HUFFMAN, ADAPTIVE, RANGE = 0, 1, 2  # coders
MAX_TENSORS, MAX_RANK, MAX_WEIGHTS = 1 << 20, 8, (1 << 31) - 1
ONE_STEP, STEPS, CODEBOOK = 0, 1, 2  # what integers stand for
_HALF = 4  # the table is float16
_FLAG_BITS = 3  # kind and _HALF; the rank is above
_TURNED = 128  # the stream has the matrix turned; not in packages


class EndOfStream(Exception):
    """A decoder took more than an encoder can have left out: the stream is damaged."""


@dataclass(frozen=True)
class Stream:
    """Coded integers of several tensors in order. ``first`` and ``second`` are the coder's parameters."""

    coder: int
    first: int
    second: int
    data: bytes


@dataclass(frozen=True)
class Record:
    """A tensor without its integers. Those in the stream are ``centre`` less than the tensor's."""

    shape: tuple[int, ...]
    kind: int
    table: np.ndarray  # float32
    axis: int = 0
    centre: int = 0
    stream: int = 0
    is_turned: bool = False

    @property
    def view(self) -> tuple[int, int]:
        """The tensor as coders see it: rows and columns."""
        rows, columns = view_of(self.shape)
        return (columns, rows) if self.is_turned else (rows, columns)

    def plain(self, integers: np.ndarray) -> np.ndarray:
        """Return what the stream holds of the tensor's ``integers``, int32 [rows, columns]."""
        matrix = integers.reshape(view_of(self.shape)) - np.int32(self.centre)
        return np.ascontiguousarray(matrix.T if self.is_turned else matrix, np.int32)


def view_of(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return [rows, columns] of a shape: the first dim that is not 1, and the rest; a vector is one row."""
    dims = [*shape]
    while dims and dims[0] == 1:
        dims.pop(0)
    return (dims[0], prod(dims[1:])) if len(dims) > 1 else (1, prod(dims))


def record_of(tensor: CodedTensor, stream: int, is_turned: bool = False) -> Record:
    """Return the record of ``tensor``; indices into a codebook count from the most frequent one."""
    if tensor.codebook is not None:
        centre = int(np.bincount(tensor.integers.reshape(-1), minlength=1).argmax())
        return Record(tensor.shape, CODEBOOK, tensor.codebook, 0, centre, stream, is_turned)
    kind = ONE_STEP if len(tensor.table) == 1 else STEPS
    return Record(tensor.shape, kind, tensor.table, tensor.axis if kind == STEPS else 0, 0, stream, is_turned)


def tensor_of(record: Record, integers: np.ndarray) -> CodedTensor:
    """Return the tensor of ``record`` whose stream gave ``integers``.

    Raises: BadPackage when they are not what the record allows.
    """
    matrix = integers.T if record.is_turned else integers
    values = matrix.astype(np.int64).reshape(record.shape) + record.centre
    low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
    if record.kind == CODEBOOK:
        if low < 0 or high >= max(len(record.table), 1):
            _refuse(f"integers {low}..{high} for a codebook of {len(record.table)} values")
        return CodedTensor(values.astype(np.int32), codebook=record.table)
    if low < -LARGEST or high > LARGEST:
        _refuse(f"integers {low}..{high} are too large")
    return CodedTensor(values.astype(np.int32), record.table, axis=record.axis)


def write(records: list[Record], streams: list[Stream]) -> bytes:
    """Return the bytes of ``records`` and ``streams``."""
    out = bytearray([VERSION])
    for number in (len(records), len(streams)):
        put_number(out, number)
    for stream in streams:
        out += bytes([stream.coder, stream.first, stream.second])
        put_number(out, len(stream.data))
    for record in records:
        if len(streams) > 1:
            put_number(out, record.stream)
        _put_record(out, record)
    for stream in streams:
        out += stream.data
    return bytes(out) + crc32(out).to_bytes(4, "little")


def put_number(out: bytearray, number: int) -> None:
    """Append ``number`` in seven bits a byte."""
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)


def _put_record(out: bytearray, record: Record) -> None:
    half = record.table.astype(np.float16)
    is_half = np.array_equal(half.astype(np.float32).view(np.uint32), record.table.view(np.uint32))
    turned = _TURNED if record.is_turned else 0
    out.append(record.kind | (_HALF if is_half else 0) | len(record.shape) << _FLAG_BITS | turned)
    for dim in record.shape:
        put_number(out, dim)
    if record.kind == STEPS:
        out.append(record.axis)
    if record.kind == CODEBOOK:
        put_number(out, len(record.table))
        put_number(out, record.centre)
    out += (half if is_half else record.table).astype("<f2" if is_half else "<f4").tobytes()


def read(data: bytes) -> tuple[list[Record], list[Stream]]:
    """Return what ``write`` wrote, every number checked.

    Raises: BadPackage.
    """
    if len(data) < 5 or crc32(data[:-4]) != int.from_bytes(data[-4:], "little"):
        _refuse("the checksum does not fit")
    reader = _Reader(data[:-4])
    if reader.byte() != VERSION:
        _refuse("they are of another version")
    tensors, count = reader.number(MAX_TENSORS), reader.number(MAX_TENSORS)
    if count > tensors:
        _refuse(f"{count} streams of {tensors} tensors")
    heads = [(reader.byte(), reader.byte(), reader.byte(), reader.number(len(data))) for _ in range(count)]
    records = [_record(reader, count) for _ in range(tensors)]
    streams = [Stream(coder, first, second, reader.bytes(size)) for coder, first, second, size in heads]
    if reader.at != len(reader.data):
        _refuse("bytes are left over")
    if {r.stream for r in records} != set(range(count)):
        _refuse("a stream has no tensor")
    return records, streams


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def bytes(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            _refuse("they are cut off")
        self.at += count
        return self.data[self.at - count : self.at]

    def byte(self) -> int:
        return self.bytes(1)[0]

    def number(self, most: int) -> int:
        return take_number(self.byte, most)


def take_number(byte: Callable[[], int], most: int) -> int:
    """Return the next number in seven bits a byte, at most ``most``.

    Raises: BadPackage.
    """
    value, shift = 0, 0
    while True:
        part = byte()
        value |= (part & 127) << shift
        shift += 7
        if part < 128:
            break
        if shift >= 42:
            _refuse("a number does not end")
    if value > most:
        _refuse(f"the number {value} is beyond {most}")
    return value


def _record(reader: _Reader, streams: int) -> Record:
    stream = reader.number(streams - 1) if streams > 1 else 0
    flags = reader.byte()
    kind, rank = flags & 3, (flags & ~_TURNED) >> _FLAG_BITS
    if kind > CODEBOOK or rank > MAX_RANK or not streams:
        _refuse("a tensor is malformed")
    shape = tuple(reader.number(MAX_WEIGHTS) for _ in range(rank))
    if prod(max(d, 1) for d in shape) > MAX_WEIGHTS:
        _refuse(f"a tensor of shape {[*shape]} is too large")
    axis, count, centre = 0, 1, 0
    if kind == STEPS:
        axis = reader.byte()
        if axis >= rank:
            _refuse(f"steps along axis {axis} of rank {rank}")
        count = shape[axis]
    elif kind == CODEBOOK:
        count, centre = reader.number(LARGEST), reader.number(LARGEST)
    width, dtype = (2, "<f2") if flags & _HALF else (4, "<f4")
    table = np.frombuffer(reader.bytes(width * count), dtype).astype(np.float32)
    if not np.all(np.isfinite(table)):
        _refuse("a step is not finite")
    return Record(shape, kind, table, axis, centre, stream, bool(flags & _TURNED))


def _refuse(why: str) -> NoReturn:
    raise BadPackage("the coded weights cannot be read", why, "Copy the file again, or make it again")
