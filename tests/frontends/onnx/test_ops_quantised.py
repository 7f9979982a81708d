"""Quantised operators of com.microsoft, against onnxruntime: bytes equal."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from onnx import helper
from onnx_models import const, one_node, random

RNG = np.random.default_rng(11)
X, Y = (RNG.integers(0, 256, (1, 4, 6, 5)).astype("uint8") for _ in range(2))
SIGNED = RNG.integers(-128, 128, (2, 6, 5)).astype("int8")
SCALE, FINE = const(0.05), const(1 / 256, "float32")


def zero(value: int, dtype: str = "uint8") -> const:
    return const(np.asarray(value, dtype))


@pytest.fixture
def quantised(matches):
    return functools.partial(matches, domain="com.microsoft", tolerance=0)


@pytest.mark.parametrize("operator", ["QLinearAdd", "QLinearMul"])
def test_binary(quantised, operator):
    quantised(operator, X, SCALE, zero(120), Y, const(0.03), zero(100), const(0.11), zero(128))


def test_sigmoid_and_leaky_relu(quantised):
    quantised("QLinearSigmoid", X, SCALE, zero(128), FINE, zero(0))
    quantised("QLinearLeakyRelu", SIGNED, SCALE, zero(3, "int8"), const(0.06), zero(-5, "int8"), alpha=0.2)


def test_pools(quantised):
    quantised("QLinearGlobalAveragePool", X, SCALE, zero(120), const(0.04), zero(110))
    scale = const(0.043)  # no average lies halfway between two steps, where one rounding of float32 decides
    quantised("QLinearAveragePool", X, SCALE, zero(120), scale, zero(110), kernel_shape=[3, 3], strides=[2, 1],
              pads=[1, 1, 1, 1])  # fmt: skip


def test_concat(quantised):
    quantised("QLinearConcat", const(0.07), zero(120), X, SCALE, zero(128), Y, const(0.02), zero(90), axis=1)


@pytest.mark.parametrize(("axis", "opset"), [(-1, 13), (1, 13), (1, 12)])
def test_softmax(load, axis, opset):
    made, feeds = one_node("QLinearSoftmax", SIGNED, SCALE, zero(3, "int8"), FINE, zero(-128, "int8"),
                           domain="com.microsoft", axis=axis)  # fmt: skip
    made.graph.node[0].attribute.append(helper.make_attribute("opset", opset))
    assert load(made, feeds).check.max_relative_error == 0


@pytest.mark.parametrize("bias", [None, const(random(5))])
def test_matmul_integer_to_float(matches, bias):
    weights, scales = const(RNG.integers(0, 256, (6, 5)).astype("uint8")), const(RNG.uniform(0.01, 0.02, 5))
    matches("MatMulIntegerToFloat", X[0, 0].T.copy(), weights, SCALE, scales, zero(120), zero(128), bias,
            domain="com.microsoft")  # fmt: skip


@pytest.mark.parametrize("bias", [None, const(random(4))])
def test_dynamic_quantise_matmul(matches, bias):
    weights = const(RNG.integers(0, 256, (6, 4)).astype("uint8"))
    matches("DynamicQuantizeMatMul", random(3, 6), weights, const(0.01), zero(130), bias, domain="com.microsoft")


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("has_zeros", [False, True])
@pytest.mark.parametrize("depth", [32, 40])
def test_matmul_n_bits(matches, bits, has_zeros, depth):
    blocks = -(-depth // 16)
    packed = RNG.integers(0, 256, (5, blocks, 16 * bits // 8)).astype("uint8")
    scales = RNG.uniform(0.01, 0.02, 5 * blocks).astype("float32")
    zeros = const(RNG.integers(0, 256, 5 * -(-blocks * bits // 8)).astype("uint8")) if has_zeros else None
    matches("MatMulNBits", random(2, depth), const(packed), const(scales), zeros, domain="com.microsoft", K=depth, N=5,
            bits=bits, block_size=16, tolerance=1e-5)  # fmt: skip


def test_refuses_channels_last(refuses):
    words = refuses("QLinearAveragePool", X, SCALE, zero(1), SCALE, zero(1), domain="com.microsoft",
                    kernel_shape=[2, 2], channels_last=1)  # fmt: skip
    assert "channels_last is not supported. Export with NCHW" in words
