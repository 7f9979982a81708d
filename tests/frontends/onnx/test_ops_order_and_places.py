"""TopK, running products, scatters and samplers against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import const, random

X = random(3, 4, 5)


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_top_k(matches, axis, largest):
    matches("TopK", X, const(np.array([2])), axis=axis, largest=largest, outputs=2)


def test_top_k_of_equal_elements_takes_the_first(matches):
    matches("TopK", np.round(X), const(np.array([4])), outputs=2)


def test_top_k_refuses_more_than_there_are(refuses):
    assert "k=9 of 5 elements is not supported" in refuses("TopK", X, const(np.array([9])), outputs=2)


@pytest.mark.parametrize("wrap", [const, np.asarray])
@pytest.mark.parametrize("reduction", ["none", "add", "mul", "min", "max"])
def test_scatter_elements(matches, wrap, reduction):
    where = np.array([[[0, -1, 2, 1, 0]]])
    matches("ScatterElements", X, wrap(where), random(1, 1, 5, seed=2), axis=0, reduction=reduction)


@pytest.mark.parametrize("wrap", [const, np.asarray])
@pytest.mark.parametrize("reduction", ["none", "add", "max"])
def test_scatter_nd(matches, wrap, reduction):
    matches("ScatterND", X, wrap(np.array([[0, 1], [-1, 3]])), random(2, 5, seed=2), reduction=reduction)


def test_reverse_sequence(matches):
    for time, batch in ((0, 1), (1, 0)):
        lengths = const(np.array([1, 3, 2, 3] if batch else [4, 1, 2]))
        matches("ReverseSequence", X, lengths, time_axis=time, batch_axis=batch)


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_grid_sample(matches, mode, padding, align):
    grid = random(1, 3, 4, 2, low=-1.4, high=1.4)
    options = {"mode": mode, "padding_mode": padding, "align_corners": align, "opset": 20}
    matches("GridSample", random(1, 2, 5, 6), grid, tolerance=1e-5, **options)


@pytest.mark.parametrize("mode", ["avg", "max"])
def test_roi_align(matches, mode):
    rois = const(np.array([[0, 0, 6, 5], [1, 2, 3, 7]], "float32"))
    options = {"output_height": 3, "output_width": 2, "sampling_ratio": 2, "spatial_scale": 0.8, "mode": mode}
    if mode == "avg":  # onnxruntime takes the maximum before it interpolates, unlike the standard's own cases
        matches("RoiAlign", random(1, 2, 8, 8), rois, const(np.array([0, 0])), tolerance=1e-5, **options)


def test_max_unpool(matches):
    places = const(np.array([[[[5, 7], [13, 15]]]]))
    matches("MaxUnpool", random(1, 1, 2, 2), places, kernel_shape=[2, 2], strides=[2, 2])


@pytest.mark.parametrize("axis", [1, 2])
def test_fourier(matches, axis):
    matches("DFT", random(2, 6, 5, 1), None, const(np.array(axis)), opset=20, tolerance=1e-5)
    matches("DFT", random(2, 6, 5, 2), None, const(np.array(axis)), opset=20, inverse=1, tolerance=1e-5)


def test_determinants(matches):
    for size in (2, 3):
        matches("Det", random(4, size, size), tolerance=1e-5)
