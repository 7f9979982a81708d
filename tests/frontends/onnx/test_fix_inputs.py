"""Inputs that are given at build time are constants, and no inputs any more."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import info, model, node, one_node, random

from xnncc.errors import BadInput, UnsupportedModel

X = random(2, 3, 4)
RESHAPE = one_node("Reshape", X, np.array([6, 4]))[0]


def test_a_fixed_shape_is_no_input(load):
    imported = load(RESHAPE, {"x0": X}, fixed={"x1": np.array([6, 4])})
    assert [i.name for i in imported.inputs] == ["x0"]
    assert imported.outputs[0].shape == (6, 4)
    assert imported.fixed["x1"].dtype == "int64" and imported.check.max_relative_error == 0


def test_a_model_that_needs_it_says_so(load):
    with pytest.raises(UnsupportedModel, match=r"shape is input 'x1', whose value a build needs\. Fix it: --fix x1="):
        load(RESHAPE, {"x0": X, "x1": np.array([6, 4])})


def test_what_is_computed_from_an_input_names_the_flag_too(load):
    nodes = [node("Mul", ["s", "s"], ["t"]), node("Reshape", ["x", "t"], ["y"])]
    made = model(nodes, [info("x", X), info("s", np.array([1]))], [info("y")])
    with pytest.raises(UnsupportedModel, match=r"shape \(tensor 't'\) is computed at run time.*--fix"):
        load(made, {"x": X, "s": np.array([1])})


@pytest.mark.parametrize("value", [np.array([6, 4], "int32"), np.array([6.0, 4.0]), np.array([6, 4], "int64")])
def test_whole_numbers_of_any_dtype_fit(load, value):
    assert load(RESHAPE, {"x0": X}, fixed={"x1": value}).fixed["x1"].tolist() == [6, 4]


def test_a_flat_list_fills_a_shape(load):
    made = one_node("Add", X, X)[0]
    fixed = load(made, {"x0": X}, fixed={"x1": np.arange(24)}).fixed["x1"]
    assert fixed.shape == (2, 3, 4) and fixed.dtype == "float32"


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("x9", np.array([1]), r"the model has no such input\. Inputs: 'x0', 'x1'"),
        ("x1", np.array([1.5, 2]), "its values do not fit int64"),
        ("x1", np.array([1, 2, 3]), r"values of shape \[3\], the model takes \[2\]"),
        ("x1", np.array([2**70, 1], "float64"), "its values do not fit int64"),
        ("x1", np.zeros(2**21, "int64"), "at most 1048576 can be fixed"),
    ],
)
def test_values_that_do_not_fit(load, name, value, words):
    with pytest.raises(BadInput, match=words):
        load(RESHAPE, {"x0": X}, fixed={name: value})


def test_only_for_onnx(tmp_path):
    from xnncc.frontends import load_model

    (tmp_path / "net.tflite").write_bytes(b"")
    with pytest.raises(BadInput, match="it is for ONNX models"):
        load_model(tmp_path / "net.tflite", fixed={"x": np.array([1])})
