"""Packed convolutions against float64 numpy, around the register tile."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from kernel_running import both_ways, random, relative_error

from xnncc.kernels.conv2d import f32_conv2d, f32_conv2d_first, pack_conv_weights, pack_vector, reference_conv2d
from xnncc.kernels.packing import reference_pack, reference_unpack
from xnncc.kernels.spatial import Window

# Sums of at most 600 products in float32, each rounded at 6e-8, in another order than numpy's.
TOLERANCE = 2e-6


@dataclass(frozen=True)
class Conv:
    """One convolution: C -> O channels over an image; pads are (top, left, bottom, right)."""

    c: int
    o: int
    image: tuple[int, int]
    kernel: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (1, 1, 1, 1)
    dilation: tuple[int, int] = (1, 1)
    spread: tuple[int, int] = (1, 1)
    n: int = 1

    def window(self) -> Window:
        """Return the window, with as many outputs as fit."""
        top, left, bottom, right = self.pads
        sizes = zip(self.image, (top + bottom, left + right), self.kernel, self.stride, self.dilation, self.spread,
                    strict=True)  # fmt: skip
        out = tuple(((i - 1) * up + 1 + p - (k - 1) * d - 1) // s + 1 for i, p, k, s, d, up in sizes)
        return Window(self.image, self.kernel, self.stride, self.pads, out, self.dilation, self.spread)


def _arrays(conv: Conv, groups: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x = random(1, conv.n, conv.c, *conv.image)
    w = random(2, conv.o, conv.c // groups, *conv.kernel)
    return x, w, random(3, conv.o)


def _check(conv: Conv, v: int, groups: int = 1) -> None:
    x, w, b = _arrays(conv, groups)
    win, blocks = conv.window(), -(-conv.o // v)
    packed_w = pack_conv_weights(w, v, blocks, v, groups)
    inputs = reference_pack(x, v), packed_w, pack_vector(b, v, blocks)
    expected = reference_conv2d(x, w, b, win, groups)
    for how, y in both_ways(v, lambda *t: f32_conv2d(*t, win, groups), *inputs).items():
        assert relative_error(reference_unpack(y, conv.o, *win.out), expected) < TOLERANCE, how
        beyond = y.transpose(0, 1, 3, 2).reshape(conv.n, blocks * v, -1)[:, conv.o :]
        assert not beyond.any(), f"{how}: lanes beyond the last channel are not zero"


@pytest.mark.parametrize(
    ("v", "columns"), [(8, 1), (8, 13), (8, 14), (8, 15), (8, 17), (4, 6), (4, 7), (4, 8), (4, 11)]
)
def test_rows_around_the_tile(v: int, columns: int) -> None:
    _check(Conv(v, 2 * v, (3, columns)), v)


@pytest.mark.parametrize(("v", "c", "o"), [(8, 1, 1), (8, 7, 9), (8, 9, 7), (8, 8, 24), (4, 3, 5), (4, 17, 13)])
def test_channels_that_fill_no_block(v: int, c: int, o: int) -> None:
    _check(Conv(c, o, (5, 6)), v)


SHAPES = {
    "1x1": Conv(9, 10, (5, 7), (1, 1), pads=(0, 0, 0, 0)),
    "1x1 one pixel": Conv(9, 10, (1, 1), (1, 1), pads=(0, 0, 0, 0)),
    "1x1 stride 2": Conv(9, 10, (5, 7), (1, 1), (2, 2), (0, 0, 0, 0)),
    "1x1 padded": Conv(3, 10, (2, 3), (1, 1), pads=(1, 0, 0, 2)),
    "no pad": Conv(5, 6, (6, 7), pads=(0, 0, 0, 0)),
    "stride 2": Conv(5, 6, (7, 8), stride=(2, 2)),
    "stride 3x1": Conv(5, 6, (7, 8), stride=(3, 1)),
    "asymmetric pads": Conv(5, 6, (6, 7), pads=(0, 1, 2, 3)),
    "pads wider than the kernel": Conv(2, 3, (2, 2), pads=(4, 3, 4, 3)),
    "dilation": Conv(5, 6, (9, 8), dilation=(2, 3), pads=(2, 3, 2, 3)),
    "dilation and stride": Conv(5, 6, (9, 8), stride=(2, 2), dilation=(2, 2), pads=(2, 2, 2, 2)),
    "1x7": Conv(5, 6, (4, 9), (1, 7), pads=(0, 3, 0, 3)),
    "5x1": Conv(5, 6, (9, 4), (5, 1), pads=(2, 0, 2, 0)),
    "even kernel": Conv(5, 6, (6, 6), (2, 4), pads=(0, 1, 1, 2)),
    "spread": Conv(5, 6, (4, 5), pads=(1, 2, 2, 1), spread=(2, 2)),
    "spread 3x1": Conv(5, 6, (4, 5), pads=(2, 2, 2, 2), spread=(3, 1)),
    "one pixel": Conv(5, 6, (1, 1)),
    "batch": Conv(5, 6, (4, 5), n=2),
    "batch of 1x1": Conv(9, 10, (3, 5), (1, 1), pads=(0, 0, 0, 0), n=3),
}


@pytest.mark.parametrize(("v", "name"), [(4 if i % 3 == 0 else 8, name) for i, name in enumerate(SHAPES)])
def test_geometry(v: int, name: str) -> None:
    _check(SHAPES[name], v)


@pytest.mark.parametrize(("v", "groups", "ins", "outs"), [(8, 2, 1, 1), (4, 3, 1, 2), (8, 2, 2, 1)])
def test_groups_of_whole_blocks(v: int, groups: int, ins: int, outs: int) -> None:
    """``ins`` and ``outs`` in blocks of v channels for each group."""
    _check(Conv(groups * ins * v, groups * outs * v, (4, 5)), v, groups)


def test_groups_of_pointwise_blocks() -> None:
    _check(Conv(16, 32, (4, 5), (1, 1), pads=(0, 0, 0, 0), n=2), 8, groups=2)


def test_long_reduction_over_few_pixels_runs_in_passes() -> None:
    """More than 256 KiB of weights for under 196 pixels: the rule keeps partial sums in memory between passes."""
    v, conv = 8, Conv(256, 64, (3, 4))
    x, w, b = _arrays(conv)
    win = conv.window()
    inputs = reference_pack(x, v), pack_conv_weights(w, v, conv.o // v, v), pack_vector(b, v, conv.o // v)
    results = both_ways(v, lambda *t: f32_conv2d(*t, win), *inputs)
    # 2304 products in a sum
    assert relative_error(reference_unpack(results["conv2d"], conv.o, *win.out), reference_conv2d(x, w, b, win)) < 5e-6


@pytest.mark.parametrize(
    ("v", "conv"),
    [
        (8, Conv(1, 5, (6, 7))),
        (8, Conv(3, 2 * 8, (9, 28), stride=(2, 2))),
        (8, Conv(3, 9, (6, 14), pads=(0, 0, 0, 0))),
        (8, Conv(4, 8, (5, 6), (1, 1), pads=(0, 0, 0, 0))),
        (4, Conv(3, 7, (8, 9), (7, 7), (2, 2), (3, 3, 3, 3))),
        (4, Conv(2, 5, (8, 9), pads=(0, 2, 3, 1), dilation=(2, 1))),
        (8, Conv(3, 8, (5, 6), n=2)),
    ],
)
def test_first_layer_reads_plain_pixels(v: int, conv: Conv) -> None:
    x, w, b = _arrays(conv)
    win, blocks = conv.window(), -(-conv.o // v)
    inputs = x, pack_conv_weights(w, v, blocks, conv.c), pack_vector(b, v, blocks)
    for how, y in both_ways(v, lambda *t: f32_conv2d_first(*t, win), *inputs).items():
        assert relative_error(reference_unpack(y, conv.o, *win.out), reference_conv2d(x, w, b, win)) < TOLERANCE, how


def test_reference_agrees_with_a_sum_written_out() -> None:
    """The judge is judged: one output of a strided, dilated, grouped convolution by hand."""
    conv = Conv(4, 6, (6, 7), stride=(2, 1), pads=(1, 0, 1, 2), dilation=(1, 2))
    x, w, b = _arrays(conv, groups=2)
    y = reference_conv2d(x, w, b, conv.window(), groups=2)
    n, o, p, q = 0, 4, 1, 3  # channel 4 is in group 1, whose inputs are channels 2 and 3
    total = float(b[o])
    for c in range(2):
        for r in range(3):
            for s in range(3):
                row, column = p * 2 + r - 1, q + 2 * s
                if 0 <= row < 6 and 0 <= column < 7:
                    total += float(x[n, 2 + c, row, column]) * float(w[o, c, r, s])
    assert y[n, o, p, q] == pytest.approx(total, rel=1e-12)


def test_packed_weights_are_zero_where_no_channel_is() -> None:
    w = np.ones((3, 5, 1, 1), "float32")
    packed = pack_conv_weights(w, 4, 2, 4)
    assert packed.shape == (2, 2, 1, 1, 4, 4)
    assert packed.sum() == 15 and packed[0, 0, 0, 0, :, :3].all() and not packed[:, 1, 0, 0, 1:].any()
