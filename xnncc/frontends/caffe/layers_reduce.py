"""Softmax, Reduction, ArgMax."""

from __future__ import annotations

import math

import numpy as np
from tvm import relax
from tvm.relax import Expr

from ..refused import Refused
from .node import Node
from .refused import Broken
from .registry import converter

R = relax.op
MAX_TOP_K = 64


@converter("Softmax")
def softmax(n: Node) -> Expr:
    n.need(1)
    return R.nn.softmax(n.expr(), n.axis(n.params("softmax_param").whole("axis", 1, -8)))


@converter("Reduction")
def reduction(n: Node) -> Expr:
    """All dimensions from ``axis`` on become one number."""
    n.need(1)
    p = n.params("reduction_param")
    words = {"1": "SUM", "2": "ASUM", "3": "SUMSQ", "4": "MEAN"}
    operation = p.choice("operation", "SUM", {**words, **{w: w for w in words.values()}})
    axis, coefficient = n.axis(p.whole("axis", 0, -8)), p.number("coeff", 1.0)
    x, axes = n.expr(), list(range(axis, n.rank()))
    x = {"ASUM": R.abs(x), "SUMSQ": R.multiply(x, x)}.get(operation, x)
    y = (R.mean if operation == "MEAN" else R.sum)(x, axes)
    return y if coefficient == 1 else R.multiply(y, n.scalar(coefficient))


@converter("ArgMax")
def arg_max(n: Node) -> Expr:
    """Where the ``top_k`` largest are, as floats: along ``axis``, or over everything of an image.

    Caffe sorts pairs of value and index downwards, so of equal values the one with the larger index comes first.
    """
    n.need(1)
    p = n.params("argmax_param")
    top_k, with_values = p.whole("top_k", 1, 1), p.flag("out_max_val", False)
    along = n.axis(p.whole("axis", 0, -8)) if p.has("axis") else None
    shape = n.shape()
    x = n.expr()
    if along is None:
        x, axis = n.emit(n.reshaped(x, (shape[0], math.prod(shape[1:])))), 1
        rows: tuple[int, ...] = (shape[0], math.prod(shape[1:]))
    else:
        axis, rows = along, shape
    if top_k > rows[axis]:
        raise Broken(f"top_k {top_k} is more than the {rows[axis]} elements")
    if top_k > MAX_TOP_K:
        raise Refused(f"top_k {top_k} is not supported", f"Supported: up to {MAX_TOP_K}.")
    places, values = _largest(n, x, axis, rows, top_k)
    if along is not None:
        return values if with_values else places
    tail = (1,) * max(len(shape) - 3, 0)
    places = n.reshaped(places, (shape[0], 1, top_k, *tail))
    return (
        R.concat([n.emit(places), n.emit(n.reshaped(values, (shape[0], 1, top_k, *tail)))], 1)
        if with_values
        else places
    )


def _largest(n: Node, x: Expr, axis: int, shape: tuple[int, ...], top_k: int) -> tuple[Expr, Expr]:
    """Return places and values, [.., top_k, ..], both float32."""
    size = shape[axis]
    line = np.arange(size, dtype="int64").reshape([-1 if i == axis else 1 for i in range(len(shape))])
    from_behind = n.build.constant(size - 1 - line)
    places, values = [], []
    rest = n.emit(x)
    for step in range(top_k):
        behind = n.emit(R.argmax(n.emit(R.flip(rest, axis)), axis, keepdims=True))
        values.append(n.emit(R.max(rest, [axis], keepdims=True)))
        place = R.subtract(n.build.constant(np.asarray(size - 1, "int64")), behind)
        places.append(n.emit(R.astype(place, "float32")))
        if step + 1 < top_k:
            rest = n.emit(R.where(R.equal(from_behind, behind), n.scalar(float(np.finfo("float32").min)), rest))
    if top_k == 1:
        return places[0], values[0]
    return n.emit(R.concat(places, axis)), n.emit(R.concat(values, axis))
