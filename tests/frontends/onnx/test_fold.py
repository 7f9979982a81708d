"""What is constant at import is computed there, but weights that are stored small stay small."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_models import graph, info, model, node, random

from xnncc.errors import UnsupportedModel

X = random(2, 3, 4)
BIG = np.random.default_rng(0).integers(-127, 127, (96, 96)).astype("int8")


def chain(*nodes, weights, x=X, opset=18):
    return model(list(nodes), [info("x", x)], [info("y")], weights, opset), {"x": x}


def test_shape_arithmetic_disappears(load, operators):
    imported = load(*chain(
        node("Shape", ["x"], ["s"]), node("Slice", ["s", "one", "two"], ["c"]), node("Mul", ["c", "two"], ["c2"]),
        node("Concat", ["m", "c2"], ["t"], axis=0), node("Reshape", ["x", "t"], ["y"]),
        weights={"one": np.array([1]), "two": np.array([2]), "m": np.array([-1])},
    ))  # fmt: skip
    assert operators(imported) == ["reshape"]


def test_range_and_constant_of_shape_and_constants(load, operators):
    value = helper.make_tensor("v", TensorProto.FLOAT, [1], [2.0])
    imported = load(*chain(
        node("Constant", [], ["zero"], value_int=0), node("Constant", [], ["step"], value_ints=[1]),
        node("Squeeze", ["step"], ["one"]), node("Range", ["zero", "four", "one"], ["r"]),
        node("Cast", ["r"], ["rf"], to=TensorProto.FLOAT), node("Shape", ["x"], ["s"]),
        node("ConstantOfShape", ["s"], ["c"], value=value), node("Mul", ["c", "rf"], ["cr"]),
        node("Add", ["x", "cr"], ["y"]),
        weights={"four": np.array(4)},
    ))  # fmt: skip
    assert operators(imported) == ["add"]


def test_large_dequantised_weights_stay_small(load, operators):
    imported = load(*chain(
        node("Cast", ["w"], ["wf"], to=TensorProto.FLOAT), node("Mul", ["wf", "scale"], ["ws"]),
        node("MatMul", ["x", "ws"], ["y"]), weights={"w": BIG, "scale": np.float32(0.02)}, x=random(1, 96),
    ))  # fmt: skip
    assert operators(imported) == ["astype", "multiply", "matmul"]


def test_large_linear_dequantisation_stays_small(load, operators):
    imported = load(*chain(
        node("DequantizeLinear", ["w", "scale", "zero"], ["wf"], axis=0), node("MatMul", ["x", "wf"], ["y"]),
        weights={"w": BIG, "scale": random(96, low=0.01, high=0.02), "zero": np.zeros(96, "int8")}, x=random(1, 96),
    ))  # fmt: skip
    assert operators(imported) == ["astype", "multiply", "matmul"]


def test_small_dequantised_weights_are_folded(load, operators):
    imported = load(*chain(
        node("Cast", ["w"], ["wf"], to=TensorProto.FLOAT), node("Mul", ["wf", "scale"], ["ws"]),
        node("MatMul", ["x", "ws"], ["y"]), weights={"w": BIG[:8, :8], "scale": np.float32(0.02)}, x=random(1, 8),
    ))  # fmt: skip
    assert operators(imported) == ["matmul"]


def test_dead_code_is_dropped(load, operators):
    imported = load(*chain(node("Exp", ["x"], ["dead"]), node("Relu", ["x"], ["y"]), weights={}))
    assert operators(imported) == ["nn.relu"]


def test_huge_constants_are_refused(load):
    made = chain(node("ConstantOfShape", ["s"], ["c"], name="bomb"), node("Add", ["x", "c"], ["y"]),
                 weights={"s": np.array([2**40, 2**20])})  # fmt: skip
    with pytest.raises(UnsupportedModel, match=r"node 'bomb' \(ConstantOfShape\): its constant result is larger than"):
        load(*made)


def test_constant_nodes_that_fail_are_named(load):
    made = chain(node("Reshape", ["w", "s"], ["c"], name="bad"), node("Add", ["x", "c"], ["y"]),
                 weights={"w": np.ones(3, "float32"), "s": np.array([2])})  # fmt: skip
    with pytest.raises(UnsupportedModel, match=r"node 'bad' \(Reshape\): its constant result cannot be computed"):
        load(*made)


def test_constants_that_cannot_be_built_are_named(load):
    made = chain(node("Constant", [], ["c"], value_string="text", name="words"), node("Relu", ["x"], ["y"]), weights={})
    with pytest.raises(UnsupportedModel, match=r"node 'words'.*a constant of kind 'value_string' is not supported"):
        load(*made)


def test_strange_weights_are_named(load):
    model_, feeds = chain(node("Relu", ["x"], ["y"]), weights={})
    model_.graph.initializer.append(helper.make_tensor("t", TensorProto.BFLOAT16, [1], [1.0]))
    model_.graph.initializer.append(helper.make_tensor("w", TensorProto.FLOAT, [4], bytes(16), raw=True))
    model_.graph.initializer[1].raw_data = bytes(6)
    with pytest.raises(UnsupportedModel) as refusal:
        load(model_, feeds)
    assert "dtype bfloat16 of tensor 't' is not supported" in str(refusal.value)
    assert "tensor 'w' is damaged" in str(refusal.value)


def test_nan_weights_are_warned_of(load):
    weights = {"w": np.array([1, np.nan, np.nan, 2], "float32")}
    imported = load(*chain(node("Mul", ["x", "w"], ["y"]), weights=weights))
    assert imported.warnings == ("weight 'w' has 2 NaN values",)


def test_weights_inside_branches_are_seen(load):
    then = graph([node("Mul", ["x", "w"], ["t"])], [], [info("t")], {"w": np.array([np.nan], "float32")})
    other = graph([node("Neg", ["x"], ["e"])], [], [info("e")])
    made = chain(node("If", ["c"], ["y"], then_branch=then, else_branch=other), weights={"c": np.array(True)})
    assert load(*made).warnings == ("weight 'w' has 1 NaN values",)
