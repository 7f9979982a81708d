"""The coders: each from tensors of integers to one stream and back; the smallest stream wins."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import product

import numpy as np

from xnncc.errors import BadPackage
from xnncc.pack.coding import native
from xnncc.pack.coding.adaptive import decode_adaptive, encode_adaptive
from xnncc.pack.coding.huffman import decode_huffman, encode_huffman
from xnncc.pack.coding.layout import ADAPTIVE, HUFFMAN, RANGE, EndOfStream, Stream
from xnncc.pack.coding.range_coder import decode_range, encode_range
from xnncc.pack.coding.range_model import MODES, MOST_SHIFT, STEADY
from xnncc.pack.coding.runs import MOST_SYMBOLS, Alphabet

CODERS = ("huffman", "adaptive", "range")  # by number in layout.py
# The adaptive code wins by under one percent, and only where a table costs as much: larger streams are not tried,
# unless it is the only coder asked for. It takes 20 microseconds a symbol.
ADAPTIVE_MOST = 1 << 14
MOST_PER_BYTE = 12000  # weights: what a byte can stand for at the greatest probability that any coder has

Shapes = Sequence[tuple[int, int]]
Coded = tuple[Stream, list[int]]  # and its length after each tensor


def encode_stream(tensors: list[np.ndarray], coders: Collection[str]) -> Coded:
    """Return the smallest stream of ``tensors`` [rows, columns] int32, and its length after each of them."""
    tries: list[Coded] = []
    weights = [tensor.size for tensor in tensors]
    values = np.concatenate([np.asarray(tensor, np.int32).reshape(-1) for tensor in tensors])
    if "range" in coders:
        fast, shifts = native.load(), [0, *_shifts(values)]
        encode = fast.encode_range if fast else encode_range
        middle = shifts[len(shifts) // 2]
        one = [(STEADY if middle else 0, middle)]
        for mode, shift in product(range(MODES), shifts) if may_try_all(len(values)) else one:
            data, ends = encode(tensors, mode, shift)
            tries.append((Stream(RANGE, mode, shift, data), ends))
    if "huffman" in coders:
        alphabet, data, ends = encode_huffman(values, weights)
        tries.append((Stream(HUFFMAN, alphabet.longest, alphabet.most, data), ends))
    if "adaptive" in coders and (len(values) <= ADAPTIVE_MOST or not tries):
        alphabet, data, ends = encode_adaptive(values, weights)
        tries.append((Stream(ADAPTIVE, alphabet.longest, alphabet.most, data), ends))
    return min(tries, key=lambda coded: len(coded[0].data))


def may_try_all(weights: int) -> bool:
    """Return whether there is time to code so many weights in every way. Compiled there always is; in Python, at 10 to
    30 microseconds a weight, a large network is coded in one way, which costs about a percent."""
    return native.load() is not None or weights <= 1 << 16


def _shifts(values: np.ndarray) -> list[int]:
    """Return how many low bits are worth coding apart: a magnitude is a few units then. None for most tensors."""
    mean = float(np.abs(values, dtype=np.float64).mean()) if values.size else 0.0
    return [shift for shift in range(1, MOST_SHIFT + 1) if 1 <= mean / (1 << shift) < 6]


def decode_stream(stream: Stream, shapes: Shapes) -> list[np.ndarray]:
    """Return the tensors in ``stream``, [rows, columns] int32.

    Raises: BadPackage.
    """
    count = sum(rows * columns for rows, columns in shapes)
    if count > MOST_PER_BYTE * (len(stream.data) + 16):
        raise _bad(f"{len(stream.data)} bytes cannot hold {count} weights")
    fast = native.load()
    if fast is not None:
        tensors = fast.decode(stream.coder, stream.first, stream.second, stream.data, shapes)
    else:
        tensors = decode_plain(stream, shapes)
    if tensors is None:
        raise _bad("a stream is damaged")
    return tensors


def decode_plain(stream: Stream, shapes: Shapes) -> list[np.ndarray] | None:
    """Return what ``Native.decode`` does, without a compiler."""
    try:
        if stream.coder == RANGE:
            good = stream.first < MODES and stream.second <= MOST_SHIFT
            return decode_range(stream.data, shapes, stream.first, stream.second) if good else None
        decoders: dict[int, Callable[[bytes, Alphabet, int], np.ndarray]] = {
            HUFFMAN: decode_huffman,
            ADAPTIVE: decode_adaptive,
        }
        alphabet = Alphabet(stream.first, stream.second)
        if stream.coder not in decoders or not alphabet.longest or alphabet.symbols > MOST_SYMBOLS:
            return None
        sizes = [rows * columns for rows, columns in shapes]
        values = decoders[stream.coder](stream.data, alphabet, sum(sizes))
    except EndOfStream:
        return None
    return [part.reshape(shape) for part, shape in zip(np.split(values, np.cumsum(sizes)[:-1]), shapes, strict=True)]


def _bad(why: str) -> BadPackage:
    return BadPackage("the coded weights cannot be read", why, "Copy the file again, or make it again")
