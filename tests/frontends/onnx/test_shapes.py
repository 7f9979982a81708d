"""Static shapes of inputs: from the file, from --shape, from names that inputs share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx_models import graph, info, node

from xnncc.errors import BadModel, ShapeError, UnsupportedModel
from xnncc.frontends.onnx.shapes import static_inputs

PATH = Path("m.onnx")


def declared(**dims):
    inputs = [info(name, shape=shape) for name, shape in dims.items()]
    return graph([node("Identity", ["x"], ["y"])], inputs, [info("y")])


def shapes_of(dims, given=None):
    return [i.shape for i in static_inputs(PATH, declared(**dims), given or {})]


def refusal(dims, given=None) -> str:
    with pytest.raises(ShapeError) as found:
        shapes_of(dims, given)
    return str(found.value)


def test_fixed_shapes_need_nothing():
    assert shapes_of({"x": [1, 3], "s": []}) == [(1, 3), ()]


def test_given_shapes_fill_free_dimensions():
    assert shapes_of({"x": ["N", 3, None, -1]}, {"x": (2, 3, 8, 9)}) == [(2, 3, 8, 9)]
    assert shapes_of({"x": None}, {"x": (4,)}) == [(4,)]


def test_a_name_is_one_number_in_the_whole_model():
    ids = {"ids": ["batch", "seq"], "mask": ["batch", "seq"], "state": [2, "batch", 8]}
    assert shapes_of(ids, {"ids": (1, 32)}) == [(1, 32), (1, 32), (2, 1, 8)]
    found = refusal(ids, {"ids": (1, 32), "mask": (2, 32)})
    assert (
        found
        == "--shape mask=2,32: dimension 'batch' is 2 here and 1 in 'ids'. One name is one number in the whole model."
    )


def test_free_dimensions_show_the_flags_to_type():
    found = refusal({"x": ["batch", 3, "h", "w"], "m": [2, "batch"], "s": ["n"]})
    assert found == (
        "m.onnx: input 'x' is [batch, 3, h, w], input 'm' is [2, batch], input 's' is [n]: "
        "xnncc builds for fixed shapes. "
        "Type for example: --shape x=1,3,224,224 --shape m=2,32 --shape s=1"
    )


def test_wrong_name_suggests_the_near_one():
    found = refusal({"image": [1, "n"]}, {"imgae": (1, 2)})
    assert found == "--shape imgae: m.onnx has no such input; did you mean 'image'? Inputs: 'image'."


def test_shape_that_contradicts_the_file():
    found = refusal({"x": ["N", 3, 4]}, {"x": (1, 4, 4)})
    assert found == "--shape x=1,4,4: does not fit input 'x' of m.onnx, which is [N, 3, 4]. Type --shape x=1,3,4."
    assert "does not fit" in refusal({"x": ["N", 3]}, {"x": (1, 3, 1)})


@pytest.mark.parametrize("shape", [(0, 3), (-1, 3), (1,) * 9, (2**20, 2**20)])
def test_impossible_shapes(shape):
    assert "each at least 1" in refusal({"x": None}, {"x": shape})


def test_inputs_that_are_weights_are_none():
    model = graph(
        [node("Identity", ["x"], ["y"])], [info("x", shape=[1]), info("w", shape=["q"])], [info("y")], {"w": np.ones(2)}
    )
    assert [i.name for i in static_inputs(PATH, model, {})] == ["x"]


def test_inputs_that_cannot_be_built():
    text = graph([], [onnx.helper.make_tensor_value_info("t", onnx.TensorProto.STRING, [1])], [info("y")])
    with pytest.raises(UnsupportedModel, match="input 't' has dtype string"):
        static_inputs(PATH, text, {})
    sequence = graph([], [onnx.helper.make_tensor_sequence_value_info("q", 1, [1])], [info("y")])
    with pytest.raises(UnsupportedModel, match="input 'q' is a sequence, not a tensor"):
        static_inputs(PATH, sequence, {})
    with pytest.raises(BadModel, match="two inputs are called 'x'"):
        static_inputs(PATH, graph([], [info("x", shape=[1]), info("x", shape=[1])], [info("y")]), {})
