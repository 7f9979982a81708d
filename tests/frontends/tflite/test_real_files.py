"""Real networks give LiteRT's numbers: the import for all of them, and the built library for the stateful spotters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from real_files import FLOAT, MODELS, SPOTTERS, feed, logit, sampled, stream

from xnncc.frontends import load_model
from xnncc.frontends.evaluate import evaluate
from xnncc.frontends.tflite.interpret import Interpreter
from xnncc.frontends.tflite.read import read_tflite

EXPECTED = np.load(Path(__file__).resolve().parents[2] / "data" / "tflite" / "real.npz")
AUDIO = "serving_default_input_audio:0"
pytestmark = pytest.mark.e2e


def _file(name: str) -> Path:
    path = MODELS / name
    if not path.exists():
        pytest.skip(f"not fetched: tools/fetch_models.py {path.parent.relative_to(MODELS).parts[0]}")
    return path


@pytest.mark.parametrize("name", FLOAT)
def test_import_computes_what_litert_does(name: str) -> None:
    imported = load_model(_file(FLOAT[name]), check=False)
    outputs = evaluate(imported.mod, [feed(name, imported.inputs[0].shape)])[0]
    for info, ours in zip(imported.outputs, outputs, strict=True):
        theirs = EXPECTED[f"{name}/{info.name}"]
        scale = float(np.abs(theirs).max())
        assert scale > 0.1, "there is something to compare"
        assert float(np.abs(sampled(ours) - theirs).max()) <= 1e-4 * scale


@pytest.mark.parametrize("name", SPOTTERS)
def test_interpreter_follows_a_stream(name: str) -> None:
    path = _file(SPOTTERS[name])
    interpreter, last = Interpreter(read_tflite(path)), logit(path)[1]
    found = []
    for features in stream():
        outputs, kept = interpreter.run({AUDIO: features}, [last])
        found.append([outputs[0].item(), kept[last].item()])
    assert found == EXPECTED[name].tolist()
    assert len(np.unique(EXPECTED[name][:, 1])) > 10  # the stream moves it


@pytest.mark.parametrize("name", ["hey_mycroft", "okay_nabu"])
def test_built_spotter_follows_a_stream(name: str, tmp_path: Path) -> None:
    """The library keeps the states itself, and a reset begins anew."""
    import xnncc
    from xnncc.build import build

    built = build(_file(SPOTTERS[name]), "host", tmp_path / "out")
    assert [tensor["name"] for tensor in built.manifest["inputs"]] == [AUDIO] and len(built.manifest["states"]) == 6
    network = xnncc.load(built.directory)
    for _ in range(2):
        found = [network({AUDIO: features})["StatefulPartitionedCall:0"].item() for features in stream()]
        assert found == EXPECTED[name][:, 0].tolist()
        network.reset()
