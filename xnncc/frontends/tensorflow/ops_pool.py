"""Pools over windows. Elements of the padding never win and never count."""

from __future__ import annotations

from tvm import relax
from tvm.relax import Expr

from .node import Node
from .registry import converter
from .windows import pads_of

R = relax.op


@converter("MaxPool")
def max_pool(n: Node) -> Expr:
    kernel, strides = n.pair("ksize"), n.pair("strides")
    return n.image_result(R.nn.max_pool2d(n.image(), kernel, strides, pads_of(n, kernel, strides)))


@converter("AvgPool")
def avg_pool(n: Node) -> Expr:
    kernel, strides = n.pair("ksize"), n.pair("strides")
    pads = pads_of(n, kernel, strides)
    return n.image_result(R.nn.avg_pool2d(n.image(), kernel, strides, pads, count_include_pad=False))
