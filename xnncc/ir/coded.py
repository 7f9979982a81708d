"""A weight as integers and what they stand for: what compression makes, entropy coding stores and open decodes.

Relax constants have no names, so coded weights travel beside a module in a table from the ``digest`` of the float32
constant to its ``CodedTensor``. A pass that leaves the constant alone keeps it coded; one that changes it changes the
digest, and the constant is stored as floats.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

import numpy as np

LARGEST = 1 << 24  # magnitude of an integer: float32 holds every one up to here exactly


@dataclass(frozen=True, eq=False)
class CodedTensor:
    """Integers in the weight's own shape, and steps or a codebook.

    ``integers``: int32, magnitudes at most ``LARGEST``; with a codebook indices into it.
    ``steps``: float32 [1], or [integers.shape[axis]] for a step per index along ``axis`` (output channels or rows).
    ``codebook``: float32 [K], instead of steps. Sorted codebooks are coded best.
    """

    integers: np.ndarray
    steps: np.ndarray | None = None
    codebook: np.ndarray | None = None
    axis: int = 0

    def __post_init__(self) -> None:
        assert self.integers.dtype == np.int32, f"integers are {self.integers.dtype}, not int32"
        assert (self.steps is None) != (self.codebook is None), "either steps or a codebook"
        table = self.table
        assert table.dtype == np.float32 and table.ndim == 1, "steps and codebooks are float32 [n]"
        assert np.all(np.isfinite(table)), "steps and codebooks are finite"
        low, high = (int(self.integers.min()), int(self.integers.max())) if self.integers.size else (0, 0)
        if self.codebook is not None:
            assert low >= 0 and high < max(len(table), 1), f"integers {low}..{high} for a codebook of {len(table)}"
            return
        assert low >= -LARGEST and high <= LARGEST, f"integers {low}..{high} are beyond {LARGEST}"
        if len(table) != 1:
            assert 0 <= self.axis < self.integers.ndim, f"axis {self.axis} of rank {self.integers.ndim}"
            assert len(table) == self.integers.shape[self.axis], f"{len(table)} steps for {self.integers.shape}"

    @property
    def table(self) -> np.ndarray:
        """The steps or the codebook, float32 [n]."""
        table = self.steps if self.steps is not None else self.codebook
        assert table is not None
        return table

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the weight."""
        return self.integers.shape

    @property
    def size(self) -> int:
        """Number of weights."""
        return int(self.integers.size)

    def values(self) -> np.ndarray:
        """Return the weight, float32: one rounding from step times integer, so every decoder gives these bits."""
        if self.codebook is not None:
            return self.codebook[self.integers]
        assert self.steps is not None
        steps = self.steps
        if len(steps) != 1:
            steps = steps.reshape([-1 if i == self.axis else 1 for i in range(self.integers.ndim)])
        return np.asarray(self.integers.astype(np.float32) * steps, np.float32)


def digest(array: np.ndarray) -> str:
    """Return what identifies a constant: SHA-256 of its shape, dtype and bytes, in hexadecimal digits."""
    head = f"{array.dtype.str} {','.join(map(str, array.shape))};".encode()
    return sha256(head + np.ascontiguousarray(array).tobytes()).hexdigest()


def coded_table(tensors: list[CodedTensor]) -> dict[str, CodedTensor]:
    """Return the table that travels with a module in which the constants are the ``values`` of ``tensors``."""
    return {digest(t.values()): t for t in tensors}
