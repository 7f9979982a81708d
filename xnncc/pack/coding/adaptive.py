"""One-pass adaptive Huffman code of runs and values: no table, what was sent so far is the statistics.

Faller 1973, Gallager 1978 ("Variations on a theme by Huffman"), Knuth 1985 ("Dynamic Huffman coding"). Nodes are
numbered by falling weight: 0 is the root, siblings stand side by side, and the last node is the leaf of all symbols
that were not seen yet; its code is followed by the symbol's number. The same tree is in
``runtime/src/decode_adaptive.c``.
"""

from __future__ import annotations

import numpy as np

from xnncc.pack.coding.layout import EndOfStream
from xnncc.pack.coding.runs import Alphabet, BitReader, Expander, best_alphabet, pack_bits, runs_of

_NEW_BITS = 12  # what the first of a symbol costs beyond its code, about


class _Tree:
    def __init__(self) -> None:
        self.weight, self.parent, self.child, self.symbol = [0], [0], [0], [-1]
        self.leaf: dict[int, int] = {}

    @property
    def last(self) -> int:
        return len(self.weight) - 1

    def add(self, symbol: int) -> int:
        """Return the leaf of a symbol that was not seen before."""
        last = self.last
        self.child[last] = last + 1
        self.weight += [0, 0]
        self.parent += [last, last]
        self.child += [0, 0]
        self.symbol += [symbol, -1]
        self.leaf[symbol] = last + 1
        return last + 1

    def count(self, node: int) -> None:
        """Add one to the weight of ``node`` and of all above it; the order of weights is kept by exchanges."""
        weight, parent = self.weight, self.parent
        while True:
            first = node
            while first > 0 and weight[first - 1] == weight[node]:
                first -= 1
            if node and first == parent[node]:
                first += 1
            if first < node:
                self._exchange(node, first)
                node = first
            weight[node] += 1
            if node == 0:
                return
            node = parent[node]

    def _exchange(self, a: int, b: int) -> None:
        for array in (self.child, self.symbol):
            array[a], array[b] = array[b], array[a]
        for node in (a, b):
            if self.child[node]:
                self.parent[self.child[node]] = self.parent[self.child[node] + 1] = node
            else:
                self.leaf[self.symbol[node]] = node

    def code(self, node: int) -> tuple[int, int]:
        """Return the bits from the root to ``node``, the first one lowest, and their number."""
        bits = count = 0
        while node:
            above = self.parent[node]
            bits, count = bits << 1 | (node - self.child[above]), count + 1
            node = above
        return bits, count


def encode_adaptive(values: np.ndarray, weights: list[int]) -> tuple[Alphabet, bytes, list[int]]:
    """Return the stream of ``values`` int32 [n], and its length after each tensor of ``weights`` values."""
    alphabet = best_alphabet(values, _NEW_BITS)
    runs, tree = runs_of(values, alphabet), _Tree()
    width = (alphabet.symbols - 1).bit_length()
    codes, counts = [], []
    for symbol in runs.symbols.tolist():
        node = tree.leaf.get(symbol)
        if node is None:
            bits, count = tree.code(tree.last)
            bits, count = bits | symbol << count, count + width
            node = tree.add(symbol)
        else:
            bits, count = tree.code(node)
        codes.append(bits)
        counts.append(count)
        tree.count(node)
    # A code may be longer than 64 bits only after 2^44 symbols; with a spelled-out magnitude behind it, a bit sooner.
    data, ends = pack_bits(*_split(np.array(codes, np.uint64), np.array(counts, np.int64), runs.rests, runs.rest_bits))
    return alphabet, data, runs.ends_in(ends[1::2], alphabet, weights)


def _split(
    codes: np.ndarray, counts: np.ndarray, rests: np.ndarray, rest_bits: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return codes and rests in turn."""
    return np.stack([codes, rests], 1).reshape(-1), np.stack([counts, rest_bits], 1).reshape(-1)


def decode_adaptive(data: bytes, alphabet: Alphabet, count: int) -> np.ndarray:
    """Return ``count`` values, int32.

    Raises: EndOfStream.
    """
    reader, tree, out = BitReader(data), _Tree(), Expander(alphabet, count)
    width = (alphabet.symbols - 1).bit_length()
    while not out.is_full:
        node = 0
        while tree.child[node]:
            node = tree.child[node] + reader.take(1)
        symbol = tree.symbol[node]
        if symbol < 0:
            symbol = reader.take(width)
            if symbol >= alphabet.symbols or symbol in tree.leaf:
                raise EndOfStream
            node = tree.add(symbol)
        tree.count(node)
        out.add(symbol, reader)
    return out.values
