"""Every case: the converter gives the formulas' numbers, and both give OpenCV's where OpenCV is a judge."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from caffe_cases import CASES
from opencv_results import RESULTS, results

from xnncc.frontends.caffe.formulas import FORMULAS
from xnncc.frontends.caffe.layers import CONVERTERS
from xnncc.frontends.check import relative_error
from xnncc.frontends.evaluate import evaluate

LAYER_TOLERANCE = 2e-6  # one layer of float32, no deep sums
JUDGED = sorted(name for name, case in CASES.items() if not case.opencv)


@pytest.mark.parametrize("name", sorted(CASES))
def test_converter_equals_formula(load, name):
    case = CASES[name]
    imported = load(case.text, case.blobs, case.inputs)
    assert imported.check.max_relative_error <= LAYER_TOLERANCE
    assert imported.warnings == ()


@pytest.mark.parametrize("name", JUDGED)
def test_equals_opencv(load, name):
    case = CASES[name]
    imported = load(case.text, case.blobs, case.inputs)
    outputs, _ = evaluate(imported.mod, [case.inputs[info.name] for info in imported.inputs])
    stored = np.load(RESULTS)
    for index, ours in enumerate(outputs):
        theirs = stored[f"{name}/{index}"]
        if name.startswith("detection"):
            ours, theirs = _by_score(ours), _by_score(theirs)
        assert ours.size == theirs.size, "OpenCV may drop or add dimensions of one, never elements"
        assert relative_error(ours.reshape(theirs.shape), theirs) <= 1e-5


def _by_score(rows: np.ndarray) -> np.ndarray:
    """Return what was found. OpenCV puts the best of all labels first and fills with zeros; Caffe orders by label."""
    rows = rows[0, 0][rows[0, 0, :, 2] > 0]
    return rows[np.lexsort((-rows[:, 2], rows[:, 0]))]


def test_every_converter_has_a_formula_and_a_case():
    assert set(CONVERTERS) == set(FORMULAS)
    text = "".join(case.text for case in CASES.values())
    missing = [kind for kind in CONVERTERS if f'type: "{kind}"' not in text]
    assert sorted(missing) == ["Parameter", "Silence"]


def test_most_cases_are_judged_by_opencv():
    assert len(JUDGED) >= 120
    assert {name.split("/")[0] for name in np.load(RESULTS)} == set(JUDGED)


@pytest.mark.skipif(importlib.util.find_spec("cv2") is None, reason="OpenCV is not installed: xnncc[references]")
def test_stored_results_are_those_of_opencv():
    import cv2

    if not hasattr(cv2.dnn, "readNetFromCaffe"):
        pytest.skip(f"OpenCV {cv2.__version__} reads no Caffe; needs opencv-contrib-python-headless<5")
    stored, now = np.load(RESULTS), results()
    assert set(stored) == set(now)
    for name, value in now.items():
        assert np.allclose(stored[name], value, rtol=1e-5, atol=1e-6), name
