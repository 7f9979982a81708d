"""QuantizeLinear and DequantizeLinear against onnxruntime: rounding, saturation, axes."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import const, random

X = random(2, 3, 5, low=-3, high=3)


@pytest.mark.parametrize("zero", [np.uint8(120), np.int8(-5), np.int8(0), None])
def test_quantize(matches, zero):
    edge = np.concatenate([X.reshape(-1), np.array([0.025, 0.075, -0.025, 1e9, -1e9], "float32")])
    matches("QuantizeLinear", edge, const(0.05), None if zero is None else const(zero))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_quantize_along_an_axis(matches, axis):
    size = X.shape[axis]
    scale, zero = const(random(size, low=0.1, high=0.2)), const(np.arange(size).astype("int8"))
    matches("QuantizeLinear", X, scale, zero, axis=axis)
    matches("DequantizeLinear", (X * 20).astype("int8"), scale, zero, axis=axis)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
def test_dequantize(matches, dtype):
    x = np.abs(X * 30).astype(dtype)
    matches("DequantizeLinear", x, const(0.02), const(np.zeros((), dtype)))
    matches("DequantizeLinear", x, const(0.02))


def test_refusals(refuses):
    per_axis = refuses("QuantizeLinear", X, const(random(4)), const(np.zeros(4, "int8")), axis=1)
    assert "y_scale of shape [4] does not fit axis 1 of [2, 3, 5]" in per_axis
    blocked = refuses("DequantizeLinear", X.astype("int8"), const(random(2, 3, 2)), axis=2, block_size=5, opset=21)
    assert "x_scale of shape [2, 3, 2] does not fit blocks of 5 along axis 2" in blocked


def test_scales_at_run_time_and_blocks(matches):
    matches("QuantizeLinear", X, np.float32(0.1))
    matches("DequantizeLinear", X.astype("int8"), const(random(2, 3, 2)), axis=2, block_size=3, opset=21)
