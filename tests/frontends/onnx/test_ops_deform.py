"""DeformConv against onnxruntime, and without moving anything against Conv."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import const, one_node, random, runtime

X = random(2, 4, 7, 6)
OPTIONS = {"pads": [1, 0, 1, 2], "strides": [2, 1], "dilations": [1, 2], "opset": 19}


@pytest.mark.parametrize(("groups", "moved"), [(1, 1), (2, 1), (1, 2), (2, 2)])
def test_deform_conv(matches, groups, moved):
    weights, offset = random(6, 4 // groups, 3, 2, seed=1), random(2, moved * 12, 4, 6, seed=2)
    mask = random(2, moved * 6, 4, 6, seed=4, low=0.0)
    options = {"group": groups, "offset_group": moved, **OPTIONS}
    matches("DeformConv", X, const(weights), offset, const(random(6, seed=3)), mask, **options)
    matches("DeformConv", X, const(weights), offset, **options)


def test_without_offsets_it_is_a_convolution(load):
    weights = const(random(6, 4, 3, 2, seed=1))
    made, feeds = one_node("DeformConv", X, weights, np.zeros((2, 12, 4, 6), "float32"), **OPTIONS)
    plain, _ = one_node("Conv", X, weights, **OPTIONS)
    (expected,) = runtime(plain, {"x0": X})
    found = load(made, feeds).reference(feeds)["y0"]
    assert np.abs(found - expected).max() <= 1e-5


def test_refuses_offsets_that_do_not_fit(refuses):
    words = refuses("DeformConv", X, const(random(6, 4, 3, 2)), random(2, 12, 3, 6), **OPTIONS)
    assert "offsets [2, 12, 3, 6] do not fit, [2, 12, 4, 6] are expected" in words
