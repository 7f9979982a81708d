"""Gather and its kin against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import const, random

X = random(4, 5, 3)


def at(*values, dtype: str = "int64") -> const:
    return const(np.array(values, dtype))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize(
    "indices", [np.array(1), np.array(-1), np.array([0, 2]), np.array([2, 0, -1]), np.array([[0, 1], [2, 0]])]
)
def test_gather_at_constants(matches, axis, indices):
    matches("Gather", X, const(indices), axis=axis)


def test_gather_in_even_steps_is_a_slice(matches, operators):
    assert operators(matches("Gather", X, const(np.array(2)))) == ["strided_slice", "reshape"]
    assert operators(matches("Gather", X, at(0, 2, 4), axis=1)) == ["strided_slice"]
    assert operators(matches("Gather", X, at(0, 1, 2, 3))) == []
    assert operators(matches("Gather", X, at(3, 1))) == ["take"]


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_gather_at_run_time(matches, dtype):
    matches("Gather", const(X), np.array([[1, -1], [3, 0]], dtype))


def test_gather_refuses_constants_out_of_range(refuses):
    assert "indices [9] are out of range for dimension 0 of size 4" in refuses("Gather", X, at(9))


def test_gather_elements(matches):
    matches("GatherElements", X, const(np.array([[[0, -1, 2]]])), axis=1)
    matches("GatherElements", X, np.array([[[0, -1, 2]]]), axis=1)


@pytest.mark.parametrize(
    ("indices", "batch"),
    [([[0, 1], [3, -1]], 0), ([[0], [3]], 0), ([[[0, 1, 2]]], 0), ([[[0, 1]], [[4, 2]], [[1, 0]], [[-1, 1]]], 1),
     ([[1], [2], [-3], [0]], 1)],
)  # fmt: skip
def test_gather_nd(matches, indices, batch):
    matches("GatherND", X, const(np.array(indices)), batch_dims=batch)
    matches("GatherND", X, np.array(indices), batch_dims=batch)


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_one_hot(matches, axis):
    matches("OneHot", np.array([[0, 2], [-1, 1]]), const(np.array(3)), const(np.array([-1.0, 2.0])), axis=axis)


@pytest.mark.parametrize("operator", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize(
    "attributes", [{}, {"axis": 1}, {"axis": -1, "keepdims": 0}, {"axis": 1, "select_last_index": 1}]
)
def test_arg_extremes(matches, operator, attributes):
    matches(operator, np.round(X), **attributes)


@pytest.mark.parametrize("attributes", [{}, {"exclusive": 1}, {"reverse": 1}, {"reverse": 1, "exclusive": 1}])
def test_cum_sum(matches, attributes):
    matches("CumSum", X, const(np.array(1)), **attributes)


def test_axis_out_of_range_is_named(refuses):
    assert "axis 5 is out of range for 3 dimensions" in refuses("Gather", X, at(0), axis=5)
    assert "axis is input 'x1', whose value a build needs" in refuses("CumSum", X, np.array(1))
