"""The node loop: names, branches, and all problems of a model in one message."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import const, graph, info, model, node, one_node, random

from xnncc.errors import BadModel, UnsupportedModel

X = random(2, 3)


def variables(imported) -> list[str]:
    return [b.var.name for block in imported.mod["main"].body.blocks for b in block.bindings]


def test_variables_carry_the_tensors_names(load):
    nodes = [node("Conv", ["in/x:0", "w", "b"], ["a/b:0"]), node("Relu", ["a/b:0"], ["out.y;1"])]
    x = random(1, 2, 5, 5)
    made = model(nodes, [info("in/x:0", x)], [info("out.y;1")], {"w": random(3, 2, 3, 3), "b": random(3)})
    imported = load(made, {"in/x:0": x})
    assert variables(imported) == ["a/b:0#1", "a/b:0", "out.y;1"]
    assert imported.tensors == {"a/b:0", "out.y;1"}
    assert [i.name for i in imported.inputs] == ["in/x:0"] and [o.name for o in imported.outputs] == ["out.y;1"]
    assert [param.name for param in imported.mod["main"].params] == ["in/x:0"]
    traced = imported.reference_tensors({"in/x:0": x}, ["a/b:0", "nothing"])
    assert list(traced) == ["a/b:0"] and traced["a/b:0"].shape == (1, 3, 3, 3)


def test_outputs_are_a_tuple_even_of_one_and_may_be_inputs_or_constants(load, operators):
    assert load(*one_node("Relu", X)).mod["main"].ret_ty.fields[0].shape is not None
    passed = load(*one_node("Identity", X))
    assert operators(passed) == [] and passed.outputs[0].name == "y0"
    fixed = load(*one_node("Shape", X))
    assert fixed.outputs[0].dtype == "int64" and fixed.outputs[0].shape == (2,)


def test_integers_keep_their_width(load):
    imported = load(*one_node("Add", np.array([2**40]), const(np.array([2**41]))))
    assert imported.outputs[0].dtype == "int64" and imported.check.max_relative_error == 0


def _branches(then, other, condition, x=X):
    made = node("If", ["c"], ["y"], name="choice", then_branch=then, else_branch=other)
    return made, [info("x", x), *([] if condition is None else [info("c", condition)])]


def test_if_with_constant_condition_is_the_branch(load, operators):
    then = graph([node("Exp", ["x"], ["t"])], [], [info("t")])
    other = graph([node("Neg", ["x"], ["t2"])], [], [info("t2")])
    made, inputs = _branches(then, other, None)
    assert operators(load(model([made], inputs, [info("y")], {"c": np.array(False)}), {"x": X})) == ["negative"]


def test_nested_if_sees_the_tensors_around_it(load, operators):
    inner = graph([node("Add", ["x", "outer"], ["i"])], [], [info("i")])
    other = graph([node("Neg", ["x"], ["n"])], [], [info("n")])
    outer = graph([node("Exp", ["x"], ["outer"]),
                   node("If", ["c"], ["t"], then_branch=inner, else_branch=other)], [], [info("t")])  # fmt: skip
    made, inputs = _branches(outer, other, None)
    assert operators(load(model([made], inputs, [info("y")], {"c": np.array(True)}), {"x": X})) == ["exp", "add"]


@pytest.mark.parametrize("condition", [True, False])
def test_if_at_run_time_chooses(load, operators, condition):
    then = graph([node("Exp", ["x"], ["t"])], [], [info("t")])
    other = graph([node("Neg", ["x"], ["e"])], [], [info("e")])
    made, inputs = _branches(then, other, np.array(condition))
    imported = load(model([made], inputs, [info("y")]), {"x": X, "c": np.array(condition)})
    assert operators(imported) == ["exp", "negative", "where"]


def test_if_at_run_time_refuses_other_shapes(load):
    then = graph([node("Flatten", ["x"], ["t"], axis=0)], [], [info("t")])
    other = graph([node("Neg", ["x"], ["e"])], [], [info("e")])
    made, inputs = _branches(then, other, np.array(True))
    with pytest.raises(
        UnsupportedModel, match=r"node 'choice' \(If\): .*its branches give \(1, 6\) and \(2, 3\) for 'y'"
    ):
        load(model([made], inputs, [info("y")]), {"x": X, "c": np.array(True)})


def test_all_problems_are_told_at_once(load):
    nodes = [node("Resize", ["x", "", "s"], ["a"], mode="area", name="up"), node("Relu", ["a"], ["b"]),
             node("Softmax", ["x"], ["c"], axis=7, name="soft"), node("Relu", ["x"], ["d"], alpha=1.0, name="odd"),
             node("Sum", ["b", "c", "d"], ["y"])]  # fmt: skip
    with pytest.raises(UnsupportedModel) as refusal:
        load(model(nodes, [info("x", X)], [info("y")], {"s": np.ones(2, "float32")}))
    words = str(refusal.value)
    assert "3 nodes cannot be built: node 'odd' (Relu): attribute 'alpha' is not supported; node 'soft'" in words
    assert "node 'up' (Resize): mode 'area' is not supported" in words


def test_graphs_that_are_none(load):
    with pytest.raises(
        BadModel, match=r"node of tensor 'y' \(Relu\) needs tensor 'gone', which no earlier node computes"
    ):
        load(model([node("Relu", ["gone"], ["y"])], [info("x", X)], [info("y")]))
    with pytest.raises(BadModel, match="the graph's output needs tensor 'z'"):
        load(model([node("Relu", ["x"], ["y"])], [info("x", X)], [info("z")]))
    twice = [node("Relu", ["x"], ["y"]), node("Neg", ["x"], ["y"], name="again")]
    with pytest.raises(BadModel, match=r"node 'again' \(Neg\) computes a tensor that exists"):
        load(model(twice, [info("x", X)], [info("y")]))


def test_model_that_onnxruntime_cannot_load_is_not_believed(load):
    made, feeds = one_node("Add", X, const(X))
    made.graph.output[0].CopyFrom(info("y0", np.zeros(3, "int64")))
    with pytest.raises(BadModel, match="cannot load it, so the import cannot be checked"):
        load(made, feeds)
