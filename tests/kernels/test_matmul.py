"""Matrix products with packed weights, and of two activations by batch, against float64 numpy."""

from __future__ import annotations

import pytest
from kernel_running import both_ways, random, relative_error

from xnncc.kernels.conv2d import pack_vector
from xnncc.kernels.matmul import f32_bmm, f32_gemm, f32_gemv, pack_matmul_weights, reference_matmul

TOLERANCE = 2e-6  # at most 300 products in a sum


@pytest.mark.parametrize(
    ("v", "k", "n"), [(8, 1, 1), (8, 4, 7), (8, 13, 8), (8, 300, 9), (4, 16, 5), (4, 31, 64), (8, 20, 1001)]
)
def test_vector_times_weights(v: int, k: int, n: int) -> None:
    x, w, b = random(1, 1, k), random(2, k, n), random(3, n)
    inputs = x, pack_matmul_weights(w, v), pack_vector(b, v, -(-n // v))
    for how, y in both_ways(v, lambda *t: f32_gemv(*t, n), *inputs).items():
        assert relative_error(y, reference_matmul(x, w, b)) < TOLERANCE, how


@pytest.mark.parametrize(
    ("v", "m", "k", "n"),
    [(8, 2, 1, 8), (8, 6, 5, 16), (8, 7, 12, 9), (8, 13, 12, 24), (8, 14, 300, 7), (4, 5, 9, 8), (4, 29, 7, 13)],
)
def test_rows_times_weights(v: int, m: int, k: int, n: int) -> None:
    x, w, b = random(1, m, k), random(2, k, n), random(3, n)
    inputs = x, pack_matmul_weights(w, v), pack_vector(b, v, -(-n // v))
    for how, y in both_ways(v, lambda *t: f32_gemm(*t), *inputs).items():
        assert relative_error(y[:, :n], reference_matmul(x, w, b)) < TOLERANCE, how
        assert not y[:, n:].any(), f"{how}: columns beyond the last are not zero"


@pytest.mark.parametrize(
    ("v", "b", "m", "k", "n"),
    [(8, 1, 1, 1, 1), (8, 2, 6, 5, 8), (8, 3, 7, 12, 9), (8, 1, 13, 64, 31), (4, 4, 5, 9, 4), (4, 2, 29, 7, 13)],
)
def test_activations_by_batch(v: int, b: int, m: int, k: int, n: int) -> None:
    x, y = random(1, b, m, k), random(2, b, k, n)
    for how, z in both_ways(v, lambda *t: f32_bmm(*t, v), x, y).items():
        assert relative_error(z, reference_matmul(x, y)) < TOLERANCE, how


def test_packed_weights_hold_columns_in_lanes() -> None:
    w = random(1, 3, 5)
    packed = pack_matmul_weights(w, 4)
    assert packed.shape == (2, 3, 4)
    assert (packed[0] == w[:, :4]).all() and (packed[1, :, 0] == w[:, 4]).all() and not packed[1, :, 1:].any()
