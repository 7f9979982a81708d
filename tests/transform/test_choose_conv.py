"""The choice between direct sums and Winograd."""

from __future__ import annotations

import numpy as np
import pytest
from network_running import check
from tvm import relax
from tvm.relax import op

from xnncc.kernels.spatial import Window
from xnncc.target import Machine
from xnncc.transform.choose_conv import choose_algorithm, convolution_key, direct_pixels, winograd_m, winograd_tile

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


def test_a_record_decides_if_it_names_an_algorithm_of_the_convolution() -> None:
    win = _window(56, 56)
    key = convolution_key(win, 64, 64)
    chosen = choose_algorithm(win, 64, 64, 8, AVX2, False, {})
    assert (chosen.key, chosen.algorithm) == (key, "winograd4")
    assert chosen.algorithms == ("winograd4", "direct", "winograd2")
    assert choose_algorithm(win, 64, 64, 8, AVX2, False, {key: "winograd2"}).algorithm == "winograd2"
    for unknown in ("fft", "winograd6", "direct/99", ""):
        assert choose_algorithm(win, 64, 64, 8, AVX2, False, {key: unknown}).algorithm == "winograd4"


def test_exact_builds_know_plain_sums_alone() -> None:
    win = _window(56, 56)
    chosen = choose_algorithm(win, 64, 64, 8, AVX2, True, {convolution_key(win, 64, 64): "winograd2"})
    assert (chosen.algorithm, chosen.algorithms) == ("direct", ("direct",))


def test_a_pointwise_convolution_may_compute_more_pixels() -> None:
    win = Window((7, 7), (1, 1), (1, 1), (0, 0, 0, 0), (7, 7))
    names = choose_algorithm(win, 512, 1024, 128, AVX2, True, {}).algorithms
    assert names[0] == "direct" and len(names) > 1
    pixels = [direct_pixels(name, win, 128, AVX2) for name in names]
    assert len(set(pixels)) == len(pixels) and all(49 <= n <= 54 for n in pixels)


def test_a_pointwise_convolution_may_run_by_strassens_products() -> None:
    win = Window((14, 14), (1, 1), (1, 1), (0, 0, 0, 0), (14, 14))
    zen4 = Machine(lanes=16, registers=32, fma_ports=1, l2_kib=1024)
    assert choose_algorithm(win, 512, 512, 32, zen4, False, {}).algorithm == "strassen"
    assert choose_algorithm(win, 128, 512, 64, AVX2, False, {}).algorithms[-1] == "strassen"  # for tuning to try
    assert "strassen" not in choose_algorithm(win, 512, 512, 64, AVX2, True, {}).algorithms
    assert "strassen" not in choose_algorithm(win, 512, 36, 5, AVX2, False, {}).algorithms  # an odd number of blocks


def test_keys_of_different_convolutions_differ() -> None:
    wins = [_window(56, 56), _window(56, 28), Window((56, 56), (3, 3), (2, 2), (1, 1, 1, 1), (28, 28))]
    keys = {convolution_key(win, c, o) for win in wins for c in (32, 64) for o in (32, 64)}
    assert len(keys) == 12


def test_algorithms_by_name() -> None:
    assert [winograd_m(name) for name in ("winograd2", "winograd4", "direct", "direct/50")] == [2, 4, 0, 0]
