"""Packed pooling against numpy, window by window."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_running import both_ways, random, relative_error

from xnncc.kernels.packing import reference_pack, reference_unpack
from xnncc.kernels.pool import f32_global_mean, f32_pool2d, global_max, reference_pool2d
from xnncc.kernels.spatial import Window

WINDOWS = {
    "2x2": Window((6, 8), (2, 2), (2, 2), (0, 0, 0, 0), (3, 4)),
    "3x3 padded": Window((7, 13), (3, 3), (1, 1), (1, 1, 1, 1), (7, 13)),
    "3x3 stride 2": Window((7, 8), (3, 3), (2, 2), (1, 1, 1, 1), (4, 4)),
    "asymmetric pads": Window((7, 8), (3, 3), (2, 2), (0, 0, 1, 1), (3, 4)),
    "ceil mode": Window((6, 6), (3, 3), (2, 2), (0, 0, 0, 0), (3, 3)),
    "ceil mode padded": Window((7, 7), (3, 3), (3, 3), (1, 1, 1, 1), (3, 3)),
    "ceil mode 3x3 stride 4 padded": Window((8, 8), (3, 3), (4, 4), (1, 1, 1, 1), (3, 3)),
    "1x3": Window((4, 7), (1, 3), (1, 2), (0, 1, 0, 1), (4, 4)),
    "larger than the image": Window((3, 3), (7, 7), (1, 1), (3, 3, 3, 3), (3, 3)),
    "row of 9": Window((3, 18), (2, 2), (1, 2), (0, 0, 0, 0), (2, 9)),
}


@pytest.mark.parametrize(("v", "name"), [(4 if i % 3 == 0 else 8, name) for i, name in enumerate(WINDOWS)])
def test_maximum(v: int, name: str) -> None:
    win, c = WINDOWS[name], v + 3
    x = random(1, 2, c, *win.image) - 3  # mostly negative: a zero from the padding would win
    for how, y in both_ways(v, lambda t: f32_pool2d(t, win, is_max=True), reference_pack(x, v)).items():
        assert np.array_equal(reference_unpack(y, c, *win.out), reference_pool2d(x, win, True)), how


def test_dilated_maximum() -> None:
    win = Window((7, 8), (3, 2), (1, 2), (2, 1, 2, 1), (7, 4), dilation=(2, 3))
    x = random(1, 1, 5, *win.image)
    for how, y in both_ways(8, lambda t: f32_pool2d(t, win, is_max=True), reference_pack(x, 8)).items():
        assert np.array_equal(reference_unpack(y, 5, *win.out), reference_pool2d(x, win, True)), how


@pytest.mark.parametrize("count_pad", [False, True])
@pytest.mark.parametrize(("v", "name"), [(4 if i % 3 == 2 else 8, name) for i, name in enumerate(WINDOWS)])
def test_mean(v: int, name: str, count_pad: bool) -> None:
    win, c = WINDOWS[name], v - 1
    x = random(1, 1, c, *win.image)
    results = both_ways(v, lambda t: f32_pool2d(t, win, is_max=False, count_pad=count_pad), reference_pack(x, v))
    for how, y in results.items():
        # 49 terms at most
        assert relative_error(reference_unpack(y, c, *win.out), reference_pool2d(x, win, False, count_pad)) < 1e-6, how


@pytest.mark.parametrize(
    ("v", "blocks", "pixels"), [(8, 1, 1), (8, 2, 7), (4, 3, 49), (8, 4, 10), (4, 5, 13), (8, 12, 4)]
)
def test_global_mean_and_maximum(v: int, blocks: int, pixels: int) -> None:
    c = blocks * v - 1
    x = random(1, 2, c, 1, pixels)
    packed = reference_pack(x, v)
    for how, y in both_ways(v, f32_global_mean, packed).items():
        found = reference_unpack(y, c, 1, 1)
        assert relative_error(found, x.mean(axis=(2, 3), keepdims=True, dtype="f8")) < 1e-6, how
    for how, y in both_ways(v, global_max, packed).items():
        assert np.array_equal(reference_unpack(y, c, 1, 1), x.max(axis=(2, 3), keepdims=True)), how
