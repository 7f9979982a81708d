"""Activation functions against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import const, one_node, random

from xnncc.frontends.evaluate import evaluate

X = random(2, 3, 5, low=-4, high=4)


@pytest.mark.parametrize("operator", ["Relu", "Softplus", "Softsign", "Mish", "HardSwish"])
def test_without_attributes(matches, operator):
    matches(operator, X)


@pytest.mark.parametrize(
    ("operator", "attributes"),
    [
        ("LeakyRelu", {}), ("LeakyRelu", {"alpha": 0.3}), ("ThresholdedRelu", {}), ("ThresholdedRelu", {"alpha": 2.0}),
        ("Elu", {}), ("Elu", {"alpha": 0.5}), ("Selu", {}), ("Selu", {"alpha": 2.0, "gamma": 1.5}), ("Celu", {}),
        ("Celu", {"alpha": 2.0}), ("HardSigmoid", {}), ("HardSigmoid", {"alpha": 0.1, "beta": 0.4}),
        ("Shrink", {"bias": 0.5, "lambd": 1.0}), ("Shrink", {}),
    ],
)  # fmt: skip
def test_with_attributes(matches, operator, attributes):
    matches(operator, X, **attributes)


def test_relu_is_relu(matches, operators):
    assert operators(matches("Relu", X)) == ["nn.relu"]


def test_hard_sigmoid_is_a_clip(matches, operators):
    assert operators(matches("HardSigmoid", X)) == ["multiply", "add", "clip"]


@pytest.mark.parametrize("slope", [random(3, 1, seed=1), random(1, seed=1), random(2, 3, 5, seed=1)])
def test_prelu_slope_broadcasts(matches, slope):
    matches("PRelu", X, const(slope))


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu(matches, approximate):
    matches("Gelu", X, approximate=approximate, opset=20)


def test_gelu_refuses_other_approximations(refuses):
    found = refuses("Gelu", X, approximate="fast", opset=20)
    assert "approximate 'fast' is not supported. Supported: none, tanh" in found


def test_gelus_of_microsoft(matches):
    matches("Gelu", X, domain="com.microsoft")
    matches("QuickGelu", X, domain="com.microsoft", alpha=1.5)
    matches("BiasGelu", X, const(random(5, seed=3)), domain="com.microsoft")
    matches("FastGelu", X, domain="com.microsoft", tolerance=1e-5)
    matches("FastGelu", X, const(random(5, seed=3)), domain="com.microsoft", tolerance=1e-5)


@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("opset", [11, 13])
def test_softmax_axis_changed_its_meaning(matches, operator, axis, opset):
    attributes = {} if axis is None else {"axis": axis}
    matches(operator, X, opset=opset, **attributes)


def test_softmax_of_large_values(matches):
    matches("Softmax", np.array([[1000, 999, -1000, 0]], "float32"))


def test_softmax_of_last_axis_needs_no_reshape(matches, operators):
    assert operators(matches("Softmax", X, opset=11, axis=2)) == ["nn.softmax"]


def test_axis_out_of_range_is_named(refuses):
    assert "axis 3 is out of range for 3 dimensions" in refuses("Softmax", X, axis=3)


def test_dropout_is_nothing(matches, operators):
    assert operators(matches("Dropout", X)) == []
    assert operators(matches("Dropout", X, const(0.5), const(np.array(False)), outputs=2)) == ["ones"]


def test_dropout_in_training_is_refused(refuses):
    assert "training_mode is set" in refuses("Dropout", X, const(0.5), const(np.array(True)))


def test_halves_take_every_step_of_softmax_in_float16(load):
    x = random(5, 40, low=-6, high=6).astype("float16")
    made, feeds = one_node("Softmax", x, axis=1)
    (ours,) = evaluate(load(made, feeds).mod, [x])[0]
    powers = np.exp(x - x.max(1, keepdims=True))
    assert ours.dtype == "float16" and (ours == powers / powers.sum(1, keepdims=True)).all()
