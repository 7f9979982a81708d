"""Winograd convolutions against float64 direct sums, around their tiles of 2 and 4 pixels."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_running import MACHINES, both_ways, kernel, placeholders, random, relative_error, run

from xnncc.kernels.conv2d import pack_conv_weights, pack_vector, reference_conv2d
from xnncc.kernels.packing import reference_pack, reference_unpack
from xnncc.kernels.spatial import Window
from xnncc.kernels.winograd import G, f32_conv2d_winograd, transform_weights
from xnncc.schedule import schedule_kernel

# The module's measured errors, for sums of 150 products: the transforms cancel digits, those of m = 4 more.
TOLERANCE = {2: 5e-6, 4: 3e-5}


def _transformed(w: np.ndarray, m: int) -> np.ndarray:
    """Return G w G^T of packed ``w`` by numpy, [a*a, OB, CB, v, v]."""
    u = np.einsum("ar,ocrsij,bs->abocij", G[m], w.astype("f8"), G[m])
    return u.reshape(-1, *u.shape[2:]).astype("float32")


def _check(v: int, m: int, c: int, o: int, win: Window) -> None:
    x, w, b = random(1, 1, c, *win.image), random(2, o, c, 3, 3), random(3, o)
    blocks = -(-o // v)
    u = _transformed(pack_conv_weights(w, v, blocks, v), m)
    inputs = reference_pack(x, v), u, pack_vector(b, v, blocks)
    args = placeholders(*inputs)
    scheduled = schedule_kernel(kernel(*args, f32_conv2d_winograd(*args, win, m)), MACHINES[v])
    assert scheduled.rule == "winograd" and "did not fit" not in scheduled.reason, scheduled.reason
    y = run(scheduled.func, *inputs)
    assert relative_error(reference_unpack(y, o, *win.out), reference_conv2d(x, w, b, win)) < TOLERANCE[m]


def _same(h: int, w: int) -> Window:
    return Window((h, w), (3, 3), (1, 1), (1, 1, 1, 1), (h, w))


@pytest.mark.parametrize(
    ("v", "m", "h", "w"),
    [(8, 2, 4, 6), (8, 2, 5, 7), (8, 2, 1, 1), (4, 2, 6, 3), (8, 4, 8, 8), (8, 4, 7, 13), (8, 4, 1, 1), (8, 4, 3, 12),
     (4, 4, 9, 4), (8, 4, 16, 4)],
)  # fmt: skip
def test_images_around_the_tile(v: int, m: int, h: int, w: int) -> None:
    _check(v, m, 2 * v, 2 * v, _same(h, w))


@pytest.mark.parametrize(
    ("m", "win"),
    [
        (2, Window((6, 7), (3, 3), (1, 1), (0, 0, 0, 0), (4, 5))),
        (4, Window((6, 7), (3, 3), (1, 1), (2, 0, 1, 2), (7, 7))),
        (4, Window((10, 10), (3, 3), (1, 1), (0, 0, 0, 0), (8, 8))),
    ],
)
def test_pads(m: int, win: Window) -> None:
    _check(8, m, 16, 8, win)


@pytest.mark.parametrize(("m", "c", "o"), [(2, 5, 9), (4, 17, 3), (4, 8, 40)])
def test_channels_that_fill_no_block(m: int, c: int, o: int) -> None:
    _check(8, m, c, o, _same(6, 5))


@pytest.mark.parametrize("m", [2, 4])
def test_weights_are_transformed_as_the_paper_says(m: int) -> None:
    w = random(1, 2, 1, 3, 3, 4, 4)
    for how, u in both_ways(8, lambda t: transform_weights(t, m), w).items():
        assert relative_error(u, _transformed(w, m)) < 5e-7, how
