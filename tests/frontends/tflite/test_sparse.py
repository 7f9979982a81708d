"""Sparse constants of every arrangement become the dense arrays that they stand for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tflite_models import Out, T, const, one_operator

from xnncc.errors import BadModel
from xnncc.frontends.evaluate import evaluate
from xnncc.frontends.imported import Imported
from xnncc.frontends.tflite.flatbuffer import Malformed
from xnncc.frontends.tflite.sparse import Level, Sparsity, densify

DENSE = np.array([[0, 1, 0, 2], [0, 0, 0, 0], [3, 0, 0, 4]], "float32")
SEGMENTS, INDICES = [0, 2, 2, 4], [1, 3, 0, 3]


def _csr(size: int = 3) -> Sparsity:
    return Sparsity((0, 1), (), (Level(size), Level(0, np.array(SEGMENTS), np.array(INDICES))))


def test_last_dimension_compressed() -> None:
    assert np.array_equal(densify(np.array([1, 2, 3, 4], "float32"), (3, 4), _csr()), DENSE)


def test_all_dense_in_another_order() -> None:
    sparsity = Sparsity((1, 0), (), (Level(4), Level(3)))
    assert np.array_equal(densify(DENSE.T.reshape(-1), (3, 4), sparsity), DENSE)


def test_first_dimension_compressed() -> None:
    sparsity = Sparsity((0, 1), (), (Level(0, np.array([0, 2]), np.array([0, 2])), Level(4)))
    assert np.array_equal(densify(DENSE[[0, 2]].reshape(-1), (3, 4), sparsity), DENSE)


def test_blocks_of_two_by_two() -> None:
    dense = np.zeros((4, 6), "float32")
    dense[0:2, 2:4], dense[2:4, 4:6] = [[1, 2], [3, 4]], [[5, 6], [7, 8]]
    levels = (Level(2), Level(0, np.array([0, 1, 2]), np.array([1, 2])), Level(2), Level(2))
    sparsity = Sparsity((0, 1, 2, 3), (0, 1), levels)
    assert np.array_equal(densify(np.arange(1, 9, dtype="float32"), (4, 6), sparsity), dense)


@pytest.mark.parametrize(
    ("sparsity", "values"),
    [
        (_csr(), 3),
        (_csr(2), 4),
        (Sparsity((0, 2), (), _csr().levels), 4),
        (Sparsity((0, 1), (), (Level(3),)), 4),
        (Sparsity((0, 1), (), (Level(3), Level(0, np.array(SEGMENTS), np.array([1, 3, 0, 4])))), 4),
        (Sparsity((0, 1), (), (Level(3), Level(0, np.array([0, 9, 2, 4]), np.array(INDICES)))), 4),
        (Sparsity((0, 1), (), (Level(2**30), Level(2**30))), 4),
        (Sparsity((0, 1, 2), (5,), (*_csr().levels, Level(1))), 4),
        (Sparsity((0, 1), (), (Level(-1), Level(4))), 4),
    ],
)
def test_what_does_not_fit_is_refused(sparsity: Sparsity, values: int) -> None:
    with pytest.raises(Malformed, match="sparse tensor"):
        densify(np.ones(values, "float32"), (3, 4), sparsity)


def _file(segments: list[int]) -> tuple[bytes, dict[str, np.ndarray]]:
    stored = (np.array([1, 2, 3, 4], "float16"), [0, 1], [], [3, (segments, INDICES)])
    weight = const(DENSE.astype("float16"), sparsity=stored)
    return one_operator("DENSIFY", weight, out=Out((3, 4), "float16"))


def test_a_sparse_file_is_read(load: Callable[..., Imported]) -> None:
    imported = load(_file(SEGMENTS)[0])
    assert np.array_equal(evaluate(imported.mod, [])[0][0], DENSE.astype("float16"))


def test_a_damaged_sparse_file_is_one_sentence(load: Callable[..., Imported]) -> None:
    with pytest.raises(BadModel, match="segments of a sparse tensor"):
        load(_file([0, 2, 2, 5])[0])


def test_densify_feeds_a_layer(load: Callable[..., Imported]) -> None:
    data, feeds = one_operator("FULLY_CONNECTED", T(np.ones((1, 4))), const(DENSE), None, out=Out((1, 3)))
    assert np.array_equal(evaluate(load(data, feeds).mod, list(feeds.values()))[0][0], [[3, 0, 7]])
