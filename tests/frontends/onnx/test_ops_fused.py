"""Convolutions and products with an activation in the node, against onnxruntime."""

from __future__ import annotations

import functools

import pytest
from onnx_models import const, random

X, W = random(1, 3, 7, 6), random(4, 3, 3, 3, seed=1)
ACTIVATIONS = [
    ("Relu", []),
    ("LeakyRelu", [0.1]),
    ("Tanh", []),
    ("Sigmoid", []),
    ("Clip", [-1.0, 1.5]),
    ("HardSigmoid", [0.3, 0.4]),
]


@pytest.fixture
def fused(matches):
    return functools.partial(matches, domain="com.microsoft")


@pytest.mark.parametrize(("activation", "parameters"), ACTIVATIONS)
def test_fused_conv(fused, activation, parameters):
    options = {"activation_params": parameters} if parameters else {}
    fused("FusedConv", X, const(W), const(random(4, seed=2)), activation=activation, pads=[1] * 4, **options)


def test_fused_conv_adds_before_the_activation(fused):
    fused("FusedConv", X, const(W), None, random(1, 4, 5, 4, seed=3), activation="Relu")


def test_fused_gemm(fused):
    fused("FusedGemm", random(3, 4), const(random(5, 4, seed=1)), const(random(5, seed=2)), transB=1,
          activation="LeakyRelu", activation_alpha=0.2)  # fmt: skip


@pytest.mark.parametrize("constant", [False, True])
def test_fused_matmul(fused, constant):
    right = random(2, 5, 4, seed=1)
    fused("FusedMatMul", random(2, 4, 3), const(right) if constant else right, transA=1, transB=1, alpha=0.5)


def test_refuses_a_turned_batch(refuses):
    words = refuses("FusedMatMul", random(2, 3, 4), random(3, 4, 2), domain="com.microsoft", transBatchA=1)
    assert "transBatchA and transBatchB are not supported" in words


def test_refuses_an_unknown_activation(refuses):
    words = refuses("FusedConv", X, const(W), domain="com.microsoft", activation="Mish")
    assert "activation 'Mish' is not supported. Supported: Relu, LeakyRelu" in words
