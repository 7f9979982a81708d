"""DeformConv: a convolution whose taps are moved by computed offsets.

Two steps: our own kernel reads every moved tap (linear interpolation, zeros outside) into columns, and a matrix product
sums them, so that the multiplications run in the kernels of every other convolution.
J. Dai et al., Deformable Convolutional Networks, 2017; with the mask of X. Zhu et al., Deformable ConvNets v2, 2019.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

from tvm import relax, te, tirx
from tvm.relax import Expr

from ..refused import Refused
from .node import Node
from .ops_sample import tap_reader, weighted_taps
from .registry import converter

R = relax.op


@dataclass(frozen=True)
class _Taps:
    """Where taps lie before they are moved, in pixels; KH, KW, strides and the rest in the order of the axes."""

    kernel: tuple[int, int]
    out: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    begin: tuple[int, int]  # pads before the image
    groups: int  # of channels that share their offsets


@converter("DeformConv")
def deform_conv(n: Node) -> Expr:
    """x: [N, C, H, W], w: [O, C/G, KH, KW], offset: [N, D KH KW 2, OH, OW] (y, x), bias [O], mask [N, D KH KW, ..]."""
    if n.rank() != 4:
        raise Refused(f"{n.rank() - 2} spatial dimensions are not supported", "Supported: 2.")
    taps = _taps_of(n)
    groups = int(n.attr("group", 1))
    (batch, channels), outputs, pixels = n.shape()[:2], n.shape(1)[0], prod(taps.out)
    if channels != n.shape(1)[1] * groups or outputs % groups or channels % taps.groups:
        raise Refused(f"{channels} channels do not fit weights {list(n.shape(1))}, {groups} groups")
    has_mask = n.has(4)
    operands = [n.expr(0), n.expr(2), *([n.expr(4)] if has_mask else [])]
    columns = n.emit(n.build.call_te(_columns(taps, has_mask), *operands, name="deform_columns"))
    depth = channels // groups * prod(taps.kernel)
    columns = n.emit(n.reshaped(columns, [batch, groups, depth, pixels]))
    weights = n.emit(n.reshaped(n.expr(1), [1, groups, outputs // groups, depth]))
    y = n.emit(n.reshaped(R.matmul(weights, columns), [batch, outputs, *taps.out]))
    return R.add(y, n.reshaped(n.expr(3), [1, outputs, 1, 1])) if n.has(3) else y


def _taps_of(n: Node) -> _Taps:
    """Return the attributes of a node, checked against the shapes of its inputs."""
    kernel = tuple(n.attr("kernel_shape") or n.shape(1)[2:])
    strides, dilations = tuple(n.attr("strides") or (1, 1)), tuple(n.attr("dilations") or (1, 1))
    pads, moved = tuple(n.attr("pads") or (0, 0, 0, 0)), int(n.attr("offset_group", 1))
    spans = [(kernel[i] - 1) * dilations[i] + 1 for i in range(2)]
    out = tuple((n.shape()[2 + i] + pads[i] + pads[2 + i] - spans[i]) // strides[i] + 1 for i in range(2))
    expected = (n.shape()[0], moved * prod(kernel) * 2, *out)
    if n.shape(2) != expected:
        raise Refused(f"offsets {list(n.shape(2))} do not fit, {list(expected)} are expected")
    return _Taps(kernel, out, strides, dilations, pads[:2], moved)  # type: ignore[arg-type]


def _columns(t: _Taps, has_mask: bool) -> Callable[..., te.Tensor]:
    """Return the kernel (x, offset[, mask]) -> [N, C, KH, KW, OH, OW] of the values that the moved taps read."""

    def compute(x: te.Tensor, offset: te.Tensor, *masks: te.Tensor) -> te.Tensor:
        batch, channels, *sizes = (int(dim) for dim in x.shape)
        shared = channels // t.groups

        def element(b: Any, c: Any, i: Any, j: Any, oy: Any, ox: Any) -> tirx.Expr:
            tap = (c // shared * t.kernel[0] + i) * t.kernel[1] + j
            axes = []
            for axis, (at, cell) in enumerate(((i, oy), (j, ox))):
                start = cell * t.strides[axis] - t.begin[axis] + at * t.dilations[axis]
                place = tirx.Cast("float32", start) + offset[b, tap * 2 + axis, oy, ox]
                low = tirx.floor(place)
                axes.append([(low, low + 1.0 - place), (low + 1.0, place - low)])
            value = weighted_taps(axes, tap_reader(x, b, c, tuple(sizes), "zeros", True))
            return value * masks[0][b, tap, oy, ox] if has_mask else value

        return te.compute((batch, channels, *t.kernel, *t.out), element, "deform_columns")

    return compute
