"""All unsupported operators are named at once, before anything is converted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx_models import graph, info, model, node, random

from xnncc.errors import UnsupportedModel
from xnncc.frontends.onnx.preflight import check_model
from xnncc.frontends.onnx.registry import CONVERTERS, converter

X = info("x", random(2))


def refusal(made) -> str:
    with pytest.raises(UnsupportedModel) as found:
        check_model(Path("m.onnx"), made)
    return str(found.value)


def test_names_every_operator_sorted():
    nodes = [node("FooA", ["x"], ["a"], name="l1"), node("FooB", ["a"], ["b"]), node("FooA", ["b"], ["c"], name="l2"),
             node("Foo", ["c"], ["y"], domain="mine")]  # fmt: skip
    assert refusal(model(nodes, [X], [info("y")])) == (
        "m.onnx: 3 operators are not supported: FooA (node 'l1', node 'l2'), FooB (node of tensor 'b'), mine.Foo "
        "(node of tensor 'y'). See docs/errors.md#unsupported-operator."
    )


def test_many_nodes_are_counted():
    nodes = [node("FooB", ["x"], [f"t{i}"], name=f"g{i}") for i in range(9)]
    assert "node 'g4' and 4 more)" in refusal(model(nodes, [X], [info("t8")]))


def test_constant_nodes_need_no_converter():
    nodes = [node("Range", ["a", "b", "c"], ["r"]), node("Shape", ["x"], ["s"]), node("Compress", ["s", "r"], ["t"]),
             node("Relu", ["x"], ["y"])]  # fmt: skip
    weights = dict.fromkeys("abc", np.array(1))
    assert check_model(Path("m"), model(nodes, [X], [info("y")], weights)) == 18


def test_random_operators_are_no_constants():
    made = model([node("RandomNormal", [], ["y"], shape=[2], name="noise")], [X], [info("y")])
    assert "RandomNormal (node 'noise')" in refusal(made)


def test_branches_count_only_when_both_may_be_taken():
    then = graph([node("FooB", ["x"], ["t"], name="inner")], [], [info("t")])
    other = graph([node("Relu", ["x"], ["e"])], [], [info("e")])
    made = model(
        [node("If", ["c"], ["y"], then_branch=then, else_branch=other)], [X], [info("y")], {"c": np.array(False)}
    )
    assert check_model(Path("m"), made) == 18
    del made.graph.initializer[:]
    made.graph.input.append(info("c", np.array(True)))
    assert "FooB (node 'inner')" in refusal(made)


@pytest.mark.parametrize(("opset", "words"), [(5, "opset 5"), (99, "opset 99"), (0, "opset not stated")])
def test_opset_out_of_range(opset, words):
    made = model([node("Relu", ["x"], ["y"])], [X], [info("y")], opset=opset)
    assert f"m.onnx: {words}; xnncc reads opset 6 to" in refusal(made)


def test_training_graphs_are_recognised():
    made = model([node("Adam", ["x"], ["y"], domain="ai.onnx.preview.training")], [X], [info("y")])
    assert "this is a training graph, export the network for inference" in refusal(made)


def test_an_operator_has_one_converter():
    with pytest.raises(ValueError, match="operator 'Relu' has two converters"):
        converter("Relu")(lambda n: n.expr(0))
    assert len(CONVERTERS) > 120
