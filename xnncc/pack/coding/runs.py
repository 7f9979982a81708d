"""Symbols of the Huffman coders: a run of zeros and the value after it, as JPEG has them.

With runs up to R and values up to M there are R * (2 M + 1) + 1 symbols: run * (2 M + 1) + v, where v counts 1, -1, 2,
-2, ..., M, -M and last "larger, spelled out"; the last symbol is R zeros without a value. The values of a stream's
tensors stand one after the other; zeros after the last value are written R at a time, and what is too many is cut off.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from xnncc.pack.coding.layout import EndOfStream

MOST_SYMBOLS = 1024
SAMPLED = 1 << 16  # values that decide about an alphabet
LONGEST_REST = 24  # bits of the remainder of a spelled-out magnitude
CHOICES = tuple(
    (r, m) for r in (1, 2, 4, 8, 16, 32, 64, 128) for m in (1, 2, 3, 7, 15, 31, 127) if r * (2 * m + 1) < MOST_SYMBOLS
)


@dataclass(frozen=True)
class Alphabet:
    """``longest`` run (R) and largest magnitude with a symbol of its own (M)."""

    longest: int
    most: int

    @property
    def symbols(self) -> int:
        """Their number."""
        return self.longest * (2 * self.most + 1) + 1


@dataclass(frozen=True)
class Runs:
    """A tensor as symbols; ``rests`` are the bits after each (value, lowest first, and count), mostly none."""

    symbols: np.ndarray  # int64 [n]
    rests: np.ndarray  # uint64 [n]
    rest_bits: np.ndarray  # int64 [n]

    def after(self, codes: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ``codes`` uint64 [n] of ``counts`` [n] bits with the rests behind them."""
        return codes | self.rests << counts.astype(np.uint64), counts + self.rest_bits

    def ends_in(self, bit_ends: np.ndarray, alphabet: Alphabet, weights: list[int]) -> list[int]:
        """Return the bytes after each tensor of ``weights`` values, given the bits up to the end of each symbol."""
        is_fill = self.symbols == alphabet.symbols - 1
        done = np.cumsum(np.where(is_fill, alphabet.longest, self.symbols // (2 * alphabet.most + 1) + 1))
        last = np.searchsorted(done, np.cumsum(weights))
        return [int(-(-bit_ends[min(i, len(bit_ends) - 1)] // 8)) if len(bit_ends) else 0 for i in last]


def runs_of(values: np.ndarray, alphabet: Alphabet) -> Runs:
    """Return ``values`` int32 [n] as symbols of ``alphabet``."""
    longest, most = alphabet.longest, alphabet.most
    where = np.flatnonzero(values)
    gaps = np.diff(where, prepend=-1) - 1
    tail = len(values) - 1 - (int(where[-1]) if len(where) else -1)
    fills = gaps // longest  # whole runs before each value
    count = len(where) + int(fills.sum())
    ends = np.cumsum(fills + 1) - 1  # place of each value's symbol
    symbols = np.full(count + -(-tail // longest), alphabet.symbols - 1, np.int64)
    value = values[where].astype(np.int64)
    size = np.abs(value)
    code = np.where(size <= most, 2 * (size - 1) + (value < 0), 2 * most)
    symbols[ends] = gaps % longest * (2 * most + 1) + code
    rests, bits = np.zeros(len(symbols), np.uint64), np.zeros(len(symbols), np.int64)
    large = size > most
    rest = size[large] - most
    length = np.frexp(rest.astype(np.float64))[1].astype(np.int64) - 1  # of the bits below the highest
    ones = (np.int64(1) << length) - 1
    low, sign = rest & ones, (value[large] < 0).astype(np.int64)
    rests[ends[large]] = (ones | low << (length + 1) | sign << (2 * length + 1)).astype(np.uint64)
    bits[ends[large]] = 2 * length + 2
    return Runs(symbols, rests, bits)


def best_alphabet(values: np.ndarray, table_bits: int) -> Alphabet:
    """Return the alphabet whose symbols take the least: their entropy, but at least a bit each, and ``table_bits`` for
    each that is in use. Of more than ``SAMPLED`` values some decide."""
    values = _sample(values)
    best: tuple[float, Alphabet] | None = None
    for alphabet in (Alphabet(*choice) for choice in CHOICES):
        runs = runs_of(values, alphabet)
        counts = np.bincount(runs.symbols, minlength=1)
        counts = counts[counts > 0]
        entropy = float((counts * np.maximum(-np.log2(counts / counts.sum()), 1)).sum())
        bits = entropy + float(runs.rest_bits.sum()) + table_bits * len(counts)
        if best is None or bits < best[0] - 1e-6:
            best = (bits, alphabet)
    assert best is not None
    return best[1]


def _sample(values: np.ndarray) -> np.ndarray:
    """Return about ``SAMPLED`` of ``values``, in stretches of 1024."""
    stretches = len(values) // 1024
    if len(values) <= SAMPLED:
        return values
    return values[: stretches * 1024].reshape(stretches, 1024)[:: -(-len(values) // SAMPLED)].reshape(-1)


class Expander:
    """Symbols back to values: what a decoder feeds."""

    def __init__(self, alphabet: Alphabet, count: int) -> None:
        self.alphabet, self.values, self.at = alphabet, np.zeros(count, np.int32), 0

    @property
    def is_full(self) -> bool:
        """Whether all values are known."""
        return self.at >= len(self.values)

    def add(self, symbol: int, bits: BitReader) -> None:
        """Take up the next symbol; ``bits`` follow it."""
        width = 2 * self.alphabet.most + 1
        if symbol == self.alphabet.symbols - 1:
            self.at += self.alphabet.longest
            return
        self.at += symbol // width
        code = symbol % width
        value = code // 2 + 1 if code % 2 == 0 else -(code // 2 + 1)
        if code == width - 1:
            length = 0
            while length < LONGEST_REST and bits.take(1):
                length += 1
            size = (1 << length | bits.take(length)) + self.alphabet.most
            value = -size if bits.take(1) else size
        if not self.is_full:
            self.values[self.at] = value
        self.at += 1


class BitReader:
    """Bits from the lowest of the first byte on; zeros beyond the end."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data + bytes(8), 0
        self.bits = 8 * len(data)

    def peek(self, count: int) -> int:
        """Return the next ``count`` [0, 32] bits, the first one lowest, and leave them."""
        byte = self.at >> 3
        return int.from_bytes(self.data[byte : byte + 5], "little") >> (self.at & 7) & ((1 << count) - 1)

    def take(self, count: int) -> int:
        """Return the next ``count`` [0, 32] bits.

        Raises: EndOfStream when there are not as many.
        """
        value = self.peek(count)
        self.at += count
        if self.at > self.bits:
            raise EndOfStream
        return value


def pack_bits(values: np.ndarray, counts: np.ndarray) -> tuple[bytes, np.ndarray]:
    """Return the ``counts`` [n] lowest bits of ``values`` uint64 [n] in order, and the number of bits up to
    the end of each."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    owner = np.repeat(np.arange(len(values)), counts)
    place = np.arange(total) - (ends - counts)[owner]
    bits = (values[owner] >> place.astype(np.uint64) & np.uint64(1)).astype(np.uint8)
    return np.packbits(bits, bitorder="little").tobytes(), ends
