"""Packed depthwise convolution against float64 numpy, around its row tile (up to 8 pixels)."""

from __future__ import annotations

import pytest
from kernel_running import both_ways, random, relative_error

from xnncc.kernels.conv2d import pack_vector
from xnncc.kernels.depthwise import f32_depthwise, pack_depthwise_weights, reference_depthwise
from xnncc.kernels.packing import reference_pack, reference_unpack
from xnncc.kernels.spatial import Window

TOLERANCE = 1e-6  # at most 81 products in a sum


def _check(v: int, n: int, c: int, win: Window) -> None:
    x, w, b = random(1, n, c, *win.image), random(2, c, 1, *win.kernel), random(3, c)
    blocks = -(-c // v)
    inputs = reference_pack(x, v), pack_depthwise_weights(w, v, blocks), pack_vector(b, v, blocks)
    expected = reference_depthwise(x, w, b, win)
    for how, y in both_ways(v, lambda *t: f32_depthwise(*t, win), *inputs).items():
        assert relative_error(reference_unpack(y, c, *win.out), expected) < TOLERANCE, how


@pytest.mark.parametrize(("v", "columns"), [(8, 1), (8, 5), (8, 7), (8, 12), (4, 7), (4, 8), (4, 9), (4, 13)])
def test_rows_around_the_tile(v: int, columns: int) -> None:
    _check(v, 1, v + 1, Window((3, columns), (3, 3), (1, 1), (1, 1, 1, 1), (3, columns)))


@pytest.mark.parametrize(("v", "c"), [(8, 1), (8, 7), (8, 8), (8, 17), (4, 3), (4, 9)])
def test_channels_that_fill_no_block(v: int, c: int) -> None:
    _check(v, 2, c, Window((4, 6), (3, 3), (1, 1), (1, 1, 1, 1), (4, 6)))


@pytest.mark.parametrize(
    "win",
    [
        Window((7, 8), (3, 3), (2, 2), (0, 0, 1, 1), (3, 4)),
        Window((7, 9), (5, 5), (2, 2), (2, 2, 2, 2), (4, 5)),
        Window((9, 8), (3, 3), (1, 1), (2, 2, 2, 2), (9, 8), dilation=(2, 2)),
        Window((6, 7), (3, 3), (1, 1), (0, 0, 0, 0), (4, 5)),
        Window((8, 8), (7, 7), (1, 1), (3, 3, 3, 3), (8, 8)),
        Window((5, 6), (1, 1), (1, 1), (0, 0, 0, 0), (5, 6)),
        Window((5, 6), (2, 2), (1, 1), (0, 1, 0, 0), (4, 6)),
        Window((3, 4), (4, 4), (1, 1), (2, 2, 0, 0), (6, 8), spread=(2, 2)),
    ],
)
def test_geometry(win: Window) -> None:
    _check(8, 1, 10, win)
