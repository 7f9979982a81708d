"""Samples are kept apart, and files that do not fit are refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from xnncc.compress.data import split
from xnncc.compress.result import Samples
from xnncc.errors import BadInput
from xnncc.ir.plan import TensorInfo

INPUTS = (TensorInfo("data", (1, 4), "float32"),)


def _rows(count: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {"data": rng.standard_normal((count, 4)).astype("float32"), "labels": np.arange(count)}


def _ids(samples: Samples | None) -> set[bytes]:
    return set() if samples is None else {row.tobytes() for row in samples.inputs["data"]}


@pytest.mark.parametrize(
    ("given", "is_searched", "sizes"),
    [
        ({}, False, (0, 0, 0, 0)),
        ({"judge": 200}, False, (0, 0, 0, 200)),
        ({"judge": 200}, True, (0, 0, 100, 100)),
        ({"calib": 64, "judge": 200}, False, (64, 0, 0, 200)),
        ({"calib": 64}, False, (56, 0, 0, 8)),
        ({"calib": 64}, True, (45, 0, 11, 8)),
        ({"train": 1000, "judge": 200}, True, (900, 900, 100, 200)),
        ({"train": 1000}, True, (788, 788, 100, 112)),
        ({"calib": 64, "train": 1000, "judge": 200}, True, (64, 900, 100, 200)),
    ],
)
def test_parts_and_their_sizes(given: dict[str, int], is_searched: bool, sizes: tuple[int, ...]) -> None:
    files: dict[str, Any] = {flag: _rows(count, seed) for seed, (flag, count) in enumerate(given.items())}
    parts = split(INPUTS, files.get("calib"), files.get("train"), files.get("judge"), is_searched=is_searched, seed=0)
    assert tuple(parts.sizes.values()) == sizes
    for one, other in (
        ("train", "select"),
        ("train", "test"),
        ("select", "test"),
        ("calib", "select"),
        ("calib", "test"),
    ):
        assert not _ids(getattr(parts, one)) & _ids(getattr(parts, other)), (one, other)


def test_labels_stay_with_their_samples_and_seeds_choose() -> None:
    parts = split(INPUTS, None, _rows(100, 0), None, is_searched=True, seed=3)
    rows = _rows(100, 0)["data"]
    assert parts.select is not None and parts.select.labels is not None
    assert all(
        (rows[label] == row).all() for label, row in zip(parts.select.labels, parts.select.inputs["data"], strict=True)
    )
    again = split(INPUTS, None, _rows(100, 0), None, is_searched=True, seed=3)
    other = split(INPUTS, None, _rows(100, 0), None, is_searched=True, seed=4)
    assert _ids(again.select) == _ids(parts.select) != _ids(other.select)


def test_a_sample_in_two_files_is_refused() -> None:
    judge = _rows(20, 1)
    judge["data"][3] = _rows(20, 0)["data"][7]
    with pytest.raises(BadInput, match="1 of its samples are in --train too"):
        split(INPUTS, None, _rows(20, 0), judge, is_searched=False, seed=0)


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"dat": np.zeros((3, 4), "float32")}, "no such input; did you mean 'data'"),
        ({"labels": np.zeros(3)}, "input 'data' is missing"),
        ({"data": np.zeros((3, 5), "float32")}, r"samples of \[5\], the model takes \[4\]"),
        ({"data": np.zeros((3, 4))}, "dtype float64"),
        ({"data": np.full((3, 4), np.nan, "float32")}, "NaN or infinity"),
        ({"data": np.zeros((3, 4), "float32"), "labels": np.zeros(2)}, "different numbers of samples"),
        ({"data": np.zeros((0, 4), "float32")}, "or none"),
    ],
)
def test_files_that_do_not_fit(arrays: dict[str, np.ndarray], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        split(INPUTS, arrays, None, None, is_searched=False, seed=0)


def test_a_batch_of_one_may_stand_in_the_shape() -> None:
    arrays = {"data": np.zeros((3, 1, 4), "float32")}
    parts = split(INPUTS, None, None, arrays, is_searched=False, seed=0)
    assert parts.test is not None and parts.test.inputs["data"].shape == (3, 4)
