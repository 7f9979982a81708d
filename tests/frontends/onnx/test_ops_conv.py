"""Convolutions and batch norm against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import const, info, model, node, random

X = random(1, 4, 9, 7)
W = random(6, 4, 3, 3, seed=1)
B = random(6, seed=2)


@pytest.mark.parametrize(
    "attributes",
    [
        {}, {"pads": [1, 2, 0, 1]}, {"strides": [2, 1], "pads": [1, 1, 1, 1]}, {"dilations": [2, 2]},
        {"auto_pad": "SAME_UPPER", "strides": [2, 2]}, {"auto_pad": "SAME_LOWER", "strides": [2, 2]},
        {"auto_pad": "VALID"}, {"kernel_shape": [3, 3]},
    ],
)  # fmt: skip
def test_conv(matches, attributes):
    matches("Conv", X, const(W), const(B), **attributes)


def test_conv_is_conv2d_and_add(matches, operators):
    assert operators(matches("Conv", X, const(W), const(B))) == ["nn.conv2d", "add"]
    assert operators(matches("Conv", X, const(W), const(np.zeros(6)))) == ["nn.conv2d"]
    assert operators(matches("Conv", X, const(W))) == ["nn.conv2d"]


@pytest.mark.parametrize(("groups", "out"), [(2, 6), (4, 4), (4, 8)])
def test_conv_in_groups(matches, groups, out):
    matches("Conv", X, const(random(out, 4 // groups, 3, 3)), group=groups)


def test_conv_over_one_dimension_is_a_conv2d(matches, operators):
    imported = matches("Conv", random(2, 4, 11), const(random(6, 4, 3)), const(B), strides=[2], pads=[1, 2])
    assert operators(imported) == ["reshape", "nn.conv2d", "add", "reshape"]


def test_conv_over_three_dimensions(matches):
    matches("Conv", random(1, 2, 5, 5, 5), const(random(3, 2, 3, 3, 3)), const(B[:3]), pads=[1] * 6)


def test_conv_with_weights_at_run_time(matches):
    matches("Conv", X, W, B)


def test_conv_refusals_say_what_does_not_fit(refuses):
    assert "weights [6, 3, 3, 3] in 1 groups do not fit" in refuses("Conv", X, const(random(6, 3, 3, 3)))
    assert "kernel_shape [5, 5] contradicts weights" in refuses("Conv", X, const(W), kernel_shape=[5, 5])
    assert "negative pads" in refuses("Conv", X, const(W), pads=[-1, 0, 0, 0])
    assert "auto_pad 'SAME' is not supported. Supported: NOTSET" in refuses("Conv", X, const(W), auto_pad="SAME")
    assert "does not fit input" in refuses("Conv", random(1, 4, 2, 2), const(W))
    assert "4 spatial dimensions" in refuses("Conv", random(1, 1, 3, 3, 3, 3), const(random(1, 1, 3, 3, 3, 3)))


@pytest.mark.parametrize(
    "attributes",
    [
        {}, {"strides": [2, 2]}, {"strides": [2, 2], "pads": [1, 0, 0, 1]},
        {"strides": [2, 2], "output_padding": [1, 1]},
        {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 0]}, {"dilations": [2, 2]},
        {"auto_pad": "SAME_UPPER", "strides": [2, 2]}, {"auto_pad": "SAME_LOWER", "strides": [2, 2]},
        {"strides": [3, 3], "output_shape": [26, 20]}, {"auto_pad": "VALID", "strides": [2, 1]},
    ],
)  # fmt: skip
def test_conv_transpose(matches, attributes):
    matches("ConvTranspose", X, const(random(4, 5, 3, 3)), const(random(5)), **attributes)


def test_conv_transpose_in_groups_and_over_one_dimension(matches):
    matches("ConvTranspose", X, const(random(4, 3, 3, 3)), group=2, strides=[2, 2])
    matches("ConvTranspose", random(1, 4, 7), const(random(4, 3, 4)), strides=[2], pads=[1, 1], dilations=[2])


def test_conv_transpose_refusals(refuses):
    x, w = random(1, 2, 2, 2, 2, 2), const(random(2, 2, 2, 2, 2, 2))
    assert "4 spatial dimensions are not supported. Supported: 1, 2 and 3" in refuses("ConvTranspose", x, w)
    too_large = refuses("ConvTranspose", X, const(random(4, 5, 3, 3)), output_shape=[40, 40])
    assert "must be smaller than strides" in too_large


def test_conv_transpose_over_three_dimensions(matches):
    matches("ConvTranspose", random(1, 2, 3, 4, 3), const(random(2, 3, 2, 2, 2)), strides=[2, 1, 2], pads=[1] * 6)


def _norm(channels: int) -> list[const]:
    statistics = [random(channels, seed=i) for i in (1, 2, 3)]
    return [const(a) for a in statistics] + [const(random(channels, low=0.5, high=2, seed=4))]


@pytest.mark.parametrize("shape", [(2, 4, 5, 3), (2, 4, 6), (2, 4), (1, 4, 2, 3, 2)])
def test_batch_norm(matches, operators, shape):
    assert operators(matches("BatchNormalization", random(*shape), *_norm(4), epsilon=1e-3)) == ["multiply", "add"]


def _conv_and_norm(bias: bool, read_twice: bool):
    weights = {"w": W, "s": B, "b": B + 1, "m": B - 1, "v": random(6, low=0.5, high=2), **({"c": B} if bias else {})}
    nodes = [node("Conv", ["x", "w", *(["c"] if bias else [])], ["z"]),
             node("BatchNormalization", ["z", "s", "b", "m", "v"], ["y"])]  # fmt: skip
    outputs = [info("y"), *([info("z")] if read_twice else [])]
    return model(nodes, [info("x", X)], outputs, weights), {"x": X}


@pytest.mark.parametrize("bias", [False, True])
def test_batch_norm_disappears_into_the_conv_before_it(load, operators, bias):
    imported = load(*_conv_and_norm(bias, read_twice=False))
    assert operators(imported) == ["nn.conv2d", "add"]
    assert imported.check.max_relative_error < 2e-6  # weights are scaled in float64 and rounded once


def test_batch_norm_stays_when_somebody_else_reads_the_conv(load, operators):
    assert operators(load(*_conv_and_norm(bias=False, read_twice=True))) == ["nn.conv2d", "multiply", "add"]


def test_batch_norm_with_statistics_at_run_time(matches):
    matches("BatchNormalization", random(2, 4, 3, 3), *_norm(4)[:3], np.full(4, 0.7, "float32"))


def test_batch_norm_refuses_training(refuses):
    x = random(2, 4, 3, 3)
    assert "training_mode is set" in refuses("BatchNormalization", x, *_norm(4), training_mode=1, outputs=3)
