"""Resize and Upsample as whole kernels against onnxruntime; ``test_resize_tables.py`` has every mode."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import const, random

X = random(1, 2, 5, 7)


def by(*scales: float) -> list:
    return [None, const(np.array([1, 1, *scales], "float32"))]


def to(*sizes: int) -> list:
    return [None, None, const(np.array([1, 2, *sizes], "int64"))]


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_scales(matches, mode):
    matches("Resize", X, *by(1.3, 0.6), mode=mode)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_sizes_instead_of_scales(matches, mode):
    matches("Resize", X, *to(3, 14), mode=mode)
    matches("Resize", X, *to(5, 7), mode=mode)


@pytest.mark.parametrize("attributes", [{"cubic_coeff_a": -0.5}, {"exclude_outside": 1}])
def test_cubic_attributes(matches, attributes):
    matches("Resize", X, *by(1.7, 0.8), mode="cubic", **attributes)


def test_antialias(matches):
    matches("Resize", random(1, 2, 12, 9), *by(0.3, 0.5), mode="cubic", antialias=1, tolerance=1e-5)
    matches("Resize", random(1, 2, 12, 9), *by(2.0, 0.6), mode="linear", antialias=1, tolerance=1e-5)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_crop_and_resize(matches, mode):
    roi = const(np.array([0, 0, 0.2, -0.3, 1, 1, 0.8, 1.2], "float32"))
    matches("Resize", X, roi, None, const(np.array([1, 2, 6, 9])), mode=mode,
            coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=7.0)  # fmt: skip


@pytest.mark.parametrize("policy", ["stretch", "not_larger", "not_smaller"])
def test_axes_and_aspect_ratio(matches, policy):
    sizes = const(np.array([9, 10]))
    matches("Resize", X, None, None, sizes, axes=[2, 3], keep_aspect_ratio_policy=policy, mode="linear")


def test_whole_repetition_is_resize2d(matches, operators):
    floor = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    assert operators(matches("Resize", X, *by(2, 2), **floor)) == ["image.resize2d"]
    assert operators(matches("Resize", X, *by(3, 1), mode="nearest")) == ["image.resize2d"]
    assert operators(matches("Resize", X, *by(1.5, 2), **floor)) == ["call_tir"]
    assert operators(matches("Resize", X, *by(1, 1), mode="linear")) == []


def test_nearest_of_bytes(matches):
    matches("Resize", np.arange(70, dtype="uint8").reshape(X.shape), *by(1.5, 0.7), mode="nearest")


def test_resize_over_other_ranks(matches):
    matches("Resize", random(1, 2, 4, 3, 5), None, const(np.array([1, 1, 2, 1.5, 0.8], "float32")), mode="linear")
    matches("Resize", random(1, 2, 9), None, const(np.array([1, 1, 1.7], "float32")), mode="nearest")


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("opset", [7, 9])
def test_upsample(matches, mode, opset):
    if opset == 7:
        matches("Upsample", X, mode=mode, scales=[1.0, 1.0, 2.0, 3.0], opset=7)
    else:
        matches("Upsample", X, const(np.array([1, 1, 2, 3], "float32")), mode=mode, opset=9)


def test_resize_of_opset_10(matches):
    matches("Resize", X, const(np.array([1, 1, 2, 1.5], "float32")), mode="linear", opset=10)
    matches("Resize", X, const(np.array([1, 1, 0.6, 1.5], "float32")), mode="nearest", opset=10)


def test_refusals(refuses):
    assert "mode 'area' is not supported. Supported: nearest, linear, cubic" in refuses(
        "Resize", X, *by(2, 2), mode="area"
    )
    assert "scales is input 'x2', whose value a build needs" in refuses("Resize", X, None, np.ones(4, "float32"))
    both = refuses("Resize", X, None, const(np.ones(4, "float32")), const(np.array([1, 2, 5, 7])))
    assert "exactly one of scales and sizes" in both
    assert "would become 0" in refuses("Resize", X, *by(0.1, 1))
    linear = refuses("Resize", X, *by(2, 2), mode="linear", exclude_outside=1)
    assert "exclude_outside=1 with mode 'linear' is not supported" in linear
    bytes_ = refuses("Resize", np.zeros(X.shape, "uint8"), *by(2, 2), mode="linear")
    assert "mode 'linear' on uint8 is not supported. Cast to float32 first" in bytes_
