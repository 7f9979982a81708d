"""NonMaxSuppression with a number of rows that the user fixes: the standard's is known only at run time."""

from __future__ import annotations

import math

import numpy as np
from tvm import relax
from tvm.relax import Expr

from ..refused import Refused
from .node import Node
from .registry import converter
from .selection_kernel import selection_kernel

R = relax.op
ROWS = "xnncc_rows"  # the attribute that pad_selections.py sets


@converter("NonMaxSuppression")
def non_max_suppression(n: Node) -> Expr:
    """boxes: [N, B, 4], scores: [N, C, B] -> [rows, 3] of image, class and box; -1 in the rows that are left."""
    images, classes, count = n.shape(1)
    rows = int(n.attr(ROWS, 0))
    if not rows:
        raise Refused(
            "its number of boxes is known only at run time",
            f"Give it a fixed number of rows, -1 behind the boxes: --nms-rows {_most_rows(n)}.",
        )
    if n.shape() != (images, count, 4):
        raise Refused(f"boxes {list(n.shape())} do not fit scores {list(n.shape(1))}")
    boxes = _corners(n, is_centre=bool(n.attr("center_point_box", 0)))
    limits = R.concat([_scalar(n, 3, 0.0, "float32"), _scalar(n, 4, -math.inf, "float32")], 0)
    operands = [boxes, n.expr(1), n.emit(limits), _scalar(n, 2, 0, "int64")]
    kernel = selection_kernel(images, classes, count, rows)
    return n.build.call_kernel(kernel, operands, [rows, 3], "int64", "select_boxes")


def _most_rows(n: Node) -> int:
    """Return how many rows there can be: all boxes, or as many of each image and class as the node says."""
    images, classes, count = n.shape(1)
    each = min(n.ints(2, "")[0], count) if n.is_const(2) else count
    return max(images * classes * each, 1)


def _corners(n: Node, is_centre: bool) -> Expr:
    """Return boxes as y1, x1, y2, x2 in rising order, of two opposite corners or of centre x, y, width, height."""
    columns = [n.emit(R.strided_slice(n.expr(0), [2], [i], [i + 1], [1])) for i in range(4)]
    if is_centre:
        x, y, half_width, half_height = *columns[:2], *(R.multiply(c, n.scalar(0.5)) for c in columns[2:])
        sides = [R.subtract(y, half_height), R.subtract(x, half_width), R.add(y, half_height), R.add(x, half_width)]
    else:
        sides = [function(columns[i], columns[i + 2]) for function in (R.minimum, R.maximum) for i in range(2)]
    return n.emit(R.concat([n.emit(side) for side in sides], 2))


def _scalar(n: Node, index: int, default: float, dtype: str) -> Expr:
    """Return input ``index`` as one element of ``dtype``."""
    if not n.has(index):
        return n.build.constant(np.full(1, default, dtype))
    value = n.emit(n.reshaped(n.expr(index), [1]))
    return value if n.dtype(index) == dtype else n.emit(R.astype(value, dtype))
