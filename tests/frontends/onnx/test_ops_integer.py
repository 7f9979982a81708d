"""Integer products are exact; onnxruntime judges them with unsigned weights (exact_integers.py)."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import const, one_node, runtime

from xnncc.frontends.onnx.exact_integers import with_unsigned_weights

RNG = np.random.default_rng(3)
IMAGE = RNG.integers(0, 256, (1, 4, 7, 6)).astype("uint8")
WEIGHTS = RNG.integers(-128, 128, (6, 4, 3, 3)).astype("int8")


def test_conv_integer(matches):
    matches("ConvInteger", IMAGE, const(WEIGHTS), const(np.uint8(120)), pads=[1, 1, 0, 1], strides=[2, 1])


def test_matmul_integer_is_exact_where_onnxruntime_saturates():
    x = np.full((2, 64), 255, "uint8")
    made, feeds = one_node("MatMulInteger", x, const(np.full((64, 3), 127, "int8")))
    assert (runtime(with_unsigned_weights(made), feeds)[0] == 255 * 127 * 64).all()


@pytest.mark.parametrize("per_channel", [False, True])
def test_qlinear_conv(matches, per_channel):
    scale = np.linspace(0.01, 0.02, 6).astype("float32") if per_channel else np.float32(0.01)
    zero = np.zeros(6 if per_channel else (), "int8")
    bias = np.arange(-3, 3).astype("int32") * 1000
    matches(
        "QLinearConv", IMAGE, const(0.02), const(np.uint8(128)), const(WEIGHTS), const(scale), const(zero), const(0.9),
        const(np.uint8(120)), const(bias), pads=[1] * 4,
    )  # fmt: skip


def test_qlinear_matmul_at_run_time(matches):
    a, b = IMAGE[0, 0], RNG.integers(0, 256, (6, 5)).astype("uint8")
    matches("QLinearMatMul", a, np.float32(0.02), np.uint8(100), b, np.float32(0.01), np.uint8(90), np.float32(0.8),
            np.uint8(110))  # fmt: skip


def test_matmul_integer_stays_integer(matches, operators):
    found = operators(matches("MatMulInteger", IMAGE[0, 0], const(IMAGE[0, 1, :6]), const(np.uint8(7))))
    assert "matmul" in found
