"""One network, basic-pitch, from three formats: ONNX, TFLite and SavedModel give the same notes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from xnncc.frontends import load_model
from xnncc.frontends.evaluate import evaluate
from xnncc.frontends.tensorflow.reference import has_tensorflow

pytestmark = pytest.mark.e2e

FOLDER = Path(__file__).resolve().parents[2] / "models" / "basic-pitch" / "icassp_2022"
SHAPE = (1, 43844, 1)  # two seconds
# What each format calls the probability of a note's start, of a note, and of a pitch contour; and the input.
NAMES = {
    "nmp.onnx": (*(f"StatefulPartitionedCall:{i}" for i in (2, 1, 0)), "serving_default_input_2:0"),
    "nmp.tflite": (*(f"StatefulPartitionedCall:{i}" for i in (2, 1, 0)), "serving_default_input_2:0"),
    "nmp": ("onset", "note", "contour", "serving_default_input_2"),
}
TOLERANCE = 1e-4  # of outputs up to 1; measured 2026-11-30 with TensorFlow 2.21: TFLite 0, SavedModel 8e-7


def _outputs(name: str, sound: np.ndarray) -> list[np.ndarray]:
    path = FOLDER / name
    if not path.exists():
        pytest.skip("not fetched: tools/fetch_models.py basic-pitch")
    *outputs, given = NAMES[name]
    imported = load_model(path, None if name.endswith("tflite") else {given: SHAPE}, check=False)
    assert [info.name for info in imported.inputs] == [given]
    found = dict(zip([info.name for info in imported.outputs], evaluate(imported.mod, [sound])[0], strict=True))
    return [found[name] for name in outputs]


@pytest.mark.parametrize("name", ["nmp.tflite", "nmp"])
def test_gives_what_the_onnx_file_gives(name: str) -> None:
    if name == "nmp" and not has_tensorflow():
        pytest.skip("TensorFlow is not installed: xnncc[tf]")
    sound = np.random.default_rng(7).uniform(-1, 1, SHAPE).astype("float32")
    for ours, theirs in zip(_outputs(name, sound), _outputs("nmp.onnx", sound), strict=True):
        assert np.abs(theirs).max() > 0.3
        assert np.abs(ours - theirs).max() <= TOLERANCE
