"""InnerProduct, Embed, Parameter."""

from __future__ import annotations

import math

import numpy as np
from tvm import relax
from tvm.relax import Expr

from .node import Node
from .refused import Broken
from .registry import converter

R = relax.op


@converter("InnerProduct")
def inner_product(n: Node) -> Expr:
    """Everything from ``axis`` on is one row of K values; weights [O, K], or [K, O] with ``transpose``."""
    n.need(1)
    p = n.params("inner_product_param")
    axis, outputs = n.axis(p.whole("axis", 1, -8)), p.whole("num_output", 0, 0)
    if outputs < 1:
        raise Broken(f"{p.name} gives no num_output")
    before, size = n.shape()[:axis], math.prod(n.shape()[axis:])
    transposed = p.flag("transpose", False)
    weight = n.blob(0, (size, outputs) if transposed else (outputs, size), "weights")
    columns = n.build.constant(weight if transposed else np.ascontiguousarray(weight.T))
    y = R.matmul(n.reshaped(n.expr(), (math.prod(before), size)), columns)
    if p.flag("bias_term", True):
        bias = n.blob(1, (outputs,), "bias")
        y = R.add(y, n.build.constant(bias.reshape(1, -1))) if bias.any() else y
    return n.reshaped(y, (*before, outputs))


@converter("Embed")
def embed(n: Node) -> Expr:
    """Row x of the weights [input_dim, O] for each element x, plus a bias [O]."""
    n.need(1)
    p = n.params("embed_param")
    rows, outputs = p.whole("input_dim", 0, 0), p.whole("num_output", 0, 0)
    if rows < 1 or outputs < 1:
        raise Broken(f"{p.name} gives no input_dim and num_output")
    table = n.blob(0, (rows, outputs), "weights")
    y = R.take(n.build.constant(table), n.emit(R.astype(n.expr(), "int32")), axis=0, mode="clip")
    return R.add(y, n.build.constant(n.blob(1, (outputs,), "bias"))) if p.flag("bias_term", True) else y


@converter("Parameter")
def parameter(n: Node) -> np.ndarray:
    """A blob of weights as a tensor."""
    n.need(0)
    shape = n.params("parameter_param").message_of("shape")
    return n.blob(0, shape.wholes("dim") if shape else (), "parameter")
