"""Constants as the model stores them: integers or float16, and the scale that makes float32 weights of them.

    Given:                                       Result:
      w = multiply(astype(q, "float32"), s)        the package holds q (int8) and s
      y = matmul(x, w)                             w = dequantise(packed q, packed s)    runs once, at open
                                                   y = gemm(x, w, b)

A package would be four times larger with the float32 weights in it. The kernels still read float32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from tvm import relax

from ..kernels import conv2d, packing
from .layout_walk import OPAQUE, Pending, Walk, constant, per_channel

SMALLEST_BYTES = 4096  # float32 weights up to this size are stored as they are: another kernel costs as much
NARROW = ("int8", "uint8", "int16", "uint16", "float16")


@dataclass(frozen=True)
class Stored:
    """``array`` times ``scale`` (broadcastable, None for 1)."""

    array: np.ndarray
    scale: np.ndarray | None = None

    def minus(self, zero: np.ndarray) -> Stored | None:
        """Return the constant less ``zero``, if that is a whole number and the difference is as narrow."""
        if self.scale is not None or self.array.dtype.kind not in "iu" or np.any(zero != np.rint(zero)):
            return None
        shifted = self.array.astype(np.int64) - zero.astype(np.int64)
        for dtype in (np.int8, np.int16):
            if np.iinfo(dtype).min <= shifted.min() and shifted.max() <= np.iinfo(dtype).max:
                return Stored(shifted.astype(dtype))
        return None

    def times(self, scale: np.ndarray) -> Stored | None:
        """Return the constant times ``scale``, if that does not change its shape."""
        if np.broadcast_shapes(self.array.shape, scale.shape) != self.array.shape:
            return None
        return Stored(self.array, scale if self.scale is None else self.scale * scale)

    def rearranged(self, change: Callable[[np.ndarray], np.ndarray]) -> Stored | None:
        """Return the constant after a transposition or reshape; only one scale for all survives that."""
        if self.scale is not None and self.scale.size != 1:
            return None
        return Stored(change(self.array), None if self.scale is None else self.scale.reshape(()))

    def channel_scale(self, axis: int) -> np.ndarray | None:
        """Return the scale of each index along ``axis``, or None when it varies along another axis too."""
        size = self.array.shape[axis]
        if self.scale is None:
            return np.ones(size, np.float32)
        return per_channel(np.asarray(self.scale, np.float32), self.array.shape, axis % self.array.ndim)


def packed_weights(
    walk: Walk, pending: Pending, pack: Callable[[np.ndarray], np.ndarray], blocks: int, beside: int = 1
) -> relax.Expr:
    """Return the weights of ``pending`` as ``pack`` arranges them, [blocks/beside, ..., beside*lanes] with output
    channels first and last: a float32 constant, or a kernel that makes them of the stored ones at open."""
    stored = pending.stored
    scale = stored.channel_scale(-1 if pending.last else 0) if stored is not None else None
    if stored is None or scale is None or pending.weights.nbytes <= SMALLEST_BYTES:
        return constant(walk.coded.follow(pending.weights, pack))
    args = [constant(pack(stored.array)), constant(conv2d.pack_vector(scale, beside * walk.lanes, blocks // beside))]
    return walk.emit(packing.dequantise, *args, hint="dequantise", pattern=OPAQUE, name="weights")


def stored_or_float(walk: Walk, const: np.ndarray, stored: Stored | None) -> relax.Expr:
    """Return a constant that is read as it is: made at open of the stored one when that is much smaller."""
    if stored is None or const.nbytes <= 16 * SMALLEST_BYTES:
        return constant(const)
    value = walk.builder.emit(relax.op.astype(constant(stored.array), "float32"))
    if stored.scale is None:
        return value
    return walk.builder.emit(relax.op.multiply(value, constant(np.asarray(stored.scale, np.float32))))
