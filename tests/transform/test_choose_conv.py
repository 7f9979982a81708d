"""The choice between direct sums and Winograd."""

from __future__ import annotations

import numpy as np
import pytest
from network_running import check
from tvm import relax
from tvm.relax import op

from xnncc.kernels.spatial import Window
from xnncc.target import Machine
from xnncc.transform.choose_conv import winograd_tile

AVX2 = Machine(lanes=8, registers=16)


def _window(h: int, w: int, **others: object) -> Window:
    return Window((h, w), (3, 3), (1, 1), (1, 1, 1, 1), (h, w), **others)


def test_large_layers_take_large_tiles_and_small_ones_none() -> None:
    assert winograd_tile(_window(56, 56), 64, 64, AVX2) == 4
    assert winograd_tile(_window(56, 56), 8, 64, AVX2) == 0  # too few channels to pay for the transforms
    assert winograd_tile(_window(1, 1), 512, 512, AVX2) == 0  # all tile, no image


@pytest.mark.parametrize(
    "win",
    [
        _window(56, 56, dilation=(2, 2)),
        _window(56, 56, spread=(2, 2)),
        Window((56, 56), (3, 3), (2, 2), (1, 1, 1, 1), (28, 28)),
        Window((56, 56), (1, 3), (1, 1), (0, 1, 0, 1), (56, 56)),
        Window((56, 56), (5, 5), (1, 1), (2, 2, 2, 2), (56, 56)),
    ],
)
def test_only_plain_3x3_windows(win: Window) -> None:
    assert winograd_tile(win, 64, 64, AVX2) == 0


@pytest.mark.parametrize(("lanes", "c", "o", "image"), [(8, 32, 36, (16, 17)), (4, 33, 24, (12, 12))])
def test_a_network_with_winograd_layers(lanes: int, c: int, o: int, image: tuple[int, int]) -> None:
    """Weights are transformed at open; what follows the convolution fuses into it; padded channels stay silent."""
    rng = np.random.default_rng(0)

    def weights(o: int, c: int) -> relax.Expr:
        return relax.const((rng.standard_normal((o, c, 3, 3)) / (3 * c**0.5)).astype("float32"))

    first, second, bias = weights(o, c), weights(c, o), relax.const(rng.standard_normal((1, o, 1, 1)).astype("float32"))

    def build(emit, x):
        y = emit(op.nn.relu(emit(op.add(emit(op.nn.conv2d(x, first, padding=1), "y"), bias), "b")), "r")
        return emit(op.add(emit(op.nn.conv2d(y, second, padding=1), "z"), x), "sum")

    # Winograd's error grows to 5e-5 of a layer's rms (kernels/winograd.py); the largest values are four times that.
    network = check(build, rng.standard_normal((1, c, *image)).astype("float32"), lanes=lanes, tolerance=5e-5)
    assert network.rules.count("winograd") == 2, network.kernels
    assert network.emitted.memory.prepared_bytes > 0
