"""Three trained networks, end to end: import, and the built library on this machine, against OpenCV 4's reader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from opencv_results import KEPT, REAL, REAL_RESULTS, ROOT, real_input

import xnncc
from xnncc.build import build

pytestmark = pytest.mark.e2e
TOLERANCE = 1e-4  # of the largest value, as everywhere; measured 2026-11-30: 6e-6 (sr), 1e-7 (detect), 4e-9 (nsfw)
MODELS = ROOT / "models"


@pytest.fixture
def run(tmp_path: Path) -> Callable[[str], tuple[np.ndarray, np.ndarray]]:
    """``run(name)`` builds a network and returns what the library and what OpenCV computed."""

    def built(name: str) -> tuple[np.ndarray, np.ndarray]:
        prototxt, caffemodel = (MODELS / file for file in REAL[name])
        if not prototxt.exists():
            pytest.skip(f"not fetched: tools/fetch_models.py {prototxt.parent.name}")
        stored = np.load(REAL_RESULTS)
        x = real_input(name, stored["scene"])
        result = build(prototxt, "host", tmp_path / name, samples={"data": x}, weights=caffemodel)
        assert result.warnings == ()
        (y,) = xnncc.load(tmp_path / name)(x).values()
        return y, stored[name]

    return built


def test_super_resolution(run):
    """Deconvolution, Crop, Concat, Eltwise."""
    ours, theirs = run("sr")
    assert ours.shape == (1, 1, 447, 447)
    assert np.abs(ours[..., ::KEPT, ::KEPT] - theirs).max() <= TOLERANCE * np.abs(theirs).max()


def test_qr_detector_finds_both_codes_where_opencv_does(run):
    """BatchNorm, Scale, depthwise and dilated Convolution, five PriorBox layers, DetectionOutput in the library."""
    ours, theirs = (rows[0, 0] for rows in run("detect"))
    found = theirs[theirs[:, 2] > 0]
    assert len(found) == 2 and (found[:, 2] > 0.99).all()
    assert np.abs(ours[:2] - found).max() <= TOLERANCE
    assert (ours[2:] == -1).all()


@pytest.mark.slow
def test_resnet(run):
    """53 convolutions with BatchNorm and Scale, Eltwise, global pooling, InnerProduct."""
    ours, theirs = run("nsfw")
    assert np.abs(ours - theirs).max() <= TOLERANCE
