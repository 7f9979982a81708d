"""Emitter: what a converter can do with one operator of any format: ask for shapes, emit parts of the result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tvm import relax
from tvm.relax import Expr

from .network import NetworkBuilder, constant, shape_of
from .refused import Refused


class Emitter:
    """The common part of every format's node; a format says what its inputs are (``shape``, ``dtype``)."""

    def __init__(self, build: NetworkBuilder) -> None:
        self.build = build

    def shape(self, index: int = 0) -> tuple[int, ...]:
        """Return the static shape of input ``index``."""
        raise NotImplementedError

    def dtype(self, index: int = 0) -> str:
        """Return the numpy dtype name of input ``index``."""
        raise NotImplementedError

    def rank(self, index: int = 0) -> int:
        """Return the number of dimensions of input ``index``."""
        return len(self.shape(index))

    def axis(self, value: int, rank: int | None = None) -> int:
        """Return an axis counted from the front."""
        rank = self.rank() if rank is None else rank
        if not -rank <= value < max(rank, 1):
            raise Refused(f"axis {value} is out of range for {rank} dimensions")
        return value % rank if rank else 0

    def emit(self, expr: Expr) -> Expr:
        """Bind a part of the result and return its variable."""
        return self.build.emit(expr)

    def scalar(self, value: float, dtype: str | None = None) -> Expr:
        """Return a rank-0 constant, by default of input 0's dtype."""
        return constant(np.asarray(value, dtype or self.dtype()))

    def reshaped(self, expr: Expr, shape: Sequence[int]) -> Expr:
        """Return ``expr`` in another static shape; itself when the shape is its own."""
        expr = self.emit(expr)
        return expr if shape_of(expr) == tuple(shape) else relax.op.reshape(expr, tuple(shape))
