"""Canonical Huffman codes of runs and values, at most ``LONGEST`` bits: the coder that decodes fastest.

Code lengths by package-merge: Larmore and Hirschberg 1990, "A fast algorithm for optimal length-limited Huffman
codes". Codes are numbered by length, then symbol; their bits stand in the stream from the highest on. The stream begins
with the length of each symbol, 4 bits; after a 0, how many more zeros follow: with n = that number plus one, the bits
of n below its highest counted in ones and a zero, then these bits.
"""

from __future__ import annotations

import numpy as np

from xnncc.pack.coding.layout import EndOfStream
from xnncc.pack.coding.runs import Alphabet, BitReader, Expander, best_alphabet, pack_bits, runs_of

LONGEST = 12
_TABLE_BITS = 6  # what a symbol in use costs in the table, about


def encode_huffman(values: np.ndarray, weights: list[int]) -> tuple[Alphabet, bytes, list[int]]:
    """Return the stream of ``values`` int32 [n], and its length after each tensor of ``weights`` values."""
    alphabet = best_alphabet(values, _TABLE_BITS)
    runs = runs_of(values, alphabet)
    lengths = _lengths(np.bincount(runs.symbols, minlength=alphabet.symbols))
    head_bits, head_counts = _table(lengths)
    codes = _reversed_codes(lengths)
    body = runs.after(codes[runs.symbols], lengths[runs.symbols])
    data, ends = pack_bits(np.concatenate([head_bits, body[0]]), np.concatenate([head_counts, body[1]]))
    return alphabet, data, runs.ends_in(ends[len(head_counts) :], alphabet, weights)


def decode_huffman(data: bytes, alphabet: Alphabet, count: int) -> np.ndarray:
    """Return ``count`` values, int32.

    Raises: EndOfStream.
    """
    reader = BitReader(data)
    lengths = _read_table(reader, alphabet.symbols)
    if int((1 << (LONGEST - lengths[lengths > 0])).sum()) != 1 << LONGEST or lengths.max() > LONGEST:
        raise EndOfStream
    codes = _reversed_codes(lengths)
    symbol_of = np.zeros(1 << LONGEST, np.int64)
    for symbol in np.flatnonzero(lengths):
        symbol_of[int(codes[symbol]) :: 1 << int(lengths[symbol])] = symbol
    symbols, counts = symbol_of.tolist(), lengths.tolist()
    out = Expander(alphabet, count)
    while not out.is_full:
        found = symbols[reader.peek(LONGEST)]
        reader.take(counts[found])
        out.add(found, reader)
    return out.values


def _lengths(counts: np.ndarray) -> np.ndarray:
    """Return the length of each symbol's code, int64; 0 for symbols that do not occur, but at least two have one."""
    used = [int(s) for s in np.flatnonzero(counts)]
    used += [s for s in range(len(counts)) if s not in used][: max(2 - len(used), 0)]
    leaves = sorted((int(counts[s]), [s]) for s in used)
    packages: list[tuple[int, list[int]]] = []
    for _ in range(LONGEST):
        merged = sorted([*leaves, *packages], key=lambda package: package[0])
        packages = [(a[0] + b[0], a[1] + b[1]) for a, b in zip(merged[::2], merged[1::2], strict=False)]
    lengths = np.zeros(len(counts), np.int64)
    for _, symbols in merged[: 2 * len(used) - 2]:
        np.add.at(lengths, symbols, 1)
    return lengths


def _reversed_codes(lengths: np.ndarray) -> np.ndarray:
    """Return each symbol's code with its first bit lowest, uint64."""
    codes = np.zeros(len(lengths), np.uint64)
    code, before = 0, 0
    for symbol in sorted(np.flatnonzero(lengths), key=lambda s: (lengths[s], s)):
        length = int(lengths[symbol])
        code <<= length - before
        codes[symbol] = int(f"{code:0{length}b}"[::-1], 2)
        code, before = code + 1, length
    return codes


def _table(lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the bits of the table of lengths and their counts."""
    bits, counts = [], []
    at = 0
    while at < len(lengths):
        bits.append(int(lengths[at]))
        counts.append(4)
        at += 1
        if bits[-1] == 0:
            more = next((i for i, n in enumerate(lengths[at:]) if n), len(lengths) - at)
            length = (more + 1).bit_length() - 1
            bits.append((1 << length) - 1 | (more + 1 - (1 << length)) << (length + 1))
            counts.append(2 * length + 1)
            at += more
    return np.array(bits, np.uint64), np.array(counts, np.int64)


def _read_table(reader: BitReader, symbols: int) -> np.ndarray:
    lengths: list[int] = []
    while len(lengths) < symbols:
        lengths.append(reader.take(4))
        if lengths[-1] == 0:
            length = 0
            while length < 16 and reader.take(1):
                length += 1
            lengths += [0] * ((1 << length | reader.take(length)) - 1)
    if len(lengths) > symbols:
        raise EndOfStream
    return np.array(lengths, np.int64)
