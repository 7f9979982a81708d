"""Kernels as Arm gets them (whole vectors of inputs, weights of a tile side by side), run here against float64 sums."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from kernel_running import kernel, placeholders, random, relative_error, run

from xnncc.ir.tiles import side_by_side
from xnncc.kernels import conv2d, matmul, strassen, winograd
from xnncc.kernels.packing import reference_pack, reference_unpack
from xnncc.kernels.spatial import Window
from xnncc.schedule import conv2d_direct as direct
from xnncc.schedule import schedule_kernel, tuning_space
from xnncc.target import load_target

ARM64, ARM32 = (load_target(name).machine for name in ("linux-arm64", "android-arm32"))
V = 4
TOLERANCE = 2e-6
WINOGRAD_TOLERANCE = 3e-5  # as in tests/kernels/test_winograd.py
MACHINES = pytest.mark.parametrize("machine", [ARM64, ARM32], ids=["arm64", "arm32"])


def _run(machine: object, fn: Callable, *inputs: np.ndarray) -> np.ndarray:
    args = placeholders(*inputs)
    scheduled = schedule_kernel(kernel(*args, fn(*args)), machine)
    assert "did not fit" not in scheduled.reason and scheduled.reason.startswith("analytic"), scheduled.reason
    return run(scheduled.func, *inputs, optimised=False)


def _window(image: tuple[int, int], k: int, stride: int = 1) -> Window:
    pad = k // 2
    out = tuple((size + 2 * pad - k) // stride + 1 for size in image)
    return Window(image, (k, k), (stride, stride), (pad,) * 4, out)


def _conv_inputs(c: int, o: int, win: Window, beside: int) -> tuple[list[np.ndarray], np.ndarray]:
    x, w, b = random(1, 1, c, *win.image), random(2, o, c, *win.kernel), random(3, o)
    packed = conv2d.pack_conv_weights(w, beside * V, o // V // beside, V)
    return [reference_pack(x, V), packed, conv2d.pack_vector(b, V, o // V)], conv2d.reference_conv2d(x, w, b, win)


@MACHINES
@pytest.mark.parametrize(
    ("k", "stride", "image", "o"), [(1, 1, (4, 6), 16), (3, 1, (5, 7), 16), (3, 2, (9, 7), 12), (5, 1, (6, 5), 20)]
)
def test_direct_convolution(machine: object, k: int, stride: int, image: tuple[int, int], o: int) -> None:
    win = _window(image, k, stride)
    rows = (1, win.out[0] * win.out[1]) if win.is_pointwise else win.out
    inputs, expected = _conv_inputs(8, o, win, side_by_side(o // V, *rows, machine))
    y = _run(machine, lambda *t: conv2d.f32_conv2d(*t, win), *inputs)
    assert relative_error(reference_unpack(y, o, *win.out), expected) < TOLERANCE


@MACHINES
@pytest.mark.parametrize("beside", [1, 2, 4])
def test_any_tile_reads_weights_side_by_side(machine: object, beside: int) -> None:
    win = _window((4, 6), 1)
    inputs, expected = _conv_inputs(8, 16, win, beside)
    args = placeholders(*inputs)
    func = kernel(*args, conv2d.f32_conv2d(*args, win))
    y = run(schedule_kernel(func, machine).func, *inputs, optimised=False)
    assert relative_error(reference_unpack(y, 16, *win.out), expected) < TOLERANCE


@MACHINES
def test_pixels_beyond_the_image_are_not_written(machine: object) -> None:
    """49 pixels are computed as 54, which tiles of six divide."""
    win = _window((7, 7), 1)
    inputs, expected = _conv_inputs(8, 16, win, 4)
    y = _run(machine, lambda *t: conv2d.f32_conv2d(*t, win, pixels=54), *inputs)
    assert relative_error(reference_unpack(y, 16, *win.out), expected) < TOLERANCE


@pytest.mark.parametrize(
    ("c", "o", "k", "image"), [(3, 16, 3, (9, 16)), (3, 4, 7, (16, 16)), (1, 16, 3, (9, 8)), (4, 8, 3, (8, 9))]
)
def test_first_layer_takes_lanes_of_pixels(c: int, o: int, k: int, image: tuple[int, int]) -> None:
    win = _window(image, k, 2)
    x, w, b = random(1, 1, c, *image), random(2, o, c, k, k), random(3, o)
    for beside in (1, o // V):
        inputs = x, conv2d.pack_conv_weights(w, beside * V, o // V // beside, c), conv2d.pack_vector(b, V, o // V)
        y = _run(ARM64, lambda *t: conv2d.f32_conv2d_first(*t, win, by_lane=True), *inputs)
        assert relative_error(reference_unpack(y, o, *win.out), conv2d.reference_conv2d(x, w, b, win)) < TOLERANCE


def test_first_layer_tiles_take_turns_at_the_lanes_left() -> None:
    """Three channels leave one lane of four: a tile of an odd number of blocks would choose it at run time."""
    numbers = {"oh": 8, "ow": 12, "ob": 16, "ic": 3, "taps": 9, "ib": 1, "turns": 2, "kw": 3, "step": 2}
    found = tuning_space(direct, numbers, ARM64)
    assert found and all(config.ob % 2 == 0 for config in found)


@MACHINES
@pytest.mark.parametrize("m", [2, 4])
@pytest.mark.parametrize("image", [(8, 8), (7, 9)])
def test_winograd(machine: object, m: int, image: tuple[int, int]) -> None:
    win = _window(image, 3)
    tiles = -(-image[0] // m) * -(-image[1] // m)
    (x, packed, b), expected = _conv_inputs(16, 16, win, side_by_side(4, 1, tiles, machine))
    transform = placeholders(packed)
    u = run(
        schedule_kernel(kernel(*transform, winograd.transform_weights(*transform, m)), machine).func,
        packed,
        optimised=False,
    )
    y = _run(machine, lambda *t: winograd.f32_conv2d_winograd(*t, win, m), x, u, b)
    assert relative_error(reference_unpack(y, 16, *image), expected) < WINOGRAD_TOLERANCE


@MACHINES
def test_strassen(machine: object) -> None:
    win = _window((4, 6), 1)
    beside = side_by_side(2, 1, 12, machine)
    (x, packed, b), expected = _conv_inputs(16, 16, win, beside)
    transform = placeholders(packed)
    s = run(
        schedule_kernel(kernel(*transform, strassen.transform_conv_weights(*transform)), machine).func,
        packed,
        optimised=False,
    )
    y = _run(machine, lambda *t: strassen.f32_conv2d_strassen(*t, 1, 12), x, s, b)
    assert relative_error(reference_unpack(y, 16, *win.out), expected) < 3 * TOLERANCE


@MACHINES
@pytest.mark.parametrize(("m", "k", "n"), [(14, 8, 24), (6, 16, 16), (7, 12, 20)])
def test_gemm(machine: object, m: int, k: int, n: int) -> None:
    x, w, b = random(1, m, k), random(2, k, n), random(3, n)
    beside = side_by_side(n // V, 1, m, machine)
    inputs = x, matmul.pack_matmul_weights(w, beside * V), conv2d.pack_vector(b, V, n // V)
    assert relative_error(_run(machine, matmul.f32_gemm, *inputs), matmul.reference_matmul(x, w, b)) < TOLERANCE


@MACHINES
@pytest.mark.parametrize("n", [16, 18, 21])
def test_batched_product_pads_columns_to_whole_runs(machine: object, n: int) -> None:
    x, y = random(1, 2, 7, 8), random(2, 2, 8, n)
    for beside in (1, 2, 3):
        found = _run(machine, lambda a, b, g=beside: matmul.f32_bmm(a, b, V, g), x, y)
        assert relative_error(found, matmul.reference_matmul(x, y)) < TOLERANCE
