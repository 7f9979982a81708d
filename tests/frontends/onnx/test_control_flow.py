"""Loops written out, sequences of known length, bodies of operators."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_models import const, graph, info, model, node, one_node, random

from xnncc.errors import UnsupportedModel


def scalar(name: str, kind: int):
    return helper.make_tensor_value_info(name, kind, [])


def loop(condition: str, trips: int | None = 3):
    """y doubles until ``condition`` of the body, which may read v, is false."""
    made = [node("Add", ["v", "v"], ["vo"]), node("Identity", ["ci"], ["same"]),
            node("ReduceMax", ["vo"], ["top"], keepdims=0), node("Less", ["top", "limit"], ["small"])]  # fmt: skip
    inputs = [scalar("it", TensorProto.INT64), scalar("ci", TensorProto.BOOL), info("v", shape=[2])]
    body = graph(made, inputs, [scalar(condition, TensorProto.BOOL), info("vo", shape=[2])])
    nodes = [node("Loop", ["n" if trips else "", "c", "x"], ["y"], body=body, name="loop")]
    weights = {"c": np.array(True), "limit": np.float32(3)}
    weights |= {"n": np.array(trips)} if trips else {}
    return model(nodes, [info("x", shape=[2])], [info("y")], weights), {"x": np.array([1, 0.5], "float32")}


def test_loop_with_a_trip_count(load, operators):
    assert operators(load(*loop("same"))).count("add") == 3


def test_loop_ends_when_its_condition_says_so(load):
    load(*loop("small", trips=5))


def test_loop_without_a_bound_is_refused(load):
    with pytest.raises(UnsupportedModel, match=r"node 'loop' \(Loop\): its number of steps is known only at run time"):
        load(*loop("small", trips=None))


def test_operators_are_replaced_by_their_bodies(load):
    made, feeds = one_node("SoftmaxCrossEntropyLoss", random(3, 5), np.array([1, 0, 4]), reduction="sum")
    load(made, feeds)


def test_sequences_of_known_length(load, operators):
    nodes = [node("SplitToSequence", ["x"], ["s"], axis=0), node("SequenceAt", ["s", "i"], ["a"]),
             node("SequenceInsert", ["s", "a"], ["t"]), node("ConcatFromSequence", ["t"], ["y"], axis=0)]  # fmt: skip
    load(model(nodes, [info("x", shape=[3, 2])], [info("y")], {"i": np.array(-1)}), {"x": random(3, 2)})


def test_sequences_are_no_outputs(load):
    made = model([node("SplitToSequence", ["x"], ["s"])], [info("x", shape=[3, 2])], [info("s")])
    with pytest.raises(UnsupportedModel, match="output 's' is a sequence or an optional"):
        load(made, {"x": random(3, 2)})


def test_half_networks_compute_in_float32(load, operators):
    x = random(2, 8).astype("float16")
    made, feeds = one_node("MatMul", x, const(random(8, 3).astype("float16")))
    assert operators(load(made, feeds)) == ["astype", "matmul", "astype"]
