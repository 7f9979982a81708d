"""A streaming network, end to end: its state lives inside the artefact, on the host and in a wasm module."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

pytestmark = pytest.mark.e2e

UNITS, SIZE, RUNS = 5, 3, 6


def _streaming_gru(path: Path) -> Path:
    """x [1, 1, SIZE], h -> y, hn, one step of a GRU."""
    rng = np.random.default_rng(0)
    shapes = {"w": (1, 3 * UNITS, SIZE), "r": (1, 3 * UNITS, UNITS)}
    weights = [numpy_helper.from_array(rng.standard_normal(s).astype("float32"), n) for n, s in shapes.items()]
    node = helper.make_node("GRU", ["x", "w", "r", "", "", "h"], ["y", "hn"], hidden_size=UNITS)
    sizes = {"h": [1, 1, UNITS], "x": [1, 1, SIZE], "hn": [1, 1, UNITS], "y": [1, 1, 1, UNITS]}
    h, x, hn, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in sizes.items())
    graph = helper.make_graph([node], "stream", [h, x], [hn, y], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return path


def _expected(model: Path, chunks: np.ndarray) -> np.ndarray:
    import onnxruntime

    session, h, found = onnxruntime.InferenceSession(str(model)), np.zeros((1, 1, UNITS), "float32"), []
    for chunk in chunks:
        h, y = session.run(None, {"x": chunk, "h": h})
        found.append(y)
    return np.stack(found)


@pytest.fixture
def chunks() -> np.ndarray:
    return np.random.default_rng(1).standard_normal((RUNS, 1, 1, SIZE)).astype("float32")


def test_stream_on_the_host(tmp_path: Path, chunks: np.ndarray) -> None:
    import xnncc
    from xnncc.build import build
    from xnncc.verify import verify

    model = _streaming_gru(tmp_path / "stream.onnx")
    result = build(model, "host", tmp_path / "built", states=("h:hn",))
    assert [t["name"] for t in result.manifest["inputs"] + result.manifest["outputs"]] == ["x", "y"]
    assert result.manifest["states"] == [{"input": "h", "output": "hn"}]
    assert verify(model, tmp_path / "built", layers=True).passed
    with xnncc.load(tmp_path / "built", threads=1) as net:
        first = np.stack([net(chunk)["y"] for chunk in chunks])
        net.reset()
        again = np.stack([net(chunk)["y"] for chunk in chunks])
    assert np.abs(first - _expected(model, chunks)).max() < 1e-6
    assert np.array_equal(first, again)


_NODE = """
import { readFileSync } from "node:fs";
const { load } = await import(process.argv[2]);
const net = await load();
const chunks = JSON.parse(readFileSync(0, "utf8"));
const stream = () => chunks.map((x) => Array.from(net.run({ x: Float32Array.from(x) }).y));
const first = stream();
net.reset();
console.log(JSON.stringify([first, stream()]));
"""


def test_stream_in_a_wasm_module(tmp_path: Path, chunks: np.ndarray) -> None:
    from xnncc.build import build

    node = shutil.which("node") or shutil.which("nodejs")
    if node is None:
        pytest.skip("there is no node")
    model = _streaming_gru(tmp_path / "stream.onnx")
    build(model, "web-wasm", tmp_path / "built", states=("h:hn",))
    (tmp_path / "drive.mjs").write_text(_NODE)
    module = (tmp_path / "built" / "stream.mjs").as_uri()
    text = json.dumps(chunks.reshape(RUNS, SIZE).tolist())
    command = [node, str(tmp_path / "drive.mjs"), module]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first, again = (np.array(part, "float32") for part in json.loads(done.stdout))
    assert np.abs(first - _expected(model, chunks).reshape(RUNS, UNITS)).max() < 1e-6
    assert np.array_equal(first, again)
