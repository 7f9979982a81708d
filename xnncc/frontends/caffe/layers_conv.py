"""Convolution, ConvolutionDepthwise, Deconvolution.

x: [N, C, spatial...], weights [O, C/G, kernel...] (Deconvolution: [C, O/G, kernel...]), bias [O].
One-dimensional ones become conv2d with H = 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import relax
from tvm.relax import Expr

from ..network import shape_of
from ..refused import Refused
from .node import Node
from .params import Params
from .refused import Broken
from .registry import converter
from .windows import per_dimension, reach

R = relax.op
MAX_SPREAD = 2**26  # elements of weights spread by a dilation


@dataclass(frozen=True)
class _Geometry:
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    pad: tuple[int, ...]
    dilation: tuple[int, ...]
    outputs: int
    groups: int


@converter("Convolution", "ConvolutionDepthwise")
def convolution(n: Node) -> Expr:
    n.need(1)
    p = n.params("convolution_param")
    g = _geometry(n, p, ranks=(1, 2, 3))
    channels = n.shape()[1]
    if channels % g.groups or g.outputs % g.groups:
        raise Broken(f"{channels} channels to {g.outputs} outputs cannot be cut into {g.groups} groups")
    weight = n.blob(0, (g.outputs, channels // g.groups, *g.kernel), "weights")
    ends = zip(n.shape()[2:], g.pad, reach(g.kernel, g.dilation), strict=True)
    if any(size + 2 * pad < extent for size, pad, extent in ends):
        raise Broken(f"a window of {list(reach(g.kernel, g.dilation))} does not fit input {list(n.shape())}")
    if n.rank() == 5:
        return _biased(
            n, p, g, R.nn.conv3d(n.expr(), n.build.constant(weight), g.stride, g.pad * 2, g.dilation, g.groups)
        )
    return _flat(n, p, _lifted(n, g), weight, False)


@converter("Deconvolution")
def deconvolution(n: Node) -> Expr:
    """The transpose of a convolution: stride * (size - 1) + reach - 2 * pad elements come out."""
    n.need(1)
    p = n.params("convolution_param")
    g = _geometry(n, p, ranks=(1, 2))
    channels = n.shape()[1]
    if channels % g.groups or g.outputs % g.groups:
        raise Broken(f"{channels} channels to {g.outputs} outputs cannot be cut into {g.groups} groups")
    weight = n.blob(0, (channels, g.outputs // g.groups, *g.kernel), "weights")
    extents = reach(g.kernel, g.dilation)
    sizes = [
        s * (size - 1) + r - 2 * pad for size, s, r, pad in zip(n.shape()[2:], g.stride, extents, g.pad, strict=True)
    ]
    if min(sizes) < 1:
        raise Broken(f"input {list(n.shape())} would give {sizes}")
    return _flat(n, p, _lifted(n, g), _spread(weight, g.dilation), True)


def _geometry(n: Node, p: Params, ranks: tuple[int, ...]) -> _Geometry:
    rank = n.rank() - 2
    if rank not in ranks:
        words = ", ".join(str(r) for r in ranks)
        raise Refused(f"input {list(n.shape())} has {max(rank, 0)} spatial dimensions", f"Supported: {words}.")
    if n.axis(p.whole("axis", 1, -8)) != 1:
        raise Refused(f"{p.name} axis {p.whole('axis', 1, -8)} is not supported", "Supported: 1.")
    outputs = p.whole("num_output", 0, 0)
    depthwise = n.layer.type == "ConvolutionDepthwise"
    groups = p.whole("group", 1, 1)
    if outputs < 1:
        raise Broken(f"{p.name} gives no num_output")
    return _Geometry(
        kernel=per_dimension(p, "kernel_size", rank, None, 1),
        stride=per_dimension(p, "stride", rank, 1, 1),
        pad=per_dimension(p, "pad", rank, 0, 0),
        dilation=per_dimension(p, "dilation", rank, 1, 1),
        outputs=outputs,
        groups=n.shape()[1] if depthwise else groups,
    )


def _lifted(n: Node, g: _Geometry) -> _Geometry:
    """Return one-dimensional windows as two-dimensional ones of height 1."""
    if n.rank() == 4:
        return g
    return _Geometry((1, *g.kernel), (1, *g.stride), (0, *g.pad), (1, *g.dilation), g.outputs, g.groups)


def _flat(n: Node, p: Params, g: _Geometry, weight: np.ndarray, transposed: bool) -> Expr:
    """Return the two-dimensional convolution; of a three-dimensional input with a height of 1 put in and out."""
    shape = n.shape() if n.rank() == 4 else (*n.shape()[:2], 1, n.shape()[2])
    weight = weight if weight.ndim == 4 else weight.reshape(*weight.shape[:2], 1, -1)
    x, w = n.reshaped(n.expr(), shape), n.build.constant(weight)
    if transposed:
        y: Any = R.nn.conv2d_transpose(x, w, g.stride, g.pad * 2, (0, 0), groups=g.groups)
    else:
        y = R.nn.conv2d(x, w, g.stride, g.pad * 2, g.dilation, g.groups)
    y = n.emit(_biased(n, p, g, y))
    batch, channels, _, width = shape_of(y)
    return y if n.rank() == 4 else n.reshaped(y, (batch, channels, width))


def _biased(n: Node, p: Params, g: _Geometry, y: Expr) -> Expr:
    if not p.flag("bias_term", True):
        return y
    bias = n.blob(1, (g.outputs,), "bias")
    y = n.emit(y)
    shape = (1, -1) + (1,) * (len(shape_of(y)) - 2)
    return R.add(y, n.build.constant(bias.reshape(shape))) if bias.any() else y


def _spread(weight: np.ndarray, dilation: tuple[int, ...]) -> np.ndarray:
    """Return the weights with ``dilation - 1`` zeros between neighbours."""
    if all(d == 1 for d in dilation):
        return weight
    shape = (*weight.shape[:2], *reach(weight.shape[2:], dilation))
    if math.prod(shape) > MAX_SPREAD:
        raise Refused(f"dilation {list(dilation)} spreads the weights to {list(shape)}")
    spread = np.zeros(shape, weight.dtype)
    at: tuple[Any, ...] = (..., *[slice(None, None, d) for d in dilation])
    spread[at] = weight
    return spread
