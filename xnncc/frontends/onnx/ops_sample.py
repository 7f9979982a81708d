"""Reading images at computed places: GridSample and RoiAlign, as kernels of our own."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import reduce
from typing import Any

from tvm import relax, te, tirx
from tvm.relax import Expr

from .node import Node, Refused
from .registry import converter

R = relax.op
_TapsOf = Callable[[Any, int], "list[tuple[Any, Any]]"]  # place, size -> whole positions and weights


@converter("GridSample")
def grid_sample(n: Node) -> Expr:
    """x: [N, C, spatial...] read at grid [N, out..., rank], whose coordinates run from -1 to 1, x first."""
    modes = {"linear": "linear", "bilinear": "linear", "nearest": "nearest", "cubic": "cubic", "bicubic": "cubic"}
    mode = modes[n.choice("mode", "linear", tuple(modes))]
    padding = n.choice("padding_mode", "zeros", ("zeros", "border", "reflection"))
    align, rank = bool(n.attr("align_corners", 0)), n.rank() - 2
    if rank not in (2, 3) or (mode == "cubic" and rank == 3):
        raise Refused(f"mode '{mode}' over {rank} spatial dimensions is not supported", "Supported: 2, or linear 3.")
    sizes = n.shape()[2:]
    out = [*n.shape()[:2], *n.shape(1)[1:-1]]

    def compute(x: te.Tensor, grid: te.Tensor) -> te.Tensor:
        def element(batch: tirx.Var, channel: tirx.Var, *at: tirx.Var) -> tirx.Expr:
            axes = []
            for i, size in enumerate(sizes):
                place = grid(batch, *at, rank - 1 - i)
                place = _pixel(place, size, align)
                if padding != "zeros" and mode != "cubic":
                    place = _kept_inside(place, size, padding, align)
                axes.append(_taps(place, mode))
            read = tap_reader(x, batch, channel, sizes, padding, align)
            return weighted_taps(axes, read)

        return te.compute(out, element, "grid_sample")

    return n.build.call_te(compute, n.expr(0), n.expr(1), name="grid_sample")


def _f(value: float) -> tirx.Expr:
    return tirx.const(value, "float32")


def _pixel(place: tirx.Expr, size: int, align: bool) -> tirx.Expr:
    """Return a coordinate of [-1, 1] in pixels."""
    if align:
        return (place + _f(1)) * _f((size - 1) / 2)
    return ((place + _f(1)) * _f(size) - _f(1)) * _f(0.5)


def _kept_inside(place: tirx.Expr, size: int, padding: str, align: bool) -> tirx.Expr:
    """Return a place clamped to the image, or mirrored at its border."""
    if padding == "reflection":
        low, high = (0.0, float(size - 1)) if align else (-0.5, size - 0.5)
        place = _mirrored(place, low, high)
    return tirx.max(tirx.min(place, _f(size - 1)), _f(0))


def _mirrored(place: tirx.Expr, low: float, high: float) -> tirx.Expr:
    span = high - low
    if span <= 0:
        return _f(low)
    away = tirx.abs(place - _f(low))
    turns = tirx.floor(away / _f(span))
    rest = away - turns * _f(span)
    is_even = turns - _f(2) * tirx.floor(turns * _f(0.5)) < _f(0.5)
    return tirx.Select(is_even, _f(low) + rest, _f(high) - rest)


def _taps(place: tirx.Expr, mode: str) -> list[tuple[tirx.Expr, tirx.Expr]]:
    """Return the whole positions (as floats) that a place reads, and their weights."""
    if mode == "nearest":
        return [(tirx.nearbyint(place), _f(1))]
    first = tirx.floor(place)
    t = place - first
    if mode == "linear":
        return [(first, _f(1) - t), (first + _f(1), t)]
    a = -0.75

    def near(d: tirx.Expr) -> tirx.Expr:
        return ((_f(a + 2) * d - _f(a + 3)) * d) * d + _f(1)

    def far(d: tirx.Expr) -> tirx.Expr:
        return ((_f(a) * d - _f(5 * a)) * d + _f(8 * a)) * d - _f(4 * a)

    weights = [far(t + _f(1)), near(t), near(_f(1) - t), far(_f(2) - t)]
    return [(first + _f(i - 1), weight) for i, weight in enumerate(weights)]


def tap_reader(
    x: te.Tensor, batch: tirx.Expr, channel: tirx.Expr, sizes: tuple[int, ...], padding: str, align: bool
) -> Callable[[tuple[tirx.Expr, ...]], tirx.Expr]:
    """Return the function that gives the pixel at whole positions, whatever lies outside of the image."""

    def read(places: tuple[tirx.Expr, ...]) -> tirx.Expr:
        inside: list[tirx.Expr] = []
        index = []
        for place, size in zip(places, sizes, strict=True):
            if padding == "reflection":
                place = _kept_inside(place, size, padding, align)
            if padding == "zeros":
                inside += [place >= _f(0), place <= _f(size - 1)]
            index.append(tirx.Cast("int32", tirx.max(tirx.min(place, _f(size - 1)), _f(0))))
        value = x(batch, channel, *index)
        return tirx.Select(tirx.all(*inside), value, _f(0)) if inside else value

    return read


def weighted_taps(axes: list[list[tuple[Any, Any]]], read: Callable[[tuple[Any, ...]], Any]) -> tirx.Expr:
    terms = []
    for taps in itertools.product(*axes):
        weight = reduce(lambda a, b: a * b, (w for _, w in taps))
        terms.append(read(tuple(place for place, _ in taps)) * weight)
    return reduce(lambda a, b: a + b, terms)


@converter("RoiAlign")
def roi_align(n: Node) -> Expr:
    """x: [N, C, H, W], rois: [R, 4] (x1, y1, x2, y2), batch of each: [R] -> [R, C, OH, OW]."""
    mode = n.choice("mode", "avg", ("avg", "max"))
    default = "half_pixel" if n.opset >= 16 else "output_half_pixel"
    half = n.choice("coordinate_transformation_mode", default, ("half_pixel", "output_half_pixel")) == "half_pixel"
    out = (int(n.attr("output_height", 1)), int(n.attr("output_width", 1)))
    ratio, scale = int(n.attr("sampling_ratio", 0)), float(n.attr("spatial_scale", 1.0))
    if ratio < 1:
        raise Refused("sampling_ratio=0 depends on the boxes, which are computed at run time", "Export with 2.")
    _, channels, height, width = n.shape()
    shift = 0.5 if half else 0.0

    def compute(x: te.Tensor, rois: te.Tensor, batch: te.Tensor) -> te.Tensor:
        i, j = te.reduce_axis((0, ratio), "i"), te.reduce_axis((0, ratio), "j")

        def place(r: tirx.Var, first: int, cell: tirx.Expr, part: tirx.Expr, count: int) -> tirx.Expr:
            start = rois[r, first] * _f(scale) - _f(shift)
            extent = rois[r, first + 2] * _f(scale) - _f(shift) - start
            extent = extent if half else tirx.max(extent, _f(1))
            step = extent * _f(1 / count)
            return start + (tirx.Cast("float32", cell) + (tirx.Cast("float32", part) + _f(0.5)) * _f(1 / ratio)) * step

        def sample(r: tirx.Var, c: tirx.Var, oy: tirx.Var, ox: tirx.Var) -> tirx.Expr:
            y, z = place(r, 1, oy, i, out[0]), place(r, 0, ox, j, out[1])
            inside = tirx.all(y >= _f(-1), y <= _f(height), z >= _f(-1), z <= _f(width))
            rows, columns = (_clamped_taps(p, size) for p, size in ((y, height), (z, width)))
            which = tirx.Cast("int32", batch[r])
            parts = [x[which, c, row, column] * (a * b) for (row, a), (column, b) in itertools.product(rows, columns)]
            joined = reduce(tirx.max, parts) if mode == "max" else reduce(lambda a, b: a + b, parts)
            return tirx.Select(inside, joined, _f(0))

        shape = (int(rois.shape[0]), channels, *out)
        if mode == "max":
            return te.compute(shape, lambda *at: te.max(sample(*at), axis=[i, j]), "roi_align")
        total = te.compute(shape, lambda *at: te.sum(sample(*at), axis=[i, j]), "roi_sum")
        return te.compute(shape, lambda *at: total(*at) * _f(1 / ratio**2), "roi_align")

    return n.build.call_te(compute, n.expr(0), n.expr(1), n.expr(2), name="roi_align")


def _clamped_taps(place: tirx.Expr, size: int) -> list[tuple[tirx.Expr, tirx.Expr]]:
    """Return the two pixels around a place within the image, and their weights."""
    place = tirx.max(tirx.min(place, _f(size - 1)), _f(0))
    low = tirx.Cast("int32", tirx.floor(place))
    high = tirx.min(low + 1, tirx.const(size - 1, "int32"))
    t = place - tirx.Cast("float32", low)
    return [(low, _f(1) - t), (high, t)]


@converter("MaxUnpool")
def max_unpool(n: Node) -> Expr:
    """Every value at the flat position that its index names, zeros elsewhere."""
    kernel, rank = n.attr("kernel_shape"), n.rank() - 2
    strides, pads = list(n.attr("strides") or [1] * rank), list(n.attr("pads") or [0] * (2 * rank))
    natural = [(size - 1) * strides[i] + kernel[i] - pads[i] - pads[i + rank] for i, size in enumerate(n.shape()[2:])]
    shape = [*n.shape()[:2], *natural]
    given = n.ints(2, "output_shape") if n.has(2) else shape
    count, total = _count(n.shape()), _count(shape)
    zeros = R.zeros((total,), n.dtype())
    flat = [n.emit(n.reshaped(n.expr(i), [count])) for i in (0, 1)]
    y = n.emit(n.reshaped(R.scatter_elements(n.emit(zeros), flat[1], flat[0], 0, "update"), shape))
    if list(given) == shape:
        return y
    # The indices count in the natural size; a larger output_shape only adds zeros at the ends.
    widths = [w for have, want in zip(shape, given, strict=True) for w in (0, want - have)]
    if min(widths) < 0:
        raise Refused(f"output_shape {given} is smaller than {shape}")
    return R.nn.pad(y, widths, "constant", 0.0)


def _count(shape: Any) -> int:
    return reduce(lambda a, b: a * b, shape, 1)


@converter("Det")
def det(n: Node) -> Expr:
    """Determinants of [.., M, M] by expansion, M up to 3."""
    shape = n.shape()
    size = shape[-1]
    if size not in (1, 2, 3) or shape[-2] != size:
        raise Refused(f"matrices {list(shape[-2:])} are not supported", "Supported: 1x1, 2x2 and 3x3.")

    def compute(x: te.Tensor) -> te.Tensor:
        def element(*at: tirx.Var) -> tirx.Expr:
            m = [[x(*at, i, j) for j in range(size)] for i in range(size)]
            return _determinant(m)

        return te.compute(shape[:-2], element, "det")

    return n.build.call_te(compute, n.expr(0), name="det")


def _determinant(m: list[list[Any]]) -> Any:
    if len(m) == 1:
        return m[0][0]
    terms = []
    for j, value in enumerate(m[0]):
        minor = [row[:j] + row[j + 1 :] for row in m[1:]]
        terms.append(value * _determinant(minor) if j % 2 == 0 else -(value * _determinant(minor)))
    return reduce(lambda a, b: a + b, terms)
