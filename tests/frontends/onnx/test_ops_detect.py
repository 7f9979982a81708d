"""NonMaxSuppression with fixed rows: the standard's boxes, -1 behind them; refused without the flag."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import Feeds, const, info, model, node, one_node, random, runtime

from xnncc.errors import BadInput

RNG = np.random.default_rng(4)
MIDDLE, SIDES = RNG.uniform(0, 10, (2, 30, 2)), RNG.uniform(1, 6, (2, 30, 2))
SCORES = np.round(RNG.uniform(0, 1, (2, 3, 30)), 2).astype("float32")  # rounded: some are equal


def boxes(is_centre: bool) -> np.ndarray:
    corners = np.concatenate([MIDDLE + SIDES, MIDDLE - SIDES], 2)  # the high corner first: any two opposite ones do
    return (np.concatenate([MIDDLE, SIDES], 2) if is_centre else corners).astype("float32")


def case(is_centre: bool = False, most: int = 5, overlap: float = 0.4, score: float = 0.2) -> tuple[object, Feeds]:
    limits = (const(np.array([most])), const([overlap], "float32"), const([score], "float32"))
    return one_node("NonMaxSuppression", boxes(is_centre), SCORES, *limits, opset=11, center_point_box=int(is_centre))


@pytest.mark.parametrize("is_centre", [False, True])
@pytest.mark.parametrize("rows", [1, 7, 40])
def test_rows_are_the_standards_and_the_rest_is_minus_one(load, is_centre, rows):
    made, feeds = case(is_centre)
    imported = load(made, feeds, nms_rows=rows)  # compared with onnxruntime there
    (theirs,) = runtime(made, feeds)
    ours = imported.reference(feeds)["y0"]
    found = min(rows, len(theirs))
    assert imported.outputs[0].shape == (rows, 3)
    assert (ours[:found] == theirs[:found]).all() and (ours[found:] == -1).all()
    assert imported.check.max_relative_error == 0
    assert f"exactly {rows} rows" in imported.warnings[0]


@pytest.mark.parametrize("case_", [case(most=0), case(most=100, overlap=0.0), case(score=2.0), case(overlap=1.0)])
def test_limits(load, case_):
    assert load(*case_, nms_rows=50).check.max_relative_error == 0


def test_what_reads_the_boxes_sees_the_same_rows(load):
    made, feeds = case()
    first = made.graph.node[0]
    nodes = [first, node("Gather", ["y0", "two"], ["z"], axis=1), node("Relu", ["zf"], ["r"])]
    nodes.insert(2, node("Cast", ["z"], ["zf"], to=1))
    weights = {tensor.name: __import__("onnx").numpy_helper.to_array(tensor) for tensor in made.graph.initializer}
    inputs = [info(name, array) for name, array in feeds.items()]
    whole = model(nodes, inputs, [info("r", shape=["boxes"])], {**weights, "two": np.array(2)}, 11)
    assert load(whole, feeds, nms_rows=12).check.max_relative_error == 0


def test_without_the_flag_it_is_refused_with_the_number_to_type(refuses):
    limits = (const(np.array([5])), const([0.4], "float32"))
    words = refuses("NonMaxSuppression", boxes(False), SCORES, *limits, opset=11)
    assert "its number of boxes is known only at run time" in words and "--nms-rows 30" in words


def test_the_flag_needs_a_nonmaxsuppression_and_a_row(load):
    with pytest.raises(BadInput, match="has no NonMaxSuppression"):
        load(*one_node("Relu", random(3)), nms_rows=5)
    with pytest.raises(BadInput, match="a tensor has at least one row"):
        load(*case(), nms_rows=0)
