"""Interp and Upsample of the segmentation forks. x: [N, C, H, W]."""

from __future__ import annotations

import numpy as np
from tvm import relax
from tvm.relax import Expr

from ..network import shape_of
from ..refused import Refused
from .node import Node
from .params import Params
from .refused import Broken
from .registry import converter

R = relax.op
MAX_SIDE = 2**15


@converter("Interp")
def interp(n: Node) -> Expr:
    """Bilinear, corners onto corners. Negative pads crop the input first; a second input gives the size."""
    n.need(1, 2)
    _need_picture(n)
    p = n.params("interp_param")
    begin, end = p.whole("pad_beg", 0, -MAX_SIDE), p.whole("pad_end", 0, -MAX_SIDE)
    if begin > 0 or end > 0:
        raise Broken(f"{p.name} pads {begin} and {end} must not be positive")
    sizes = [side + begin + end for side in n.shape()[2:]]
    if min(sizes) < 1:
        raise Broken(f"{p.name} pads {begin} and {end} leave nothing of {list(n.shape())}")
    x = n.emit(n.expr())
    if begin or end:
        stops = [side + end for side in n.shape()[2:]]
        x = n.emit(R.strided_slice(x, axes=[2, 3], begin=[-begin, -begin], end=stops))
    height, width = n.shape(1)[2:] if len(n) == 2 and n.rank(1) == 4 else _size(p, sizes)
    if 1 in (height, width) and (height, width) != shape_of(x)[2:]:  # TVM divides by the output's size minus one
        return _by_matrices(n, x, (height, width))
    return _resized(n, x, (height, width), "linear", "align_corners")


def _by_matrices(n: Node, x: Expr, size: tuple[int, int]) -> Expr:
    """Return rows @ x @ columns: each matrix holds the shares of the elements that an output lies between."""
    rows, columns = (_shares(have, want) for have, want in zip(shape_of(x)[2:], size, strict=True))
    y = n.emit(R.matmul(n.build.constant(rows), x))
    return R.matmul(y, n.build.constant(np.ascontiguousarray(columns.T)))


def _shares(have: int, want: int) -> np.ndarray:
    """Return [want, have] float32; corners lie on corners, a single output on the first element."""
    if not 1 <= want <= MAX_SIDE:
        raise Broken(f"{have} elements would be resized to {want}")
    at = np.arange(want) * ((have - 1) / (want - 1) if want > 1 else 0.0)
    low = np.minimum(at.astype(int), have - 1)
    shares = np.zeros((want, have))
    np.add.at(shares, (np.arange(want), low), 1 - (at - low))
    np.add.at(shares, (np.arange(want), np.minimum(low + 1, have - 1)), at - low)
    return shares.astype("float32")


def _size(p: Params, sizes: list[int]) -> tuple[int, int]:
    shrink, zoom = p.whole("shrink_factor", 1, 1), p.whole("zoom_factor", 1, 1)
    if p.has("height") or p.has("width"):
        if p.has("shrink_factor") or p.has("zoom_factor"):
            raise Broken(f"{p.name} gives both a size and factors")
        sizes = [p.whole("height", 0), p.whole("width", 0)]
    else:
        sizes = [(size - 1) // shrink + 1 for size in sizes]
        sizes = [size + (size - 1) * (zoom - 1) for size in sizes]
    return sizes[0], sizes[1]


@converter("Upsample")
def upsample(n: Node) -> Expr:
    """Every element ``scale`` times in both directions."""
    if len(n) == 2:
        why = "unpooling to the places of a mask is not supported"
        raise Refused(why, "Train with Deconvolution, or with Upsample of one input.")
    n.need(1)
    _need_picture(n)
    p = n.params("upsample_param")
    scale = p.whole("scale", 1, 1)
    factors = p.whole("scale_h", scale, 1), p.whole("scale_w", scale, 1)
    height, width = n.shape()[2:]
    return _resized(n, n.expr(), (height * factors[0], width * factors[1]), "nearest_neighbor", "asymmetric")


def _need_picture(n: Node) -> None:
    if n.rank() != 4:
        raise Broken(f"input {list(n.shape())} has no height and width")


def _resized(n: Node, x: Expr, size: tuple[int, int], method: str, coordinates: str) -> Expr:
    if not all(1 <= side <= MAX_SIDE for side in size):
        raise Broken(f"{list(n.shape())} would be resized to {list(size)}")
    if shape_of(n.emit(x))[2:] == size:
        return x
    return R.image.resize2d(
        x, size, layout="NCHW", method=method, coordinate_transformation_mode=coordinates, rounding_method="floor"
    )
