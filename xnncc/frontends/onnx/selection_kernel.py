"""NonMaxSuppression as one TensorIR kernel with a fixed number of rows.

    boxes: [N, B, 4] float32       y1, x1, y2, x2 with y1 <= y2 and x1 <= x2
    scores: [N, C, B] float32
    limits: [2] float32            overlap above which a box goes, score above which a box counts (-inf: all do)
    most: [1] int64                boxes that stay of each image and class
    out: [ROWS, 3] int64           image, class, box, the best first within each class; -1 in the rows behind them

For each image and class: the best box left stays and takes away those that overlap it by more than the limit, until
``most`` stay or none is left. That is one pass over the boxes for each that stays, and needs no sorting; of equal
scores the first box is the better one, as in onnxruntime. It is serial: its order of work is part of its meaning.
"""

# The parser of TVMScript takes parameters as T.Buffer(shape, dtype), and no "and" over reads that need a guard.
# mypy: disable-error-code="no-untyped-def,valid-type"
# ruff: noqa: SIM102, SIM114

from __future__ import annotations

from tvm import tirx
from tvm.script import tirx as T


def selection_kernel(images: int, classes: int, count: int, rows: int) -> tirx.PrimFunc:
    """Return the kernel (boxes, scores, limits, most) -> out for N images, C classes, B boxes and ROWS rows."""
    N, C, B, ROWS = images, classes, count, rows

    @T.prim_func(s_tir=True)
    def select_boxes(
        boxes: T.Buffer((N, B, 4), "float32"),
        scores: T.Buffer((N, C, B), "float32"),
        limits: T.Buffer((2,), "float32"),
        most: T.Buffer((1,), "int64"),
        out: T.Buffer((ROWS, 3), "int64"),
    ):
        with T.sblock("select_boxes"):
            T.reads(boxes[0:N, 0:B, 0:4], scores[0:N, 0:C, 0:B], limits[0:2], most[0])
            T.writes(out[0:ROWS, 0:3])
            is_left = T.sblock_alloc_buffer((B,), "int32")
            n = T.sblock_alloc_buffer((3,), "int32")  # 0 row, 1 the best box, 2 boxes that may still stay
            for row, column in T.grid(ROWS, 3):
                out[row, column] = T.int64(-1)
            n[0] = 0
            for image, label in T.grid(N, C):
                for b in range(B):
                    is_left[b] = T.Cast("int32", scores[image, label, b] > limits[1])
                n[2] = T.Cast("int32", T.min(most[0], T.int64(B)))
                while n[2] > 0:
                    n[1] = -1
                    for b in range(B):
                        if is_left[b] == 1:
                            if n[1] < 0:
                                n[1] = b
                            elif scores[image, label, b] > scores[image, label, n[1]]:
                                n[1] = b
                    n[2] = n[2] - 1
                    if n[1] < 0:
                        n[2] = 0
                    else:
                        if n[0] < ROWS:
                            out[n[0], 0] = T.Cast("int64", image)
                            out[n[0], 1] = T.Cast("int64", label)
                            out[n[0], 2] = T.Cast("int64", n[1])
                            n[0] = n[0] + 1
                        is_left[n[1]] = 0
                        for b in range(B):
                            if is_left[b] == 1:
                                if _overlap(boxes, image, n[1], b) > limits[0]:
                                    is_left[b] = 0

    return select_boxes


def _overlap(boxes: tirx.Buffer, image: tirx.Expr, first: tirx.Expr, second: tirx.Expr) -> tirx.Expr:
    """Return intersection over union of two boxes, 0 where they do not meet."""
    zero = tirx.const(0, "float32")
    a, b = ([boxes[image, box, side] for side in range(4)] for box in (first, second))
    height, width = tirx.min(a[2], b[2]) - tirx.max(a[0], b[0]), tirx.min(a[3], b[3]) - tirx.max(a[1], b[1])
    inner = tirx.max(height, zero) * tirx.max(width, zero)
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    return tirx.Select(inner > zero, inner / (areas[0] + areas[1] - inner), zero)
