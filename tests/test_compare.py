"""compare: what counts as the same, and the words for what does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from xnncc.compare import compare, unpack

F = np.float32


def _f(*values: float) -> np.ndarray:
    return np.array(values, F)


def test_equal_tensors_pass_with_zero_difference() -> None:
    found = compare("y", _f(1, -2), _f(1, -2), 1e-4)
    assert (found.passed, found.max_abs, found.max_relative, found.mean_abs, found.reference_max) == (True, 0, 0, 0, 2)


def test_difference_is_relative_to_the_largest_reference_value() -> None:
    found = compare("y", _f(100, 0.005), _f(100, 0), 1e-4)
    assert found.passed
    assert found.max_relative == pytest.approx(5e-5, rel=1e-6)
    assert found.mean_abs == pytest.approx(0.0025, rel=1e-6)


def test_the_tolerance_itself_still_passes() -> None:
    assert compare("y", np.array([1.0001]), np.array([1.0]), 1.1e-4).passed
    assert not compare("y", np.array([1.0001]), np.array([1.0]), 0.9e-4).passed


@pytest.mark.parametrize("reference", [_f(0, 0), _f(1e-5, 0)])
def test_a_small_reference_allows_1e_6_absolute(reference: np.ndarray) -> None:
    assert compare("y", reference + F(0.9e-6), reference, 1e-4).passed
    assert not compare("y", reference + F(1.2e-6), reference, 1e-4).passed


def test_says_where_the_largest_difference_is() -> None:
    found = compare("y", np.array([[1, 2], [3, 9]], F), np.array([[1, 2], [3, 4]], F), 1e-4)
    assert found.problem == "at [1, 1]: 9.0 instead of 4.0"
    assert found.sentence == "relative difference 1.2e+00, at [1, 1]: 9.0 instead of 4.0"


@pytest.mark.parametrize(
    ("actual", "problem"),
    [
        (_f(1, 2, 3), "shape [3], the reference has [2]"),
        (np.array([1, 2], np.float64), "dtype float64, the reference has float32"),
        (_f(np.nan, 2), "NaN: 1 values, 0 in the reference; first at [0], of 2"),
        (_f(1, np.inf), "+infinity: 1 values, 0 in the reference; first at [1], of 2"),
        (_f(1, -np.inf), "-infinity: 1 values, 0 in the reference; first at [1], of 2"),
    ],
)
def test_names_what_is_not_a_matter_of_size(actual: np.ndarray, problem: str) -> None:
    found = compare("y", actual, _f(1, 2), 1e9)
    assert not found.passed
    assert found.problem == problem


def test_a_missing_nan_is_a_difference_too() -> None:
    assert (
        compare("y", _f(1, 2), _f(np.nan, 2), 1e-4).problem == "NaN: 0 values, 1 in the reference; first at [0], of 2"
    )


def test_nan_and_infinity_at_the_same_places_are_left_out() -> None:
    found = compare("y", _f(np.nan, np.inf, -np.inf, 2), _f(np.nan, np.inf, -np.inf, 2), 1e-4)
    assert found.passed
    assert found.reference_max == 2


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.bool_])
def test_integers_and_bools_must_be_equal(dtype: type) -> None:
    ones, other = np.ones(5, dtype), np.ones(5, dtype)
    other[3] = 0
    assert compare("y", ones, ones, 1e-4).passed
    found = compare("y", other, ones, 1.0)
    assert not found.passed
    assert found.problem.startswith("1 of 5 integers differ; at [3]: ")


def test_small_unsigned_numbers_do_not_wrap() -> None:
    assert compare("y", np.array([0], np.uint8), np.array([255], np.uint8), 1e-4).max_abs == 255


@pytest.mark.parametrize("shape", [(), (0, 3)])
def test_scalars_and_empty_tensors(shape: tuple[int, ...]) -> None:
    assert compare("y", np.zeros(shape, F), np.zeros(shape, F), 1e-4).passed


def _region(shape: tuple[int, ...], layout: str, dtype: str = "float32") -> dict[str, Any]:
    return {"shape": list(shape), "layout": layout, "dtype": dtype}


def test_unpack_plain_ignores_bytes_behind_the_tensor() -> None:
    values = np.arange(6, dtype=F).reshape(2, 3)
    raw = np.concatenate([values.reshape(-1).view(np.uint8), np.full(40, 255, np.uint8)])
    np.testing.assert_array_equal(unpack(raw, _region((2, 3), "plain")), values)


@pytest.mark.parametrize("shape", [(1, 3, 5, 7), (2, 8, 4, 4), (1, 17, 1, 1), (1, 16, 9), (2, 5)])
@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_unpack_undoes_packing(shape: tuple[int, ...], lanes: int) -> None:
    logical = np.random.default_rng(0).standard_normal(shape).astype(F)
    batch, channels = shape[:2]
    blocks = -(-channels // lanes)
    flat = np.zeros((batch, blocks * lanes, int(np.prod(shape[2:]))), F)
    flat[:, :channels] = logical.reshape(batch, channels, -1)
    packed = flat.reshape(batch, blocks, lanes, -1).transpose(0, 1, 3, 2)
    raw = np.frombuffer(packed.tobytes(), np.uint8)
    np.testing.assert_array_equal(unpack(raw, _region(shape, f"NCHW{lanes}c")), logical)
