"""Resize and Upsample in every mode of the standard, as table-driven kernels of our own.

An upsampling that repeats every element a whole number of times stays ``relax.image.resize2d`` (nearest, asymmetric,
floor), where schedules know it and TVM's lowering is exact. All else reads tables made by ``resize_tables.py``.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
from tvm import relax, te, tirx
from tvm.relax import Expr

from ..network import shape_of
from .node import Node, Refused
from .registry import converter
from .resize_tables import (
    BEFORE_OPSET_11,
    COORDINATES,
    ROUNDINGS,
    AxisMap,
    Taps,
    antialias_taps,
    cubic_taps,
    linear_taps,
    nearest_taps,
)

MAX_OUT = 2**20  # elements of a resized dimension: its tables are made here
MAX_UNROLLED_TAPS = 16  # of one output element in one kernel; wider filters go axis by axis


@converter("Resize")
def resize(n: Node) -> Expr:
    if n.opset < 11:
        scales = [float(s) for s in n.const(1, "scales").reshape(-1)]
        mode = n.choice("mode", "nearest", ("nearest", "linear"))
        return _resized(n, _by_scales(n, scales, "asymmetric"), mode, BEFORE_OPSET_11)
    mode = n.choice("mode", "nearest", ("nearest", "linear", "cubic"))
    coordinates = n.choice("coordinate_transformation_mode", "half_pixel", COORDINATES)
    rounding = n.choice("nearest_mode", "round_prefer_floor", ROUNDINGS)
    policy = n.choice("keep_aspect_ratio_policy", "stretch", ("stretch", "not_larger", "not_smaller"))
    axes = [n.axis(a) for a in n.attr("axes") or range(n.rank())]
    return _resized(n, _axis_maps(n, axes, coordinates, policy), mode, rounding)


@converter("Upsample")
def upsample(n: Node) -> Expr:
    """Resize's ancestor: asymmetric coordinates."""
    scales = n.attr("scales") if n.has_attr("scales") else [float(s) for s in n.const(1, "scales").reshape(-1)]
    mode = n.choice("mode", "nearest", ("nearest", "linear"))
    return _resized(n, _by_scales(n, scales, "asymmetric"), mode, BEFORE_OPSET_11)


def _by_scales(n: Node, scales: list[float], coordinates: str) -> list[AxisMap]:
    if len(scales) != n.rank() or min(scales, default=1) <= 0:
        raise Refused(f"scales {scales} do not fit input {list(n.shape())}")
    maps = [AxisMap(size, _scaled(size, s), s, coordinates) for size, s in zip(n.shape(), scales, strict=True)]
    if any(not 1 <= a.out <= MAX_OUT for a in maps):
        raise Refused(f"{list(n.shape())} would become {[a.out for a in maps]}")
    return maps


def _scaled(size: int, scale: float) -> int:
    return int(np.floor(np.float32(size) * np.float32(scale)))


def _axis_maps(n: Node, axes: list[int], coordinates: str, policy: str) -> list[AxisMap]:
    """Return a map for each axis of the input, from scales or sizes (an empty tensor means: not given)."""
    scales = n.const(2, "scales").reshape(-1) if n.has(2) else np.zeros(0)
    sizes = n.ints(3, "sizes") if n.has(3) else []
    if bool(sizes) == bool(scales.size):
        raise Refused("it needs exactly one of scales and sizes")
    if len(sizes or scales) != len(axes):
        raise Refused(f"scales or sizes do not fit {len(axes)} axes")
    roi = _roi(n, len(axes)) if coordinates == "tf_crop_and_resize" else np.tile([[0.0], [1.0]], len(axes))
    shape = n.shape()
    ratios = [out / shape[axis] for out, axis in zip(sizes, axes, strict=False)]
    kept = {"not_larger": min, "not_smaller": max}.get(policy)
    if sizes and kept:
        ratio = kept(ratios)
        ratios = [ratio] * len(axes)
        sizes = [int(np.floor(ratio * shape[axis] + 0.5)) for axis in axes]
    maps = [AxisMap(size, size, 1.0, "asymmetric") for size in shape]
    for i, axis in enumerate(axes):
        scale = float(ratios[i]) if sizes else float(scales[i])
        out = sizes[i] if sizes else _scaled(shape[axis], scale)
        if coordinates == "align_corners" and not sizes and abs(out - scale * shape[axis]) > 1e-3:
            why = f"align_corners with {shape[axis]} elements times {scale:g}, which is no whole number"
            raise Refused(f"{why}: the standard and onnxruntime disagree there", "Export with sizes, not scales.")
        if not 1 <= out <= MAX_OUT or scale <= 0:
            raise Refused(f"dimension {axis} of {list(shape)} would become {out}")
        maps[axis] = AxisMap(shape[axis], out, scale, coordinates, (float(roi[0][i]), float(roi[1][i])))
    return maps


def _roi(n: Node, count: int) -> np.ndarray:
    roi = n.const(1, "roi").reshape(-1)
    if roi.size != 2 * count:
        raise Refused(f"roi has {roi.size} values, tf_crop_and_resize needs {2 * count}")
    return roi.reshape(2, count)


def _resized(n: Node, maps: list[AxisMap], mode: str, rounding: str) -> Expr:
    coefficient, exclude = n.attr("cubic_coeff_a", -0.75), bool(n.attr("exclude_outside", 0))
    fill, antialias = float(n.attr("extrapolation_value", 0.0)), bool(n.attr("antialias", 0))
    if not n.dtype().startswith("float") and mode != "nearest":
        raise Refused(f"mode '{mode}' on {n.dtype()} is not supported", "Cast to float32 first.")
    if exclude and mode == "linear" and not antialias:
        raise Refused("exclude_outside=1 with mode 'linear' is not supported", "Use mode 'cubic'.")
    taps: dict[int, Taps] = {}
    cropped = any(a.coordinates == "tf_crop_and_resize" for a in maps)
    if not cropped and all(a.out == a.size for a in maps):
        return n.expr(0)  # by the standard a scale of 1.1 would still move elements; onnxruntime copies
    for axis, a in enumerate(maps):
        if a.scale == 1 and a.out == a.size and a.coordinates != "tf_crop_and_resize":
            continue
        if mode == "nearest":
            taps[axis] = nearest_taps(a, rounding)
        elif antialias:
            taps[axis] = antialias_taps(a, mode, coefficient, exclude)
        else:
            taps[axis] = linear_taps(a) if mode == "linear" else cubic_taps(a, coefficient, exclude)
    return _tabled(n, taps, mode, fill)


def _tabled(n: Node, taps: dict[int, Taps], mode: str, fill: float) -> Expr:
    taps = {axis: t for axis, t in taps.items() if not _is_identity(t, n.shape()[axis])}
    if not taps:
        return n.expr(0)
    if mode == "nearest" and n.rank() == 4 and _repeats_whole_elements(n, taps):
        size = tuple(len(taps[axis].index) if axis in taps else n.shape()[axis] for axis in (2, 3))
        return relax.op.image.resize2d(
            n.expr(0), size, layout="NCHW", method="nearest_neighbor",
            coordinate_transformation_mode="asymmetric", rounding_method="floor",
        )  # fmt: skip
    x = n.expr(0)
    groups = [taps] if np.prod([t.index.shape[1] for t in taps.values()]) <= MAX_UNROLLED_TAPS else [
        {axis: t} for axis, t in taps.items()
    ]  # fmt: skip
    for group in groups:
        x = n.emit(_kernel_call(n, x, group, f"resize_{mode}"))
    inside = _inside_mask(n, taps, shape_of(x))
    return x if inside is None else relax.op.where(inside, x, n.scalar(fill))


def _is_identity(t: Taps, size: int) -> bool:
    out = np.arange(len(t.index))
    kept = np.where(t.weight != 0, t.index, out[:, None])
    return len(out) == size and bool(t.inside.all()) and bool((kept == out[:, None]).all())


def _repeats_whole_elements(n: Node, taps: dict[int, Taps]) -> bool:
    shape = n.shape()
    return set(taps) <= {2, 3} and all(
        len(t.index) % shape[axis] == 0
        and np.array_equal(t.index[:, 0], np.arange(len(t.index)) // (len(t.index) // shape[axis]))
        for axis, t in taps.items()
    )


def _inside_mask(n: Node, taps: dict[int, Taps], shape: tuple[int, ...]) -> Expr | None:
    if all(t.inside.all() for t in taps.values()):
        return None
    mask = np.ones(shape, bool)
    for axis, t in taps.items():
        mask &= t.inside.reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return n.build.constant(mask)


def _kernel_call(n: Node, x: Expr, taps: dict[int, Taps], name: str) -> Expr:
    """Return y[.., o, ..] = sum over taps of weight[o, k] * x[.., index[o, k], ..], over several axes at once.

    The tables are constants of the network: index [out, K] int32, weight [out, K] of x's dtype.
    """
    axes = sorted(taps)
    tables: list[Expr] = [n.build.constant(np.ascontiguousarray(taps[axis].index)) for axis in axes]
    weighted = [axis for axis in axes if taps[axis].index.shape[1] > 1 or np.any(taps[axis].weight != 1)]
    weights = [n.build.constant(np.ascontiguousarray(taps[axis].weight.astype(n.dtype()))) for axis in weighted]
    widths = {axis: taps[axis].index.shape[1] for axis in axes}
    shape = [len(taps[i].index) if i in taps else size for i, size in enumerate(shape_of(n.emit(x)))]

    def compute(source: te.Tensor, *tensors: te.Tensor) -> te.Tensor:
        index = dict(zip(axes, tensors[: len(axes)], strict=True))
        weight = dict(zip(weighted, tensors[len(axes) :], strict=True))

        def element(*out: tirx.Var) -> tirx.Expr:
            return _taps_of(source, index, weight, widths, list(out), axes)

        return te.compute(shape, element, name=name)

    return n.build.call_te(compute, x, *tables, *weights, name=name)


def _taps_of(
    source: te.Tensor,
    index: dict[int, te.Tensor],
    weight: dict[int, te.Tensor],
    widths: dict[int, int],
    at: list[tirx.Expr],
    axes: list[int],
) -> tirx.Expr:
    """Return the weighted sum over the taps of the first of ``axes``, each a sum over the taps of the others."""
    if not axes:
        return source(*at)
    axis, rest = axes[0], axes[1:]
    terms = []
    for k in range(widths[axis]):
        moved = [index[axis][at[axis], k] if i == axis else place for i, place in enumerate(at)]
        inner = _taps_of(source, index, weight, widths, moved, rest)
        terms.append(inner * weight[axis][at[axis], k] if axis in weight else inner)
    return reduce(lambda a, b: a + b, terms)
