"""Pooling and bilinear resizing of images."""

from __future__ import annotations

import numpy as np
from tvm import relax, te, tirx
from tvm.relax import Expr

from ..refused import Refused
from .flow import Flow
from .op import Op
from .ops_conv import pads, windows
from .registry import converter
from .windows import linear_taps

R = relax.op
MAX_OUT = 2**14  # pixels along an axis


@converter("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")
def pool(n: Op) -> Flow:
    """Means are over the pixels that exist."""
    y, rows_columns = None, pool_windows(n)
    kernel, strides, padding = rows_columns
    if n.kind == "MAX_POOL_2D":
        y = R.nn.max_pool2d(n.planar(), kernel, strides, padding)
    else:
        x = n.planar() if n.kind == "AVERAGE_POOL_2D" else n.emit(R.multiply(n.planar(), n.planar()))
        y = R.nn.avg_pool2d(x, kernel, strides, padding, count_include_pad=False)
        y = R.sqrt(y) if n.kind == "L2_POOL_2D" else y
    return n.activated(y, is_planar=True)


def pool_windows(n: Op) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int, int, int]]:
    """Return kernel, strides and padding of a pool."""
    if n.rank() != 4:
        raise Refused(f"input {list(n.shape())} is no image [N, H, W, C]")
    rows, columns = windows(n, (n.option("filter_h"), n.option("filter_w")))
    return (rows.kernel, columns.kernel), (rows.stride, columns.stride), pads(rows, columns)


@converter("RESIZE_BILINEAR")
def resize_bilinear(n: Op) -> Flow:
    h, w, flags = resize_options(n)
    _, ih, iw, _ = n.shape()
    if (h, w) == (ih, iw):
        return Flow(n.planar(), is_planar=True)
    taps = (linear_taps(ih, h, *flags), linear_taps(iw, w, *flags))
    return Flow(n.emit(tabled_resize(n, n.planar(), taps, "float32")), is_planar=True)


def resize_options(n: Op) -> tuple[int, int, tuple[bool, bool]]:
    """Return the new height and width, and the flags align_corners and half_pixel_centers."""
    size = n.ints(1, "the size")
    if n.rank() != 4 or len(size) != 2 or not all(1 <= s <= MAX_OUT for s in size):
        raise Refused(f"{list(n.shape())} does not resize to {size}")
    return size[0], size[1], (bool(n.option("align_corners")), bool(n.option("half_pixel_centers")))


Taps = tuple[np.ndarray, np.ndarray]  # index [out, 2] int32, weight [out, 2]


def tabled_resize(n: Op, x: Expr, taps: tuple[Taps, Taps], dtype: str) -> Expr:
    """Return planar ``x`` between two rows and two columns, summed in ``dtype``; tables are constants."""
    tables = [n.build.constant(table) for pair in taps for table in pair]
    (rows, _), (columns, _) = taps
    height, width = len(rows), len(columns)

    def compute(source: te.Tensor, ri: te.Tensor, rw: te.Tensor, ci: te.Tensor, cw: te.Tensor) -> te.Tensor:
        def element(b: tirx.Var, c: tirx.Var, i: tirx.Var, j: tirx.Var) -> tirx.Expr:
            def row(k: int) -> tirx.Expr:
                left, right = (source[b, c, ri[i, k], ci[j, m]].astype(dtype) * cw[j, m] for m in (0, 1))
                return (left + right) * rw[i, k]

            return row(0) + row(1)

        return te.compute((source.shape[0], source.shape[1], height, width), element, name="resize_bilinear")

    return n.build.call_te(compute, x, *tables, name="resize_bilinear")
