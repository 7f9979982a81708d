"""Operators about order: TopK, running products, sequences read backwards."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from tvm import relax, te, tirx
from tvm.relax import Expr

from .node import Node, Refused
from .registry import converter

R = relax.op
MAX_RANKED = 16384  # elements of a row: ranks are found by comparing all pairs


@converter("TopK")
def top_k(n: Node) -> list[Expr]:
    """The k largest (or smallest) along an axis, sorted; of equal ones the first comes first.

    The rank of an element is how many stand before it: no sorting, so that every step is a plain loop.
    """
    n.ignore("sorted")  # sorted is one of the orders that sorted=0 allows
    axis = n.axis(int(n.attr("axis", -1)))
    k = n.ints(1, "k")[0] if n.has(1) else int(n.attr("k", 0))
    largest, shape = bool(n.attr("largest", 1)), n.shape()
    size = shape[axis]
    if not 1 <= k <= size or size > MAX_RANKED:
        raise Refused(f"k={k} of {size} elements is not supported", f"Supported: 1 to {MAX_RANKED} elements.")
    order = [i for i in range(len(shape)) if i != axis] + [axis]
    back = [order.index(i) for i in range(len(shape))]
    rows = int(np.prod(shape)) // size
    x = R.permute_dims(n.expr(0), order) if order != list(range(len(shape))) else n.expr(0)
    x = n.emit(n.reshaped(x, [rows, size]))
    index = n.emit(n.build.call_te(_picker(k, largest), x, name="top_k"))
    values = R.gather_elements(x, index, 1)
    wide = [shape[i] for i in order[:-1]] + [k]
    results = []
    for part in (values, index):
        part = n.emit(n.reshaped(part, wide))
        results.append(R.permute_dims(part, back) if back != list(range(len(shape))) else part)
    return results


def _picker(k: int, largest: bool) -> Callable[..., te.Tensor]:
    """Return the kernel [rows, size] -> positions [rows, k] int64."""

    def compute(x: te.Tensor) -> te.Tensor:
        rows, size = (int(d) for d in x.shape)
        j, i = te.reduce_axis((0, size), "j"), te.reduce_axis((0, size), "i")

        def stands_before(r: tirx.Var, a: tirx.Var) -> tirx.Expr:
            first = x[r, j] > x[r, a] if largest else x[r, j] < x[r, a]
            earlier = tirx.all(x[r, j] == x[r, a], j < a)
            return tirx.Select(tirx.any(first, earlier), tirx.const(1, "int32"), tirx.const(0, "int32"))

        rank = te.compute((rows, size), lambda r, a: te.sum(stands_before(r, a), axis=j), "rank")

        def position(r: tirx.Var, c: tirx.Var) -> tirx.Expr:
            hit = rank[r, i] == tirx.Cast("int32", c)
            return te.sum(tirx.Select(hit, tirx.Cast("int64", i), tirx.const(0, "int64")), axis=i)

        return te.compute((rows, k), position, "top_k")

    return compute


@converter("CumProd")
def cum_prod(n: Node) -> Expr:
    axis = n.axis(n.ints(1, "axis")[0])
    exclusive = bool(n.attr("exclusive", 0))
    x = n.expr(0)
    if n.attr("reverse", 0):
        return R.flip(_running_product(n, n.emit(R.flip(x, axis)), axis, exclusive), axis)
    return _running_product(n, x, axis, exclusive)


def _running_product(n: Node, x: Expr, axis: int, exclusive: bool) -> Expr:
    def compute(source: te.Tensor) -> te.Tensor:
        j = te.reduce_axis((0, int(source.shape[axis])), "j")
        one = tirx.const(1, source.dtype)
        product = te.comm_reducer(lambda a, b: a * b, lambda dtype: tirx.const(1, dtype), "prod")

        def element(*at: tirx.Var) -> tirx.Expr:
            read = [j if i == axis else place for i, place in enumerate(at)]
            inside = j < at[axis] if exclusive else j <= at[axis]
            return product(tirx.Select(inside, source(*read), one), axis=j)

        return te.compute(source.shape, element, "cum_prod")

    return n.build.call_te(compute, x, name="cum_prod")


@converter("ReverseSequence")
def reverse_sequence(n: Node) -> Expr:
    """The first ``sequence_lens[b]`` steps of batch entry b backwards, the rest as it is."""
    time, batch = n.axis(int(n.attr("time_axis", 0))), n.axis(int(n.attr("batch_axis", 1)))
    if {time, batch} != {0, 1}:
        raise Refused(f"time_axis {time} and batch_axis {batch} must be 0 and 1")
    lengths = n.emit(R.astype(n.expr(1), "int64"))

    def compute(x: te.Tensor, length: te.Tensor) -> te.Tensor:
        def element(*at: tirx.Var) -> tirx.Expr:
            count, step = length[at[batch]], tirx.Cast("int64", at[time])
            moved = tirx.Select(step < count, count - 1 - step, step)
            moved = tirx.max(tirx.min(moved, tirx.const(int(x.shape[time]) - 1, "int64")), tirx.const(0, "int64"))
            return x(*[moved if i == time else place for i, place in enumerate(at)])

        return te.compute(x.shape, element, "reverse_sequence")

    return n.build.call_te(compute, n.expr(0), lengths, name="reverse_sequence")
