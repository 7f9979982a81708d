"""The polynomials against Python's math module in float64, over their whole range, and at its ends."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from kernel_running import both_ways

from xnncc.kernels import math as ours
from xnncc.kernels.elementwise import unary

INF = float("inf")


def _values(fn: Callable, x: np.ndarray) -> np.ndarray:
    """Return ``fn`` of ``x``, scheduled; the unscheduled kernel says the same to a rounding."""
    results = both_ways(8, lambda t: unary(t, fn, "y"), x)
    np.testing.assert_allclose(results["elementwise"], results["unscheduled"], rtol=5e-7, atol=0)  # FMA or not
    return results["elementwise"].astype("float64")


def _exactly(fn: Callable[[float], float], x: np.ndarray) -> np.ndarray:
    return np.array([fn(float(v)) for v in x])


def _range(low: float, high: float) -> np.ndarray:
    """Return 4096 evenly spaced numbers and 1024 that crowd at zero, and both ends."""
    small = np.geomspace(1e-30, max(abs(low), abs(high)), 512)
    x = np.concatenate([np.linspace(low, high, 4096), small, -small]).clip(low, high)
    return x.astype("float32")


def test_exp_is_right_to_three_units_in_the_last_place() -> None:
    x = _range(-87, 88)
    error = np.abs(_values(ours.exp, x) / _exactly(math.exp, x) - 1)
    assert error.max() < 2.5e-7  # the docstring's 2e-7, and the rounding of the constants


def test_exp_is_clamped_beyond_its_range() -> None:
    x = np.array([88.5, 1e4, 3e38, INF, -87.8, -1e4, -3e38, -INF], "float32")
    y = _values(ours.exp, x)
    assert np.allclose(y[:4], math.exp(88), rtol=3e-7)
    assert np.array_equal(y[4:], np.zeros(4))  # so that a softmax over nothing but -inf is NaN, as it should be


def test_exp_of_nan_is_nan() -> None:
    assert np.isnan(_values(ours.exp, np.array([np.nan, np.nan], "float32"))).all()


def test_exp_of_zero_is_one() -> None:
    assert np.array_equal(_values(ours.exp, np.array([0.0, -0.0], "float32")), [1, 1])


def test_sigmoid() -> None:
    x = _range(-80, 80)
    exact = 1 / (1 + _exactly(lambda v: math.exp(-v), x))
    y = _values(ours.sigmoid, x)
    assert np.abs(y / exact - 1).max() < 5e-7  # exp, one addition, one division
    assert y.min() >= 0 and y.max() <= 1


def test_sigmoid_saturates() -> None:
    y = _values(ours.sigmoid, np.array([100, 3e38, INF, -100, -3e38, -INF], "float32"))
    assert np.array_equal(y[:3], [1, 1, 1])
    assert (y[3:] >= 0).all() and (y[3:] < 1e-37).all()


@pytest.mark.parametrize(
    ("mine", "exact", "edge"), [(ours.tanh, math.tanh, 12.0), (ours.erf, math.erf, 6.0)], ids=["tanh", "erf"]
)
def test_tanh_and_erf_stay_within_4e_7(mine: Callable, exact: Callable[[float], float], edge: float) -> None:
    x = _range(-edge, edge)
    y = _values(mine, x)
    assert np.abs(y - _exactly(exact, x)).max() < 4e-7
    assert np.abs(y).max() <= 1 + 1e-6


@pytest.mark.parametrize("fn", [ours.tanh, ours.erf], ids=["tanh", "erf"])
def test_tanh_and_erf_saturate_and_are_odd(fn: Callable) -> None:
    y = _values(fn, np.array([100, 3e38, INF, -100, -3e38, -INF, 0, 0], "float32"))
    assert np.allclose(y, [1, 1, 1, -1, -1, -1, 0, 0], atol=4e-7)
    x = _range(0, 5)
    assert np.array_equal(_values(fn, x), -_values(fn, -x))


def test_horner_starts_with_the_highest_power() -> None:
    y = _values(lambda x: ours.horner(x, (2.0, 3.0, 5.0)), np.array([0, 1, 2, -1], "float32"))
    assert np.array_equal(y, [5, 10, 19, 4])
