"""The geometry of windows, and the padded copy they read."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_running import both_ways, random

from xnncc.kernels.math import f32
from xnncc.kernels.packing import reference_pack
from xnncc.kernels.spatial import Window, padded_input


@pytest.mark.parametrize(
    ("win", "padded", "needs_pad", "is_pointwise"),
    [
        (Window((5, 6), (1, 1), (1, 1), (0, 0, 0, 0), (5, 6)), (5, 6), False, True),
        (Window((5, 6), (1, 1), (2, 2), (0, 0, 0, 0), (3, 3)), (5, 5), False, False),
        (Window((5, 6), (3, 3), (1, 1), (1, 1, 1, 1), (5, 6)), (7, 8), True, False),
        (Window((5, 6), (3, 3), (1, 1), (0, 0, 0, 0), (3, 4)), (5, 6), False, False),
        (Window((5, 6), (3, 3), (1, 1), (0, 0, 1, 0), (4, 4)), (6, 6), True, False),
        (Window((6, 6), (3, 3), (2, 2), (0, 0, 1, 1), (2, 2)), (5, 5), False, False),  # padding that nobody reads
        (Window((5, 6), (3, 3), (1, 1), (0, 0, 0, 0), (1, 2), (2, 2)), (5, 6), False, False),
        (Window((5, 6), (1, 1), (1, 1), (0, 0, 0, 0), (9, 11), spread=(2, 2)), (9, 11), True, False),
    ],
)
def test_geometry(win: Window, padded: tuple[int, int], needs_pad: bool, is_pointwise: bool) -> None:
    assert (win.padded, win.needs_pad, win.is_pointwise) == (padded, needs_pad, is_pointwise)


@pytest.mark.parametrize("spread", [(1, 1), (2, 1), (2, 3)])
def test_padded_input(spread: tuple[int, int]) -> None:
    win = Window((3, 4), (3, 3), (1, 1), (1, 2, 0, 0), (6, 12), spread=spread)
    x = random(1, 2, 3, 3, 4)
    rows, columns = win.padded
    expected = np.full((2, 3, 40, 40), -7.0, "float32")
    expected[:, :, 1 : 1 + 3 * spread[0] : spread[0], 2 : 2 + 4 * spread[1] : spread[1]][:, :, :3, :4] = x
    expected = reference_pack(expected[:, :, :rows, :columns], 4).reshape(2, 1, rows, columns, 4)
    for how, y in both_ways(4, lambda t: padded_input(t, win, f32(-7.0)), reference_pack(x, 4)).items():
        assert np.array_equal(y[..., :3], expected[..., :3]), how
