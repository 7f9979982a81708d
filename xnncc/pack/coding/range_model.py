"""The context model of the range coder: which bits a tensor of integers becomes, and the probability of each.

A weight is a zero flag, a sign, and its magnitude in unary up to ``UNARY``, then in Exp-Golomb form. Contexts are the
mean magnitudes of the weight's column and row so far, which take the place of lists of dead rows and columns, and the
signs to the left and above. ``runtime/src/decode_range.c`` decodes the same bits and changes together with this file.

A mode is a sum of PLAIN (one context for all weights, for tensors too small to tell contexts apart) and STEADY (for
dense tensors of many bits, whose statistics hold from end to end: counters learn slowly, means begin where the tensor's
rows are on average, and more low bits are learnt behind ones: a row's largest magnitude has all of them set).

A probability is the mean of two that adapt at different rates, both fast at first. A counter that is seen for the first
time begins where the parent of its kind stands, which observes with all counters that still learn: few weights pay for
learning few numbers.
All arithmetic is on integers, so every machine takes the same decisions.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

UNARY = 14  # magnitudes up to here have a bit of their own each
LONGEST = 24  # bits of the remainder of a larger magnitude
LEVELS = 24  # steps of a mean magnitude
COLUMN_RATE, ROW_RATE = 6, 7  # 2^-rate is the weight of the latest magnitude in a mean
FIRST_RATE, BASE_RATE = 3, 4  # steady: of the first magnitudes, and of the latest row in the mean of rows
PLAIN, STEADY, MODES = 1, 2, 4
CAPPED = 15  # magnitudes count as at most this in a mean
LOW_BINS, LOW_LEARNT, MOST_SHIFT = 16, 2, 16  # low bits: contexts by magnitude, bits with a counter, most of all
INHERITED = 4  # observations that a counter takes over from its parent

# Counters by number: zero flags, signs, magnitudes [level, sign, unary], lengths and top bits of
# remainders, low bits [magnitude, bits above, then places behind ones], parents.
ZERO = 0
SIGN = ZERO + LEVELS * LEVELS
MAGNITUDE = SIGN + 9
LENGTH = MAGNITUDE + LEVELS * 2 * UNARY
TOP = LENGTH + LONGEST
LOW = TOP + LONGEST + 1
LOW_COUNTERS = MOST_SHIFT + 1
PARENT_ZERO = LOW + LOW_BINS * LOW_COUNTERS
PARENT_SIGN = PARENT_ZERO + 1
PARENT_MAGNITUDE = PARENT_SIGN + 1
COUNTERS = PARENT_MAGNITUDE + 2 * UNARY

# Adaptation after n observations: the new one weighs 2^-rate. 1/2, 1/4, ... like the mean of all, then constant.
SEEN_MOST = 255
SLOW = [
    next(rate for rate, until in enumerate((1, 3, 6, 12, 24, 48, 96, 192, 256), 1) if n < until) for n in range(256)
]
FAST = [min(rate, 6) for rate in SLOW]  # unless steady


LEAST, MOST = 32, 65504  # probabilities in units of 2^-16; the slow one of a counter has 6 bits more


class Counters:
    """The state of all counters: two probabilities of a 0 and the number of observations."""

    def __init__(self, mode: int) -> None:
        self.fast_rate = SLOW if mode & STEADY else FAST
        self.fast = [1 << 15] * COUNTERS
        self.slow = [1 << 21] * COUNTERS
        self.seen = [0] * COUNTERS

    def expected(self, counter: int, parent: int) -> int:
        """Return the probability of a 0 in units of 2^-16, [LEAST, MOST]; a new counter begins where ``parent`` is."""
        if not self.seen[counter] and parent >= 0 and self.seen[parent]:
            self.fast[counter] = self._probability(parent)
            self.slow[counter] = self.fast[counter] << 6
            self.seen[counter] = min(self.seen[parent], INHERITED)
        return self._probability(counter)

    def observe(self, counter: int, parent: int, bit: int) -> None:
        """Take ``bit`` into account."""
        if parent >= 0 and self.seen[counter] < SEEN_MOST:
            self._update(parent, bit)
        self._update(counter, bit)

    def _probability(self, counter: int) -> int:
        return ((self.fast[counter] << 6) + self.slow[counter]) >> 7

    def _update(self, counter: int, bit: int) -> None:
        n, truth = self.seen[counter], LEAST if bit else MOST
        self.fast[counter] += (truth - self.fast[counter]) >> self.fast_rate[n]
        self.slow[counter] += ((truth << 6) - self.slow[counter]) >> SLOW[n]
        self.seen[counter] = min(n + 1, SEEN_MOST)


Code = Callable[[int, int, int], int]  # (counter, its parent or -1, bit) -> bit; a decoder ignores the bit given
Raw = Callable[[int], int]  # bit -> bit: one of even probability


def code_tensor(values: np.ndarray, mode: int, shift: int, code: Code, raw: Raw) -> None:
    """Code ``values`` [rows, columns] int32 row by row; a decoder writes them.

    ``shift``: the lowest bits of the magnitudes in a row follow the row.
    """
    rows, columns = values.shape
    is_steady, base = bool(mode & STEADY), 0
    column_means, above = [0] * columns, [0] * columns
    for r in range(rows):
        whole = values[r].tolist()
        line = [(abs(value) >> shift) * (-1 if value < 0 else 1) for value in whole]
        row_mean, left, row_rate = base, 0, FIRST_RATE if base else 0
        column_rate = (
            max(min((r + 1).bit_length(), COLUMN_RATE + 1), FIRST_RATE)
            if is_steady
            else min((r + 1).bit_length(), COLUMN_RATE)
        )
        for c in range(columns):
            mean = row_mean if is_steady and r == 0 else column_means[c]
            if mode & PLAIN:
                zero, sign, magnitude = 0, 0, 0
            else:
                zero = _level(mean) * LEVELS + _level(row_mean)
                sign = 3 * left + above[c]
                both = mean + row_mean - base if is_steady else (mean + row_mean) >> 1
                magnitude = _level(min(max(both, 0), CAPPED << 12))
            value = line[c]
            if code(ZERO + zero, PARENT_ZERO, int(value != 0)):
                negative = code(SIGN + sign, PARENT_SIGN, int(value < 0))
                size = _code_magnitude(abs(value), magnitude, negative, code, raw)
                line[c] = -size if negative else size
                left = 1 + negative
            else:
                line[c] = size = left = 0
            above[c] = left
            size = min(size, CAPPED) << 12
            column_means[c] = mean + ((size - mean) >> column_rate)
            row_mean += (size - row_mean) >> max(min((c + 1).bit_length(), ROW_RATE), row_rate)
        if is_steady:
            base += (row_mean - base) >> (BASE_RATE if base else 0)
        values[r] = _code_low(line, whole, shift, is_steady, code, raw) if shift else line


def _code_low(line: list[int], whole: list[int], shift: int, is_chained: bool, code: Code, raw: Raw) -> list[int]:
    """Code the low bits of the values ``whole``, of which ``line`` has the high ones, and return the values.

    The sign of a value without high bits comes after its low ones.
    """
    result = []
    for high, value in zip(line, whole, strict=True):
        size, negative = abs(high), int(high < 0)
        counters = LOW + min(size, LOW_BINS - 1) * LOW_COUNTERS
        low = _code_tail(counters, shift, LOW_LEARNT, is_chained, abs(value) & ((1 << shift) - 1), code, raw)
        magnitude = size << shift | low
        if not size and magnitude:
            negative = raw(int(value < 0))
        result.append(-magnitude if negative else magnitude)
    return result


def _code_tail(counters: int, count: int, learnt: int, is_chained: bool, value: int, code: Code, raw: Raw) -> int:
    """Code the ``count`` bits of ``value``, the highest first, and return it; the first ``learnt`` have counters, and
    with ``is_chained`` so has a later one behind nothing but ones."""
    tail = 1
    for i in range(count):
        bit = value >> (count - 1 - i) & 1
        if i < learnt:
            bit = code(counters + tail - 1, -1, bit)
        elif is_chained and not tail & (tail + 1):
            bit = code(counters + i + 1, -1, bit)
        else:
            bit = raw(bit)
        tail = tail << 1 | bit
    return tail - (1 << count)


def _level(mean: int) -> int:
    """Return the step of ``mean`` (a magnitude times 4096): two steps for each factor of two, from 1/256 on."""
    mean >>= 4
    bits = mean.bit_length() - 1
    return 2 * bits + (mean >> (bits - 1) & 1) if bits > 0 else mean


def _code_magnitude(size: int, level: int, negative: int, code: Code, raw: Raw) -> int:
    """Code a magnitude of at least 1 and return it."""
    counter, parent = MAGNITUDE + (2 * level + negative) * UNARY, PARENT_MAGNITUDE + negative * UNARY
    for j in range(UNARY):
        if not code(counter + j, parent + j, int(size > j + 1)):
            return j + 1
    rest = size - UNARY  # at least 1
    length = 0
    while length < LONGEST and code(LENGTH + length, -1, int(rest >> (length + 1) != 0)):
        length += 1
    tail = _code_tail(TOP + length, length, 1, False, rest & ((1 << length) - 1), code, raw)
    return UNARY + (1 << length | tail)
