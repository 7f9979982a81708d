"""Second-order compensation against brute force and plain rounding."""

from __future__ import annotations

import itertools

import numpy as np

from xnncc.compress.compensate import inverse_factor, output_error, round_with_compensation, walk_columns


def _problem(rows: int, n: int, groups: int = 1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(groups, n, max(n // 3, 1)))
    second = mix @ mix.swapaxes(1, 2) + 0.05 * np.eye(n)
    return rng.normal(size=(groups, rows, n)).astype("f"), second.astype("f")


def test_factor_is_the_root_of_the_inverse() -> None:
    _, second = _problem(1, 12, groups=3)
    u = inverse_factor(second, 0.0)
    np.testing.assert_allclose(u.swapaxes(1, 2) @ u @ second, np.broadcast_to(np.eye(12), (3, 12, 12)), atol=1e-3)
    assert not np.tril(u, -1).any()


def test_errors_are_a_fifth_of_plain_rounding_on_correlated_inputs() -> None:
    w, second = _problem(40, 150)  # more columns than one block
    steps = np.full((1, 40), 0.5, "f")
    q = round_with_compensation(w, second, steps, 0.01)
    plain = np.round(w / 0.5)
    assert output_error(w - 0.5 * q, second) < 0.2 * output_error(w - 0.5 * plain, second)


def test_comes_near_the_best_of_all_roundings() -> None:
    w, second = _problem(6, 7)
    steps = np.full((1, 6), 0.7, "f")
    q = round_with_compensation(w, second, steps, 1e-4)
    best = 0.0
    for row in range(6):
        around = [np.floor(w[0, row, c] / 0.7) + np.array([-1, 0, 1, 2]) for c in range(7)]
        tries = w[0, row] - 0.7 * np.array(list(itertools.product(*around)))
        best += float(np.einsum("tn,nm,tm->t", tries, second[0], tries).min()) / 6
    assert output_error(w - 0.7 * q, second) <= 2.5 * best
    assert output_error(w - 0.7 * np.round(w / 0.7), second) > 3 * best  # 3.9


def test_independent_inputs_are_rounded_plainly() -> None:
    w, _ = _problem(5, 9)
    q = round_with_compensation(w, np.eye(9, dtype="f")[None], np.full((1, 5), 0.3, "f"), 0.01)
    np.testing.assert_array_equal(q, np.round(w / np.float32(0.3)))


def test_a_cut_column_is_made_good_by_its_twin() -> None:
    w = np.array([[[1.0, 2.0]]], "f")
    second = np.array([[[1.0, 0.999], [0.999, 1.0]]], "f")
    cut = walk_columns(w, second, 0.0, lambda column, index, pivot: column * (index[:, None] != 0))
    np.testing.assert_allclose(cut, [[[0.0, 2.999]]], rtol=1e-4)


def test_columns_that_no_sample_touched_are_rounded_plainly() -> None:
    w, second = _problem(4, 8)
    second[:, 3] = second[:, :, 3] = 0
    q = round_with_compensation(w, second, np.full((1, 4), 0.5, "f"), 0.01)
    assert np.isfinite(q).all()
    np.testing.assert_array_equal(q[:, :, 3], np.round(w[:, :, 3] / np.float32(0.5)))


def test_moments_that_are_no_longer_positive_get_more_damping() -> None:
    second = np.array([[[1.0, 1.1], [1.1, 1.0]]], "f")
    assert np.isfinite(inverse_factor(second, 0.001)).all()
