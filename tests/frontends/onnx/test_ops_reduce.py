"""Reductions against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import const, random

X = random(2, 3, 4, low=0.1, high=2)
OPERATORS = ["ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2",
             "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"]  # fmt: skip


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("keepdims", [0, 1])
def test_axes_as_input(matches, operator, keepdims):
    matches(operator, X, const(np.array([-1, 0])), keepdims=keepdims)


@pytest.mark.parametrize("operator", OPERATORS)
def test_without_axes_everything_is_reduced(matches, operator):
    matches(operator, X)


@pytest.mark.parametrize("operator", [name for name in OPERATORS if name != "ReduceSum"])
def test_axes_as_attribute(matches, operator):
    matches(operator, X, axes=[1], opset=11)


def test_no_axes_may_mean_nothing(matches):
    matches("ReduceSum", X, const(np.zeros(0, "int64")), noop_with_empty_axes=1)


def test_mean_over_the_image_is_one_operator(matches, operators):
    assert operators(matches("ReduceMean", random(1, 3, 4, 4), const(np.array([2, 3])))) == ["mean"]


def test_integers_and_booleans(matches):
    matches("ReduceMax", np.array([[3, -1], [2, 7]], "int32"), const(np.array([1])))
    matches("ReduceSum", np.array([[3, -1], [2, 7]], "int64"), const(np.array([1])))
    matches("ReduceMax", np.array([[True, False], [False, False]]), const(np.array([1])), opset=20)


def test_log_sum_exp_does_not_overflow(matches):
    matches("ReduceLogSumExp", np.array([[500, 499], [-500, 3]], "float32"), const(np.array([1])))


def test_axes_at_run_time_are_named(refuses):
    assert "axes is input 'x1', whose value a build needs" in refuses("ReduceSum", X, np.array([1]))
    assert "axis 4 is out of range" in refuses("ReduceSum", X, const(np.array([4])))
