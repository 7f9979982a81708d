"""Sizes of sliding windows as TFLite rounds them, and resize positions: pure arithmetic for both implementations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Axis:
    """Windows along one axis: ``before`` and ``after`` are padded elements, ``reach`` the dilated kernel."""

    size: int
    kernel: int
    stride: int
    dilation: int
    out: int
    before: int
    after: int


def axis_of(size: int, kernel: int, stride: int, dilation: int, padding: str) -> Axis:
    """Return the windows of an axis; SAME pads the smaller half before.

    Raises:
        ValueError: a stride or dilation below 1, or a kernel that does not fit.
    """
    if min(kernel, stride, dilation) < 1:
        raise ValueError(f"kernel {kernel}, stride {stride} and dilation {dilation} must be at least 1")
    reach = (kernel - 1) * dilation + 1
    out = -(-size // stride) if padding == "SAME" else (size - reach) // stride + 1
    if out < 1:
        raise ValueError(f"a window of {reach} does not fit {size} elements")
    total = max((out - 1) * stride + reach - size, 0)
    return Axis(size, kernel, stride, dilation, out, total // 2, total - total // 2)


def transposed_padding(size: int, kernel: int, stride: int, out: int, padding: str) -> tuple[int, int]:
    """Return (before, after) cropped off a transposed convolution; ``after`` < 0 means elements that are added."""
    full = (size - 1) * stride + kernel
    total = max(full - out, 0) if padding == "SAME" else 0
    before = total // 2
    return before, full - out - before


def nearest_index(size: int, out: int, align_corners: bool, half_pixel: bool) -> np.ndarray:
    """Return [out] int32: which element of ``size`` each output element takes."""
    scale = np.float32((size - 1) / (out - 1)) if align_corners and out > 1 else np.float32(size / out)
    x = np.arange(out, dtype="float32")
    at = (x + np.float32(0.5 if half_pixel else 0)) * scale
    at = np.floor(at + np.float32(0.5)) if align_corners else np.floor(at)
    return np.clip(at, 0, size - 1).astype("int32")


def linear_taps(size: int, out: int, align_corners: bool, half_pixel: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return index [out, 2] int32 and weight [out, 2] float32 of a bilinear axis."""
    scale = np.float32((size - 1) / (out - 1)) if align_corners and out > 1 else np.float32(size / out)
    x = np.arange(out, dtype="float32")
    at = (x + np.float32(0.5)) * scale - np.float32(0.5) if half_pixel else x * scale
    low = np.maximum(np.floor(at), 0)
    high = np.minimum(np.ceil(at), size - 1)
    low = np.minimum(low, size - 1)
    part = (at - low).astype("float32")
    return np.stack([low, high], 1).astype("int32"), np.stack([1 - part, part], 1).astype("float32")


def linear_taps_10bit(size: int, out: int, align_corners: bool, half_pixel: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the taps of a quantised bilinear axis: weights are int32 with 10 fractional bits."""
    if align_corners and out > 1:
        scale = ((1 << 10) * (size - 1) + (out - 1) // 2) // (out - 1)
    else:
        scale = ((1 << 10) * size + out // 2) // out
    at = np.arange(out, dtype="int64") * scale + (scale // 2 - (1 << 9) if half_pixel else 0)
    low = np.clip(at >> 10, 0, size - 1)  # negative positions are cut to 0 in any case
    high = np.minimum(np.maximum((at + 1023) >> 10, 0), size - 1)
    part = at - (low << 10)
    return np.stack([low, high], 1).astype("int32"), np.stack([(1 << 10) - part, part], 1).astype("int32")
