"""Losses against values by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from xnncc.compress.metrics import load_metric
from xnncc.errors import CompressError

BEFORE = {"y": np.array([[3, 1, 2], [1, 3, 2], [1, 2, 3], [3, 2, 1]], "float32")}
AFTER = {"y": np.array([[3, 1, 2], [1, 3, 2], [1, 3, 2], [1, 2, 3]], "float32")}
LABELS = np.array([0, 1, 2, 1])


def _loss(name: str | None, before: dict = BEFORE, after: dict = AFTER, labels: np.ndarray | None = LABELS) -> float:
    return load_metric(name, before, labels).loss(before, after, labels)


def test_top1_and_top5() -> None:
    assert _loss("top1") == 0.75 - 0.5
    assert _loss("top5") == 0


def test_agreement_needs_no_labels() -> None:
    assert _loss("agreement", labels=None) == 0.5


def test_sqnr_is_the_energy_of_the_difference() -> None:
    before, after = {"a": np.array([[3.0, 4.0]])}, {"a": np.array([[3.0, 3.0]])}
    assert _loss("sqnr", before, after, None) == pytest.approx(1 / 25)
    assert _loss("sqnr", {"a": np.zeros((1, 2))}, {"a": np.ones((1, 2))}, None) == 1
    assert _loss("sqnr", before, {"a": np.array([[3.0, np.nan]])}, None) == float("inf")


def test_cosine() -> None:
    before, after = {"a": np.array([[1.0, 0], [0, 0]])}, {"a": np.array([[0.0, 2], [0, 0]])}
    assert _loss("cosine", before, after, None) == pytest.approx(0.5)  # opposite once, zeros that stayed once


@pytest.mark.parametrize(
    ("outputs", "labels", "name"),
    [
        (BEFORE, LABELS, "top1"),
        (BEFORE, None, "agreement"),
        ({"map": np.zeros((2, 1, 8, 8), "float32")}, None, "sqnr"),
        ({"a": np.zeros((2, 4), "float32"), "b": np.zeros((2, 4), "float32")}, None, "sqnr"),
        ({"box": np.zeros((2, 1), "float32")}, None, "sqnr"),
    ],
)
def test_the_default_is_what_fits(outputs: dict, labels: np.ndarray | None, name: str) -> None:
    assert load_metric(None, outputs, labels).name == name


def test_a_function_of_the_users(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def score(outputs, labels):\n    return float(outputs['y'].max())\n")
    assert _loss(f"{file}:score", {"y": np.array([[5.0]])}, {"y": np.array([[3.0]])}) == 2
    with pytest.raises(CompressError, match="has no function 'scor'"):
        _loss(f"{file}:scor")
    with pytest.raises(CompressError, match="there is no Python file"):
        _loss(f"{tmp_path}/other.py:score")


def test_mistakes_are_named() -> None:
    with pytest.raises(CompressError, match="did you mean 'cosine'"):
        _loss("cosin")
    with pytest.raises(CompressError, match="no labels"):
        _loss("top1", labels=None)
