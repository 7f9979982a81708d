"""Resize along one axis as tables: which elements each output element reads (``taps``) and with which weights.

Follows the ONNX standard, Resize-19. Coordinates are computed in float32 as onnxruntime does: a coordinate that is
an integer on paper may fall to either side of it, and both must fall to the same side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .node import Refused

COORDINATES = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
    "tf_half_pixel_for_nn", "tf_crop_and_resize",
)  # fmt: skip
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
BEFORE_OPSET_11 = "before opset 11"  # nearest had no mode then: ceil when shrinking, floor otherwise, in onnxruntime


@dataclass(frozen=True)
class AxisMap:
    """How one axis is resized. ``scale`` is output elements per input element, as the model gives it."""

    size: int
    out: int
    scale: float
    coordinates: str
    roi: tuple[float, float] = (0.0, 1.0)


@dataclass(frozen=True)
class Taps:
    """index, weight: [out, K]; ``inside``: [out], false where the extrapolation value stands instead."""

    index: np.ndarray
    weight: np.ndarray
    inside: np.ndarray


def source_positions(a: AxisMap) -> np.ndarray:
    """Return [out] float32: the position in the input of each output element."""
    x, scale = np.arange(a.out, dtype="float32"), np.float32(a.scale)
    half, one = np.float32(0.5), np.float32(1)
    match a.coordinates:
        case "half_pixel":
            return (x + half) / scale - half
        case "half_pixel_symmetric":
            wide = np.float32(a.size) * scale
            offset = np.float32(a.size) / np.float32(2) * (one - np.float32(a.out) / wide)
            return offset + (x + half) / scale - half
        case "pytorch_half_pixel":
            return (x + half) / scale - half if a.out > 1 else np.zeros(1, "float32")
        case "align_corners":
            return x * np.float32(a.size - 1) / np.float32(a.out - 1) if a.out > 1 else np.zeros(1, "float32")
        case "asymmetric":
            return x / scale
        case "tf_half_pixel_for_nn":
            return (x + half) / scale
        case "tf_crop_and_resize":
            start, end, last = np.float32(a.roi[0]), np.float32(a.roi[1]), np.float32(a.size - 1)
            if a.out == 1:
                return np.full(1, half * (start + end) * last, "float32")
            return start * last + x * (end - start) * last / np.float32(a.out - 1)
    raise Refused(f"coordinate_transformation_mode '{a.coordinates}' is not supported")


def _inside(a: AxisMap, positions: np.ndarray) -> np.ndarray:
    if a.coordinates != "tf_crop_and_resize":
        return np.ones(a.out, bool)
    return (positions >= 0) & (positions <= a.size - 1)


def nearest_taps(a: AxisMap, rounding: str) -> Taps:
    """Return one tap per output element."""
    x = source_positions(a)
    if a.scale == 1 and a.out == a.size and a.coordinates != "tf_crop_and_resize":
        x = np.arange(a.out, dtype="float32")
    half = np.float32(0.5)
    if rounding == BEFORE_OPSET_11:
        rounding = "ceil" if a.scale < 1 else "floor"
    rounded = {
        "round_prefer_floor": np.ceil(x - half), "round_prefer_ceil": np.floor(x + half),
        "floor": np.floor(x), "ceil": np.ceil(x),
    }[rounding]  # fmt: skip
    index = np.clip(rounded, 0, a.size - 1).astype("int32").reshape(-1, 1)
    return Taps(index, np.ones_like(index, "float32"), _inside(a, x))


def linear_taps(a: AxisMap) -> Taps:
    """Return two taps per output element; positions are clamped into the input first."""
    positions = source_positions(a)
    x = np.clip(positions, 0, a.size - 1)
    low = np.minimum(x.astype("int32"), a.size - 1)
    high = np.minimum(low + 1, a.size - 1)
    weight = (x - low).astype("float32")
    return Taps(np.stack([low, high], 1), np.stack([1 - weight, weight], 1), _inside(a, positions))


def cubic_taps(a: AxisMap, coefficient: float, exclude_outside: bool) -> Taps:
    """Return four taps per output element (Keys 1981, "Cubic Convolution Interpolation", with a = coefficient)."""
    positions = source_positions(a)
    low = np.floor(positions)
    offsets = np.arange(-1, 3)
    weight = _cubic(np.abs((positions - low)[:, None] - offsets), coefficient)
    return _bounded(a, low.astype("int64")[:, None] + offsets, weight, exclude_outside, positions)


def antialias_taps(a: AxisMap, mode: str, coefficient: float, exclude_outside: bool) -> Taps:
    """Return as many taps as the widened filter has: when shrinking it is stretched by 1 / scale.

    The weights are normalised before those outside of the input go to its edge, or are dropped.
    """
    positions = source_positions(a).astype("float64")
    stretch = max(1.0 / a.scale, 1.0)
    radius = (1 if mode == "linear" else 2) * stretch
    low = np.floor(positions - radius).astype("int64")
    index = low[:, None] + np.arange(int(np.ceil(2 * radius)) + 2)
    distance = np.abs(index - positions[:, None]) / stretch
    weight = np.clip(1 - distance, 0, None) if mode == "linear" else _cubic(distance, coefficient)
    return _bounded(a, index, weight / weight.sum(1, keepdims=True), exclude_outside, positions)


def _cubic(distance: np.ndarray, a: float) -> np.ndarray:
    d = distance.astype("float64")
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))


def _bounded(a: AxisMap, index: np.ndarray, weight: np.ndarray, exclude_outside: bool, positions: np.ndarray) -> Taps:
    """Clamp indices into the input; weights outside are dropped and the rest normalised when asked."""
    if exclude_outside:
        weight = np.where((index >= 0) & (index < a.size), weight, 0.0)
        weight = weight / weight.sum(1, keepdims=True)
    used = np.any(weight != 0, axis=0)
    index = np.clip(index[:, used], 0, a.size - 1).astype("int32")
    return Taps(index, weight[:, used].astype("float32"), _inside(a, positions))
