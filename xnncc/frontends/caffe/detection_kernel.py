"""SSD's last layer as two TensorIR kernels: suppression within each class, then the best of all classes.

    boxes: [N, P, L, 4] float32      xmin, ymin, xmax, ymax of P priors, for L = 1 or each of C classes
    conf: [N, P, C] float32          scores
    kept: [N, C, T] int32            priors that stay, the best first; -1 behind them
    out: [1, 1, N * K, 7] float32    image, label, score, xmin, ymin, xmax, ymax; rows that are left hold -1

For each image and class: the priors above the threshold, sorted by falling score (of equal ones the first prior stays
first), at most T of them; each stays unless it overlaps one that stayed before by more than the threshold. Of all
classes together the K best are written, by label, then by score. After W. Liu et al., SSD: Single Shot MultiBox
Detector, 2016, and its Caffe branch (bbox_util.cpp). We differ: that one sorts unstably, and where nothing is found
writes one row with the image's number and -1.

Both are serial: their order of work is part of their meaning, and they take microseconds after the convolutions.
"""

# The parser of TVMScript takes parameters as T.Buffer(shape, dtype), and no "and" over reads that need a guard.
# mypy: disable-error-code="no-untyped-def,valid-type"
# ruff: noqa: SIM102, SIM114

from __future__ import annotations

from dataclasses import dataclass

from tvm import tirx
from tvm.script import tirx as T


@dataclass(frozen=True)
class Detection:
    """Sizes and rules of one DetectionOutput; ``top_k`` and ``keep_top_k`` are bounded by what there is."""

    batch: int
    priors: int
    classes: int
    shared: bool  # one box for all classes
    background: int  # -1: there is none
    confidence: float  # a score must be above it
    nms_threshold: float
    eta: float  # what the threshold is multiplied by after each box that stays, while it is above 0.5
    top_k: int  # T, of each class
    keep_top_k: int  # K, of each image


def suppress_kernel(d: Detection) -> tirx.PrimFunc:
    """Return the kernel (boxes, conf) -> kept."""
    N, P, C, TOP = d.batch, d.priors, d.classes, d.top_k
    L, STEP = (1, 0) if d.shared else (C, 1)
    BACKGROUND, LIMIT, OVERLAP, ETA = d.background, d.confidence, d.nms_threshold, d.eta

    @T.prim_func(s_tir=True)
    def ssd_suppress(
        boxes: T.Buffer((N, P, L, 4), "float32"),
        conf: T.Buffer((N, P, C), "float32"),
        kept: T.Buffer((N, C, TOP), "int32"),
    ):
        with T.sblock("ssd_suppress"):
            T.reads(boxes[0:N, 0:P, 0:L, 0:4], conf[0:N, 0:P, 0:C])
            T.writes(kept[0:N, 0:C, 0:TOP])
            order = T.sblock_alloc_buffer((P,), "int32")  # priors above the threshold, then sorted
            merged = T.sblock_alloc_buffer((P,), "int32")
            n = T.sblock_alloc_buffer(
                (8,), "int32"
            )  # 0 candidates, 1 run, 2 start, 3 left, 4 right, 5 kept, 6 at, 7 stays
            limit = T.sblock_alloc_buffer((1,), "float32")
            for image, label in T.grid(N, C):
                for t in range(TOP):
                    kept[image, label, t] = -1
                n[0] = 0
                if label != BACKGROUND:
                    for p in range(P):
                        if conf[image, p, label] > T.float32(LIMIT):
                            order[n[0]] = p
                            n[0] = n[0] + 1
                n[1] = 1
                while n[1] < n[0]:  # merge sort, runs of doubling length
                    n[2] = 0
                    while n[2] < n[0]:
                        n[3] = n[2]
                        n[4] = T.min(n[2] + n[1], n[0])
                        n[6] = n[4]  # where the left run ends
                        n[7] = T.min(n[2] + 2 * n[1], n[0])
                        for o in range(n[7] - n[2]):
                            if n[3] >= n[6]:
                                merged[n[2] + o] = order[n[4]]
                                n[4] = n[4] + 1
                            elif n[4] >= n[7]:
                                merged[n[2] + o] = order[n[3]]
                                n[3] = n[3] + 1
                            elif conf[image, order[n[3]], label] >= conf[image, order[n[4]], label]:
                                merged[n[2] + o] = order[n[3]]
                                n[3] = n[3] + 1
                            else:
                                merged[n[2] + o] = order[n[4]]
                                n[4] = n[4] + 1
                        n[2] = n[7]
                    for o in range(n[0]):
                        order[o] = merged[o]
                    n[1] = n[1] * 2
                n[5] = 0
                limit[0] = T.float32(OVERLAP)
                for t in range(T.min(n[0], TOP)):
                    n[7] = 1
                    n[6] = 0
                    while (n[6] < n[5]) & (n[7] == 1):
                        if _overlap(boxes, image, order[t], kept[image, label, n[6]], label * STEP) > limit[0]:
                            n[7] = 0
                        n[6] = n[6] + 1
                    if n[7] == 1:
                        kept[image, label, n[5]] = order[t]
                        n[5] = n[5] + 1
                        if limit[0] > T.float32(0.5):
                            limit[0] = limit[0] * T.float32(ETA)

    return ssd_suppress


def _overlap(boxes: tirx.Buffer, image: tirx.Expr, first: tirx.Expr, second: tirx.Expr, group: tirx.Expr) -> tirx.Expr:
    """Return intersection over union of two boxes; a box with a negative side has no area."""
    zero = tirx.const(0, "float32")
    a, b = ([boxes[image, p, group, side] for side in range(4)] for p in (first, second))
    width = tirx.min(a[2], b[2]) - tirx.max(a[0], b[0])
    height = tirx.min(a[3], b[3]) - tirx.max(a[1], b[1])
    inner = tirx.max(width, zero) * tirx.max(height, zero)
    union = _area(a) + _area(b) - inner
    return tirx.Select(inner > zero, inner / union, zero)


def _area(box: list[tirx.Expr]) -> tirx.Expr:
    zero = tirx.const(0, "float32")
    return tirx.max(box[2] - box[0], zero) * tirx.max(box[3] - box[1], zero)


def collect_kernel(d: Detection) -> tirx.PrimFunc:
    """Return the kernel (boxes, conf, kept) -> out. Classes are sorted, so the best of all is the best of the heads."""
    N, P, C, TOP, K = d.batch, d.priors, d.classes, d.top_k, d.keep_top_k
    L, STEP = (1, 0) if d.shared else (C, 1)
    ROWS = N * K

    @T.prim_func(s_tir=True)
    def ssd_collect(
        boxes: T.Buffer((N, P, L, 4), "float32"),
        conf: T.Buffer((N, P, C), "float32"),
        kept: T.Buffer((N, C, TOP), "int32"),
        out: T.Buffer((1, 1, ROWS, 7), "float32"),
    ):
        with T.sblock("ssd_collect"):
            T.reads(boxes[0:N, 0:P, 0:L, 0:4], conf[0:N, 0:P, 0:C], kept[0:N, 0:C, 0:TOP])
            T.writes(out[0, 0, 0:ROWS, 0:7])
            taken = T.sblock_alloc_buffer((C,), "int32")
            n = T.sblock_alloc_buffer((2,), "int32")  # 0 row, 1 the class whose head is best
            best = T.sblock_alloc_buffer((1,), "float32")
            for row, column in T.grid(ROWS, 7):
                out[0, 0, row, column] = T.float32(-1)
            n[0] = 0
            for image in range(N):
                for label in range(C):
                    taken[label] = 0
                for _ in range(K):
                    n[1] = -1
                    for label in range(C):
                        if taken[label] < TOP:
                            if kept[image, label, taken[label]] >= 0:
                                if (n[1] < 0) | (conf[image, kept[image, label, taken[label]], label] > best[0]):
                                    n[1] = label
                                    best[0] = conf[image, kept[image, label, taken[label]], label]
                    if n[1] >= 0:
                        taken[n[1]] = taken[n[1]] + 1
                for label in range(C):
                    for t in range(taken[label]):
                        out[0, 0, n[0], 0] = T.Cast("float32", image)
                        out[0, 0, n[0], 1] = T.Cast("float32", label)
                        out[0, 0, n[0], 2] = conf[image, kept[image, label, t], label]
                        for side in range(4):
                            out[0, 0, n[0], 3 + side] = boxes[image, kept[image, label, t], label * STEP, side]
                        n[0] = n[0] + 1

    return ssd_collect
