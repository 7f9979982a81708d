"""ResizeBilinear and ResizeNearestNeighbor in all corner modes: reads at constant positions, then a weighted mean.

An upsampling that repeats every element a whole number of times stays ``relax.image.resize2d`` (nearest, asymmetric,
floor), where schedules know it. Coordinates are computed in float32 as TensorFlow does, so both fall to the same side.
"""

from __future__ import annotations

import numpy as np
from tvm import relax
from tvm.relax import Expr

from ..network import shape_of
from ..refused import Refused
from .meaning_windows import scale_of
from .node import Node
from .registry import converter

R = relax.op

MAX_OUT = 2**16  # elements of a resized dimension


def _sizes(n: Node) -> list[int]:
    sizes = n.ints(1, "size")
    if len(sizes) != 2 or not all(1 <= size <= MAX_OUT for size in sizes):
        raise Refused(f"an image of {list(n.shape())} cannot become {sizes}")
    return sizes


def _positions(n: Node, size: int, out: int, offset: float) -> np.ndarray:
    at = np.arange(out, dtype="float32")
    half = np.float32(0.5)
    scale = scale_of(n.operation, size, out)
    return (at + half) * scale - np.float32(offset) if n.attr("half_pixel_centers", False) else at * scale


def _taken(n: Node, x: Expr, places: np.ndarray, axis: int) -> Expr:
    clipped = np.clip(places, 0, shape_of(x)[axis] - 1).astype("int32")
    if np.array_equal(clipped, np.arange(shape_of(x)[axis])):
        return x
    return n.emit(R.take(x, n.build.constant(clipped), axis, mode="clip"))


@converter("ResizeNearestNeighbor")
def resize_nearest(n: Node) -> Expr:
    x = n.image()
    places = []
    for axis, out in zip((2, 3), _sizes(n), strict=True):
        at = _positions(n, shape_of(x)[axis], out, 0.0)
        at = np.floor(at + np.float32(0.5)) if n.attr("align_corners", False) else np.floor(at)
        places.append(np.clip(at, 0, shape_of(x)[axis] - 1).astype("int32"))
    if all(_repeats(p, size) for p, size in zip(places, shape_of(x)[2:], strict=True)):
        sizes = tuple(len(p) for p in places)
        y = R.image.resize2d(
            x, sizes, layout="NCHW", method="nearest_neighbor", coordinate_transformation_mode="asymmetric",
            rounding_method="floor",
        )  # fmt: skip
        return n.image_result(y)
    for axis, place in zip((2, 3), places, strict=True):
        x = _taken(n, x, place, axis)
    return n.image_result(x)


def _repeats(places: np.ndarray, size: int) -> bool:
    """Return whether every element is read the same whole number of times, in order."""
    return len(places) % size == 0 and np.array_equal(places, np.arange(len(places)) // (len(places) // size))


@converter("ResizeBilinear")
def resize_bilinear(n: Node) -> Expr:
    """a + (b - a) * t along the width, then along the height."""
    x = n.image()
    if n.dtype() != "float32":
        x = n.emit(R.astype(x, "float32"))
    sizes = _sizes(n)
    for axis in (3, 2):
        at = _positions(n, shape_of(x)[axis], sizes[axis - 2], 0.5)
        part = (at - np.floor(at)).astype("float32").reshape([-1 if i == axis else 1 for i in range(4)])
        first, second = _taken(n, x, np.floor(at), axis), _taken(n, x, np.ceil(at), axis)
        if part.any():
            x = n.emit(R.add(first, R.multiply(R.subtract(second, first), n.build.constant(part))))
        else:
            x = first
    return n.image_result(x)
