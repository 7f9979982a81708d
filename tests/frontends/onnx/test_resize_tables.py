"""The tables of Resize, applied in numpy, against onnxruntime: all modes, coordinates and roundings."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from onnx_models import const, one_node, random, runtime

from xnncc.frontends.onnx.resize_tables import (
    ROUNDINGS,
    AxisMap,
    Taps,
    antialias_taps,
    cubic_taps,
    linear_taps,
    nearest_taps,
    source_positions,
)

COORDINATES = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"]
SCALES = (0.5, 0.6, 0.75, 1.0, 1.3, 1.5, 1.7, 2.0, 3.0)
SIZES = (1, 2, 5, 7)


def maps(coordinates: str):
    """Yield an axis for every size and scale."""
    for size, scale in itertools.product(SIZES, SCALES):
        factor = np.float32(scale)
        out = int(np.floor(np.float32(size) * factor))
        # onnxruntime copies a tensor whose shape does not change, whatever the scale: ops_resize.py does so too
        if out and (out != size or scale == 1):
            yield AxisMap(size, out, float(factor), coordinates)


def applied(taps: Taps, x: np.ndarray) -> np.ndarray:
    return (x[taps.index] * taps.weight).sum(1)


def of_runtime(a: AxisMap, x: np.ndarray, **attributes: object) -> np.ndarray:
    scales = const(np.array([1, 1, 1, a.scale], "float32"))
    image = x.reshape(1, 1, 1, -1)
    model, feeds = one_node(
        "Resize", image, None, scales, coordinate_transformation_mode=a.coordinates, opset=19, **attributes
    )
    return runtime(model, feeds)[0].reshape(-1)


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_nearest(coordinates, rounding):
    for a in maps(coordinates):
        x = random(a.size)
        expected = of_runtime(a, x, mode="nearest", nearest_mode=rounding)
        clear = ~_is_tie(a) if coordinates == "half_pixel_symmetric" else np.ones(a.out, bool)
        found = applied(nearest_taps(a, rounding), x)
        np.testing.assert_array_equal(found[clear], expected[clear], err_msg=str(a))


def _is_tie(a: AxisMap) -> np.ndarray:
    """Return where the last bit of the position decides: onnxruntime's order of operations is not known here."""
    twice = 2 * source_positions(a).astype("float64")
    return np.abs(twice - np.round(twice)) < 1e-5


@pytest.mark.parametrize("coordinates", COORDINATES)
def test_linear(coordinates):
    for a in maps(coordinates):
        x = random(a.size)
        np.testing.assert_allclose(
            applied(linear_taps(a), x), of_runtime(a, x, mode="linear"), atol=2e-6, err_msg=str(a)
        )


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize(("coefficient", "exclude"), [(-0.75, False), (-0.5, False), (-0.75, True)])
def test_cubic(coordinates, coefficient, exclude):
    for a in maps(coordinates):
        x = random(a.size)
        expected = of_runtime(a, x, mode="cubic", cubic_coeff_a=coefficient, exclude_outside=int(exclude))
        found = applied(cubic_taps(a, coefficient, exclude), x)
        np.testing.assert_allclose(found, expected, atol=2e-5, err_msg=str(a))  # onnxruntime: float32 weights


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("exclude", [False, True])
def test_antialias(mode, exclude):
    for size, scale in itertools.product((7, 12, 30), (0.3, 0.5, 0.6, 1.4, 2.0)):
        factor = np.float32(scale)
        a = AxisMap(size, int(np.floor(np.float32(size) * factor)), float(factor), "half_pixel")
        x = random(size)
        expected = of_runtime(a, x, mode=mode, antialias=1, exclude_outside=int(exclude))
        found = applied(antialias_taps(a, mode, -0.75, exclude), x)
        np.testing.assert_allclose(found, expected, atol=5e-6, err_msg=str(a))
