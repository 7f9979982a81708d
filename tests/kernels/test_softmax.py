"""Softmax along rows of every length, against float64 numpy."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_running import both_ways, random

from xnncc.kernels.softmax import f32_softmax, reference_softmax


@pytest.mark.parametrize(
    ("lanes", "shape"),
    [(8, (1, 1)), (8, (3, 7)), (8, (2, 8)), (8, (1, 1000)), (8, (2, 3, 17)), (8, (5, 64)), (8, (2, 1001)), (4, (3, 5)),
     (4, (1, 37)), (4, (2, 2, 2, 12)), (8, (3, 197)), (16, (2, 196)), (16, (3, 577))],
)  # fmt: skip
def test_rows(lanes: int, shape: tuple[int, ...]) -> None:
    x = (5 * random(1, *shape)).astype("float32")
    for how, y in both_ways(lanes, lambda t: f32_softmax(t, lanes), x).items():
        # exp is right to 2e-7 of itself, the sum of a row to a little more
        np.testing.assert_allclose(y, reference_softmax(x), rtol=2e-6, atol=1e-9, err_msg=how)


def test_large_numbers_do_not_overflow() -> None:
    x = np.array([[1e30, 1e30, -1e30, 0], [-3e38, -3e38, -3e38, -3e38]], "float32")
    for how, y in both_ways(8, lambda t: f32_softmax(t, 8), x).items():
        np.testing.assert_allclose(y, [[0.5, 0.5, 0, 0], [0.25] * 4], atol=1e-7, err_msg=how)


def test_masked_places_get_next_to_nothing() -> None:
    x = np.array([[0.0, -np.inf, 1.0, -np.inf, -3.4e38]], "float32")
    for how, y in both_ways(8, lambda t: f32_softmax(t, 8), x).items():
        np.testing.assert_allclose(y, reference_softmax(x), atol=1e-7, err_msg=how)
