"""TE expressions of TFLite's fixed-point arithmetic (``fixed_point.py``), for kernels of quantised operators."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import te, tirx
from tvm.relax import Expr

from .fixed_point import Multipliers, zero_of
from .op import Op


def i64(value: int) -> Any:
    """Return an int64 constant."""
    return tirx.const(int(value), "int64")


def scaled_by(x: Any, factor: Any, right: Any) -> Any:
    """Return int64 ``x`` times a multiplier and shift, rounded as ``fixed_point.scaled`` does."""
    high = (x * factor + i64(2**30)) >> i64(31)
    half = (i64(1) << right) >> i64(1)
    return (high + half + tirx.Select(right > i64(0), high >> i64(63), i64(0))) >> right


def scaled_by_one(x: Any, by: Multipliers) -> Any:
    """Return int64 ``x`` times one factor known now."""
    return scaled_by(x, i64(by.factor[0]), i64(by.right[0]))


def narrowed(x: Any, zero: int, bounds: tuple[int, int], dtype: str) -> Any:
    """Return int64 ``x`` plus the zero point within ``bounds`` as ``dtype``."""
    return tirx.max(tirx.min(x + i64(zero), i64(bounds[1])), i64(bounds[0])).astype(dtype)


def requantise(n: Op, acc: Expr, by: Multipliers, axis: int, bounds: tuple[int, int]) -> Expr:
    """Return int32 ``acc`` as the output stores it; ``by`` has one factor, or one for each index of ``axis``."""
    zero, dtype = zero_of(n.out()), n.out().dtype
    if by.multiplier.size == 1:

        def with_one(x: te.Tensor) -> te.Tensor:
            return te.compute(
                x.shape,
                lambda *i: narrowed(scaled_by_one(x(*i).astype("int64"), by), zero, bounds, dtype),
                name="requantise",
            )

        return n.build.call_te(with_one, acc, name="requantise")
    tables = [n.build.constant(np.ascontiguousarray(table, "int64")) for table in (by.factor, by.right)]

    def with_many(x: te.Tensor, factor: te.Tensor, right: te.Tensor) -> te.Tensor:
        def element(*i: tirx.Var) -> Any:
            y = scaled_by(x(*i).astype("int64"), factor[i[axis]], right[i[axis]])
            return narrowed(y, zero, bounds, dtype)

        return te.compute(x.shape, element, name="requantise")

    return n.build.call_te(with_many, acc, *tables, name="requantise")
