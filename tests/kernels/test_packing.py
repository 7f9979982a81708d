"""Packing and rearrangements of packed tensors: no arithmetic, so every number arrives unchanged."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from kernel_running import both_ways, random

from xnncc.kernels import packing
from xnncc.kernels.packing import reference_pack, reference_unpack


def _same(results: dict[str, np.ndarray], expected: np.ndarray) -> None:
    for how, y in results.items():
        assert np.array_equal(y, expected), how


def _check(v: int, fn: Callable, x: np.ndarray, expected: np.ndarray) -> None:
    """``fn`` of packed ``x`` is packed ``expected``; both plain here."""
    results = both_ways(v, fn, reference_pack(x, v))
    _same({how: reference_unpack(y, *expected.shape[1:]) for how, y in results.items()}, expected)


@pytest.mark.parametrize(
    ("v", "c", "image"), [(8, 1, (3, 5)), (8, 7, (1, 1)), (8, 8, (4, 4)), (4, 9, (2, 3)), (8, 17, (5, 3))]
)
def test_pack_and_unpack(v: int, c: int, image: tuple[int, int]) -> None:
    x = random(1, 2, c, *image)
    packed = reference_pack(x, v)
    _same(both_ways(v, lambda t: packing.pack(t, v), x), packed)
    _same(both_ways(v, lambda t: packing.unpack(t, c, *image), packed), x)


def test_references_are_inverse_and_put_channels_into_lanes() -> None:
    x = random(1, 2, 5, 2, 3)
    packed = reference_pack(x, 4)
    assert packed.shape == (2, 2, 6, 4) and not packed[:, 1, :, 1:].any()
    assert packed[1, 1, 4, 0] == x[1, 4, 1, 1] and packed[0, 0, 2, 3] == x[0, 3, 0, 2]
    assert np.array_equal(reference_unpack(packed, 5, 2, 3), x)


MODES = [("constant", "constant"), ("reflect", "reflect"), ("edge", "edge")]


@pytest.mark.parametrize(("mode", "numpy_mode"), MODES)
@pytest.mark.parametrize("pads", [(1, 2, 3, 0), (0, 0, 0, 1), (3, 3, 3, 3)])
def test_pad_image(mode: str, numpy_mode: str, pads: tuple[int, int, int, int]) -> None:
    x = random(1, 2, 5, 4, 5)
    top, left, bottom, right = pads
    more = {"constant_values": -1.5} if mode == "constant" else {}
    expected = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), numpy_mode, **more)
    _check(8, lambda t: packing.pad_image(t, (4, 5), pads, mode, -1.5), x, expected)


@pytest.mark.parametrize("factor", [(2, 2), (3, 1), (1, 4)])
def test_upsample_nearest(factor: tuple[int, int]) -> None:
    x = random(1, 2, 5, 3, 4)
    expected = x.repeat(factor[0], axis=2).repeat(factor[1], axis=3)
    _check(4, lambda t: packing.upsample_nearest(t, (3, 4), factor), x, expected)


def test_pixel_shuffle_puts_each_phase_in_its_place() -> None:
    v, blocks, (h, w), (fy, fx) = 4, 2, (3, 2), (2, 3)
    phases = random(1, 2, fy * fx, blocks * v, h, w)
    expected = np.zeros((2, blocks * v, h * fy, w * fx), "float32")
    for y in range(fy):
        for x in range(fx):
            expected[:, :, y::fy, x::fx] = phases[:, y * fx + x]
    plain = phases.reshape(2, fy * fx * blocks * v, h, w)
    _check(v, lambda t: packing.pixel_shuffle(t, (h, w), (fy, fx), blocks), plain, expected)


@pytest.mark.parametrize(("v", "channels"), [(4, [3, 5]), (8, [8, 1, 7]), (4, [1, 1, 1, 2]), (8, [9, 15])])
def test_concat_of_ragged_channels(v: int, channels: list[int]) -> None:
    parts = [random(i, 2, c, 2, 3) for i, c in enumerate(channels)]
    results = both_ways(
        v, lambda *t: packing.concat_channels(list(t), channels), *(reference_pack(p, v) for p in parts)
    )
    _same(results, reference_pack(np.concatenate(parts, axis=1), v))


def test_crop_slice_and_copy() -> None:
    x = random(1, 5, 16)
    _same(both_ways(8, lambda t: packing.crop_columns(t, 11), x), x[:, :11])
    packed = random(2, 2, 5, 6, 8)
    _same(both_ways(8, lambda t: packing.slice_blocks(t, 1, 3), packed), packed[:, 1:4])
    _same(both_ways(8, packing.copy, packed), packed)


def test_copy_keeps_integers() -> None:
    x = np.arange(11, dtype="int64") - 5
    _same(both_ways(8, packing.copy, x), x)
