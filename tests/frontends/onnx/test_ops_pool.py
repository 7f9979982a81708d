"""Pools against onnxruntime, above all where windows hang over the edge."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import random

X = random(1, 3, 17, 16)

WINDOWS = [
    {"kernel_shape": [2, 2]},
    {"kernel_shape": [3, 2], "strides": [2, 2]},
    {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 0, 1, 1]},
    {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
    {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1},
    {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
    {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_LOWER"},
    {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "VALID"},
]


@pytest.mark.parametrize("windows", WINDOWS)
def test_max_pool(matches, windows):
    matches("MaxPool", X, **windows)


@pytest.mark.parametrize("windows", WINDOWS)
@pytest.mark.parametrize("count", [0, 1])
def test_average_pool(matches, windows, count):
    matches("AveragePool", X, count_include_pad=count, opset=19, **windows)


def test_max_pool_with_dilations(matches):
    matches("MaxPool", X, kernel_shape=[3, 3], dilations=[2, 2])


def test_max_pool_of_bytes(matches):
    x = np.random.default_rng(0).integers(-128, 127, (1, 2, 6, 6)).astype("int8")
    matches("MaxPool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1])


@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool"])
def test_pools_over_one_and_three_dimensions(matches, operators, operator):
    kind = {"MaxPool": "nn.max_pool2d", "AveragePool": "nn.avg_pool2d"}[operator]
    imported = matches(operator, random(2, 3, 11), kernel_shape=[3], strides=[2])
    assert operators(imported) == ["reshape", kind, "reshape"]
    matches(operator, random(1, 2, 5, 6, 7), kernel_shape=[2, 2, 2], strides=[2, 2, 2], pads=[1, 0, 0, 0, 1, 1])


def test_plain_average_pool_is_one_operator(matches, operators):
    assert operators(matches("AveragePool", X, kernel_shape=[2, 2], strides=[2, 2])) == ["nn.avg_pool2d"]


@pytest.mark.parametrize("operator", ["GlobalAveragePool", "GlobalMaxPool"])
def test_global_pools(matches, operator):
    matches(operator, X)
    matches(operator, random(2, 3, 5))


def test_global_average_pool_is_a_mean(matches, operators):
    assert operators(matches("GlobalAveragePool", X)) == ["mean"]


@pytest.mark.parametrize("p", [1, 2])
def test_lp_pool(matches, p):
    matches("LpPool", X, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], p=p)


def test_refusals(refuses):
    assert "p=0 is not at least 1" in refuses("LpPool", X, kernel_shape=[2, 2], p=0)
    assert "does not fit 16 elements" in refuses("MaxPool", X, kernel_shape=[3, 20])
    assert "no spatial dimensions" in refuses("GlobalMaxPool", random(2, 3))


@pytest.mark.parametrize("order", [0, 1])
def test_max_pool_positions(matches, order):
    matches("MaxPool", X, kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1], outputs=2, storage_order=order)


def test_dilated_average_pool(matches):
    for count in (0, 1):
        matches("AveragePool", X, kernel_shape=[2, 2], dilations=[2, 2], pads=[1, 1, 1, 1], count_include_pad=count,
                opset=19)  # fmt: skip


@pytest.mark.parametrize("p", [1, 2, 3])
def test_lp_pools(matches, p):
    matches("LpPool", X, kernel_shape=[3, 2], strides=[2, 1], p=p)
    matches("GlobalLpPool", X, p=p)
