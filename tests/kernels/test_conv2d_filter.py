"""Long windows with taps in the lanes, against float64 numpy, around the tile of pixels and the block of taps."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_running import both_ways, random, relative_error

from xnncc.kernels.conv2d import f32_conv2d_first, pack_conv_weights, pack_vector, reference_conv2d
from xnncc.kernels.conv2d_filter import TILE, f32_conv2d_filter, pack_filter_weights
from xnncc.kernels.spatial import Window

# The rounding of the float32 result, 2**-24 of itself; sums of float64 add nothing that shows.
ROUNDING = 6.0e-8


def _window(image: tuple[int, int], kernel: tuple[int, int], stride: tuple[int, int], pads: tuple[int, ...]) -> Window:
    top, left, bottom, right = pads
    oh = (image[0] + top + bottom - kernel[0]) // stride[0] + 1
    ow = (image[1] + left + right - kernel[1]) // stride[1] + 1
    return Window(image, kernel, stride, (top, left, bottom, right), (oh, ow))


def _check(v: int, x: np.ndarray, w: np.ndarray, win: Window) -> None:
    b = random(3, len(w))
    expected = reference_conv2d(x, w, b, win)
    for how, y in both_ways(v, lambda *t: f32_conv2d_filter(*t, win), x, pack_filter_weights(w, v), b).items():
        assert relative_error(y, expected) < ROUNDING, how


@pytest.mark.parametrize(
    ("v", "pixels"), [(8, 1), (8, TILE - 1), (4, TILE), (8, TILE), (4, TILE + 1), (8, TILE + 1), (8, 97), (4, 97)]
)
def test_pixels_around_the_tile(v: int, pixels: int) -> None:
    image = (1, 2 * (pixels - 1) + 64)
    _check(v, random(1, 1, 1, *image), random(2, 1, 1, 1, 64), _window(image, (1, 64), (1, 2), (0, 0, 0, 0)))


@pytest.mark.parametrize(("v", "taps"), [(8, 1), (8, 7), (8, 8), (8, 9), (8, 67), (4, 3), (4, 5), (4, 64)])
def test_taps_around_the_block(v: int, taps: int) -> None:
    image = (1, taps + 12)
    _check(v, random(1, 1, 1, *image), random(2, 1, 1, 1, taps), _window(image, (1, taps), (1, 1), (0, 0, 0, 0)))


@pytest.mark.parametrize(
    ("v", "n", "c", "o", "kernel", "stride", "pads"),
    [
        (8, 2, 1, 1, (1, 70), (1, 3), (0, 35, 0, 34)),
        (8, 1, 2, 3, (3, 66), (1, 1), (1, 5, 1, 0)),
        (4, 1, 4, 2, (2, 65), (2, 2), (0, 0, 3, 9)),
    ],
)
def test_geometry(v: int, n: int, c: int, o: int, kernel: tuple, stride: tuple, pads: tuple) -> None:
    image = (5, 101)
    _check(v, random(1, n, c, *image), random(2, o, c, *kernel), _window(image, kernel, stride, pads))


def test_one_float32_accumulator_does_not_reach_this_bound() -> None:
    """What the kernel is for: a low-pass filter of 256 taps over a signal that hardly changes sign."""
    x, win = 0.7 + 0.2 * random(1, 1, 1, 1, 300), _window((1, 300), (1, 256), (1, 1), (0, 0, 0, 0))
    w = (np.hanning(256) / 127.3).astype("float32").reshape(1, 1, 1, 256)
    b = np.zeros(1, "float32")
    expected = reference_conv2d(x, w, b, win)
    inputs = x, pack_conv_weights(w, 8, 1, 1), pack_vector(b, 8, 1)
    one_sum = both_ways(8, lambda *t: f32_conv2d_first(*t, win), *inputs)["conv2d"][..., 0].reshape(expected.shape)
    lanes = both_ways(8, lambda *t: f32_conv2d_filter(*t, win), x, pack_filter_weights(w, 8), b)["conv2d_filter"]
    assert relative_error(lanes, expected) < ROUNDING < 4 * ROUNDING < relative_error(one_sum, expected)
