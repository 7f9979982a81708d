"""Binary range coder over ``range_model``: 64-bit interval, 32 bits at a time, carries resolved in the output.

Martin 1979, "Range encoding: an algorithm for removing redundancy from a digitised message"; binary decisions with
adaptive probabilities as in Langdon and Rissanen 1981, "Compression of black-white images with arithmetic coding".
This is the plain form, for machines without a C compiler; ``native.py`` does the same in C.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xnncc.pack.coding.layout import EndOfStream
from xnncc.pack.coding.range_model import Counters, code_tensor

_WORD, _HALF = (1 << 64) - 1, 1 << 32


class RangeEncoder:
    """Writes bits with their probabilities."""

    def __init__(self, mode: int) -> None:
        self.counters, self.out = Counters(mode), bytearray()
        self.low, self.range = 0, _WORD

    def code(self, counter: int, parent: int, bit: int) -> int:
        """Write ``bit`` with the probability of ``counter``."""
        self._narrow((self.range >> 16) * self.counters.expected(counter, parent), bit)
        self.counters.observe(counter, parent, bit)
        return bit

    def raw(self, bit: int) -> int:
        """Write ``bit`` with even probability."""
        self._narrow(self.range >> 1, bit)
        return bit

    def _narrow(self, bound: int, bit: int) -> None:
        if bit:
            self.low += bound
            self.range -= bound
        else:
            self.range = bound
        if self.range < _HALF:
            self._shift(4)
            self.range <<= 32

    def _shift(self, count: int) -> None:
        """Move the highest ``count`` bytes of the interval's low end to the output; a carry runs back through it."""
        if self.low > _WORD:
            i = len(self.out) - 1
            while self.out[i] == 255:
                self.out[i] = 0
                i -= 1
            self.out[i] += 1
            self.low &= _WORD
        self.out += self.low.to_bytes(8, "big")[:count]
        self.low = self.low << 8 * count & _WORD

    def finish(self) -> bytes:
        """Return the stream: as many bytes of the last interval as tell it from its neighbours, zeros cut off."""
        for zeros in range(64, -1, -1):  # the number in the interval with the most zeros at its end
            last = -(-self.low >> zeros) << zeros
            if last < self.low + self.range:
                break
        self.low = last
        self._shift(8)
        kept = len(self.out)
        while kept > len(self.out) - 8 and self.out[kept - 1] == 0:
            kept -= 1
        return bytes(self.out[:kept])


class RangeDecoder:
    """Reads what ``RangeEncoder`` wrote; beyond the end of ``data`` are at most eight zeros, which it left out."""

    def __init__(self, data: bytes, mode: int) -> None:
        self.counters, self.data, self.at = Counters(mode), data, 8
        self.range, self.value = _WORD, int.from_bytes(data[:8].ljust(8, b"\0"), "big")

    def code(self, counter: int, parent: int, _: int) -> int:
        """Return the next bit, which has the probability of ``counter``."""
        bit = self._narrow((self.range >> 16) * self.counters.expected(counter, parent))
        self.counters.observe(counter, parent, bit)
        return bit

    def raw(self, _: int) -> int:
        """Return the next bit, of even probability."""
        return self._narrow(self.range >> 1)

    def _narrow(self, bound: int) -> int:
        bit = int(self.value >= bound)
        if bit:
            self.value -= bound
            self.range -= bound
        else:
            self.range = bound
        if self.range < _HALF:
            if self.at + 4 > len(self.data) + 8:
                raise EndOfStream
            self.value = self.value << 32 | int.from_bytes(self.data[self.at : self.at + 4].ljust(4, b"\0"), "big")
            self.range <<= 32
            self.at += 4
        return bit


def encode_range(tensors: Sequence[np.ndarray], mode: int, shift: int = 0) -> tuple[bytes, list[int]]:
    """Return one stream of ``tensors`` [rows, columns] int32 and its length after each of them."""
    encoder, ends = RangeEncoder(mode), []
    for tensor in tensors:
        code_tensor(tensor.copy(), mode, shift, encoder.code, encoder.raw)
        ends.append(len(encoder.out))
    data = encoder.finish()
    return data, [*ends[:-1], len(data)]


def decode_range(data: bytes, shapes: Sequence[tuple[int, int]], mode: int, shift: int = 0) -> list[np.ndarray]:
    """Return the tensors of ``shapes``, [rows, columns] int32.

    Raises: EndOfStream.
    """
    decoder = RangeDecoder(data, mode)
    tensors = [np.zeros(shape, np.int32) for shape in shapes]
    for tensor in tensors:
        code_tensor(tensor, mode, shift, decoder.code, decoder.raw)
    return tensors
