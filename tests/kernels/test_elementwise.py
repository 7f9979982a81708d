"""Elementwise kernels against numpy: plain, packed, and with each kind of second operand."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from kernel_running import both_ways, random

from xnncc.kernels import elementwise
from xnncc.kernels.elementwise import BINARY, UNARY
from xnncc.kernels.packing import reference_pack, reference_unpack

Numpy = Callable[..., np.ndarray]


def _erf(x: np.ndarray) -> np.ndarray:
    return np.vectorize(math.erf)(x)


NUMPY_UNARY: dict[str, Numpy] = {
    "relax.nn.relu": lambda x: np.maximum(x, 0),
    "relax.sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "relax.tanh": np.tanh,
    "relax.exp": np.exp,
    "relax.erf": _erf,
    "relax.nn.silu": lambda x: x / (1 + np.exp(-x)),
    "relax.nn.gelu": lambda x: 0.5 * x * (1 + _erf(x / math.sqrt(2))),
    "relax.abs": np.abs,
    "relax.negative": np.negative,
    "relax.floor": np.floor,
    "relax.ceil": np.ceil,
}
NUMPY_BINARY: dict[str, Numpy] = {
    "relax.add": np.add,
    "relax.subtract": np.subtract,
    "relax.multiply": np.multiply,
    "relax.divide": np.divide,
    "relax.maximum": np.maximum,
    "relax.minimum": np.minimum,
}
TOLERANCE = 5e-7  # a polynomial is right to 4e-7 (see math.py); everything else to one rounding


def _close(results: dict[str, np.ndarray], expected: np.ndarray) -> None:
    for how, y in results.items():
        np.testing.assert_allclose(y, expected, rtol=TOLERANCE, atol=TOLERANCE, err_msg=how)


def test_every_operator_has_its_numpy_twin() -> None:
    assert set(NUMPY_UNARY) == set(UNARY) and set(NUMPY_BINARY) == set(BINARY)


@pytest.mark.parametrize("op", UNARY)
def test_unary(op: str) -> None:
    x = (3 * random(1, 3, 7, 11)).astype("float32")
    _close(both_ways(8, lambda t: elementwise.unary(t, UNARY[op], "y"), x), NUMPY_UNARY[op](x.astype("float64")))


@pytest.mark.parametrize("op", UNARY)
def test_unary_is_finite_for_every_finite_number(op: str) -> None:
    """What stands in padded lanes meets zero weights: a NaN or infinity there would reach the output."""
    x = np.array([0.0, -0.0, 1.0, -1.0, 1e-38, -1e-38, 3.4e38, -3.4e38], "float32")
    y = both_ways(4, lambda t: elementwise.unary(t, UNARY[op], "y"), x)["elementwise"]
    assert np.isfinite(y).all(), dict(zip(x.tolist(), y.tolist(), strict=True))


@pytest.mark.parametrize("size", [1, 7, 8, 9, 16, 31, 64])
def test_sizes_around_a_vector(size: int) -> None:
    x = random(1, 2, size)
    _close(both_ways(8, lambda t: elementwise.unary(t, UNARY["relax.tanh"], "y"), x), np.tanh(x))


def test_large_tensor_runs_in_parallel() -> None:
    x = random(1, 5, 67, 64)  # more than schedule.elementwise.PARALLEL_ELEMENTS
    _close(both_ways(4, lambda t: elementwise.unary(t, UNARY["relax.nn.relu"], "y"), x), np.maximum(x, 0))


INF = float("inf")


@pytest.mark.parametrize(("low", "high"), [(0.0, 6.0), (-INF, 1.5), (-1.0, INF), (-INF, INF), (2.0, 2.0)])
def test_clip(low: float, high: float) -> None:
    x = (4 * random(1, 40)).astype("float32")
    results = both_ways(8, lambda t: elementwise.unary(t, elementwise.clip(low, high), "y"), x)
    for y in results.values():
        assert np.array_equal(y, x.clip(low, high))


def test_leaky_relu() -> None:
    x = random(1, 5, 8)
    _close(
        both_ways(8, lambda t: elementwise.unary(t, elementwise.leaky_relu(0.1), "y"), x), np.where(x > 0, x, 0.1 * x)
    )


@pytest.mark.parametrize("op", BINARY)
def test_binary_of_one_shape(op: str) -> None:
    x, y = random(1, 3, 13), random(2, 3, 13) + 3
    _close(both_ways(8, lambda a, b: elementwise.binary(a, b, BINARY[op], "z"), x, y), NUMPY_BINARY[op](x, y))


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("op", ["relax.subtract", "relax.divide"])
def test_scalar_on_either_side(op: str, swapped: bool) -> None:
    x = random(1, 2, 9) + 4
    expected = NUMPY_BINARY[op](2.5, x) if swapped else NUMPY_BINARY[op](x, 2.5)
    _close(both_ways(8, lambda t: elementwise.with_scalar(t, 2.5, BINARY[op], swapped, "y"), x), expected)


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(("v", "n", "small_n"), [(4, 2, 1), (8, 2, 2), (8, 1, 1)])
def test_channel_vector(v: int, n: int, small_n: int, swapped: bool) -> None:
    c, image = v + 3, (3, 5)
    x, y = random(1, n, c, *image), random(2, small_n, c, 1, 1)
    fn = BINARY["relax.subtract"]
    results = both_ways(
        v, lambda a, b: elementwise.with_channels(a, b, fn, swapped, "z"), reference_pack(x, v), reference_pack(y, v)
    )
    _close({how: reference_unpack(z, c, *image) for how, z in results.items()}, y - x if swapped else x - y)


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(("v", "n", "small_n"), [(4, 2, 1), (8, 2, 2), (8, 1, 1)])
def test_plane(v: int, n: int, small_n: int, swapped: bool) -> None:
    c, image = v + 3, (3, 5)
    x, y = random(1, n, c, *image), random(2, small_n, 1, *image)
    fn = BINARY["relax.subtract"]
    results = both_ways(v, lambda a, b: elementwise.with_plane(a, b, fn, swapped, "z"), reference_pack(x, v), y)
    _close({how: reference_unpack(z, c, *image) for how, z in results.items()}, y - x if swapped else x - y)


def test_operands_may_differ_by_a_block_of_padding() -> None:
    """A convolution makes an odd count of blocks even, packing an input does not: nothing is read beyond either."""
    x, y = random(1, 1, 2, 6, 8), random(2, 1, 3, 6, 8)
    for a, b in ((x, y), (y, x)):
        for z in both_ways(8, lambda s, t: elementwise.binary(s, t, BINARY["relax.add"], "z"), a, b).values():
            assert np.array_equal(z, a[:, :2] + b[:, :2])
    for how, z in both_ways(
        8, lambda s, t: elementwise.with_channels(s, t, BINARY["relax.add"], False, "z"), y, x[:, :, :1]
    ).items():
        assert np.array_equal(z, y[:, :2] + x[:, :, :1]), how
