"""Normalisations against onnxruntime, also where E[x^2] - E[x]^2 would lose all digits."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import const, random

X = random(2, 6, 5, 3)


def test_layer_norm(matches, operators):
    imported = matches("LayerNormalization", X, const(random(3, seed=1)), const(random(3, seed=2)))
    assert operators(imported) == ["nn.layer_norm"]
    matches("LayerNormalization", X, const(random(3, seed=1)))
    matches("LayerNormalization", X, const(random(5, 3, seed=1)), const(random(5, 3)), axis=2, epsilon=1e-3)
    matches("LayerNormalization", X, random(3, seed=1), random(3, seed=2))


def test_layer_norm_gives_mean_and_deviation(matches):
    matches("LayerNormalization", X, const(random(*X.shape[1:])), axis=1, outputs=3)


@pytest.mark.parametrize("shift", [0.0, 1000.0])
def test_instance_norm(matches, shift):
    x = X + np.float32(shift)
    tolerance = 2e-6 if not shift else 2e-4  # the input itself has only 1e-7 * 1000 left
    matches("InstanceNormalization", x, const(random(6)), const(random(6, seed=1)), tolerance=tolerance)


def test_instance_norm_with_weights_at_run_time(matches):
    matches("InstanceNormalization", X, random(6), random(6, seed=1))


def test_group_norm(matches, refuses):
    matches("GroupNormalization", X, const(random(6)), const(random(6, seed=1)), num_groups=2, opset=21)
    found = refuses("GroupNormalization", X, const(random(6)), const(random(6)), num_groups=4, opset=21)
    assert "6 channels cannot be cut into num_groups 4" in found


def test_group_norm_once_scaled_groups(matches):
    matches("GroupNormalization", X, const(random(2)), const(random(2, seed=1)), num_groups=2, opset=18)


def test_rms_norm(matches):
    matches("RMSNormalization", X, const(random(3)), opset=23)


def test_mean_variance_norm(matches):
    matches("MeanVarianceNormalization", X)
    matches("MeanVarianceNormalization", X, axes=[1, 2, 3])


@pytest.mark.parametrize("p", [1, 2])
def test_lp_norm(matches, p):
    matches("LpNormalization", X, axis=1, p=p)


def test_lp_norm_of_zeros_is_zero(matches):
    matches("LpNormalization", np.zeros((2, 3), "float32"), p=2)


def test_lrn(matches, refuses):
    matches("LRN", X * 20, size=5, alpha=1e-3, beta=0.5, bias=2.0)
    matches("LRN", X, size=3)
    assert "size 4 is not odd" in refuses("LRN", X, size=4)


def test_lp_norm_refuses_other_powers(refuses):
    assert "p=3 is not supported. Supported: 1, 2" in refuses("LpNormalization", X, p=3)
