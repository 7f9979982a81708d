"""Inputs fixed at build time and boxes in fixed rows, through the whole line: build, verify and manifest."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

import xnncc
from xnncc.build import build
from xnncc.errors import BadPackage
from xnncc.inputs import fixed_arrays
from xnncc.verify import verify


def _saved(path: Path, operator: str, inputs: list[tuple[str, int, list[int]]], weights: list[TensorProto]) -> Path:
    infos = [helper.make_tensor_value_info(*entry) for entry in inputs]
    names = [info.name for info in infos] + [weight.name for weight in weights]
    node = helper.make_node(operator, names, ["y"], name="the_node")
    graph = helper.make_graph([node], "g", infos, [helper.make_empty_tensor_value_info("y")], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path.write_bytes(model.SerializeToString())
    return path


@pytest.fixture(scope="module")
def reshaped(tmp_path_factory):
    """A network that takes its output's shape as an input, and the artefact for one such shape."""
    folder = tmp_path_factory.mktemp("fixed")
    model = _saved(
        folder / "m.onnx", "Reshape", [("x", TensorProto.FLOAT, [2, 3, 4]), ("shape", TensorProto.INT64, [2])], []
    )
    return model, build(model, "host", folder / "out", fixed={"shape": np.array([6, 4])})


def test_the_artefact_has_no_such_input(reshaped):
    _, result = reshaped
    x = np.arange(24, dtype="float32").reshape(2, 3, 4)
    with xnncc.load(result.directory) as net:
        assert np.array_equal(net({"x": x})["y"], x.reshape(6, 4))
    assert [entry["name"] for entry in result.manifest["inputs"]] == ["x"]


def test_the_manifest_keeps_the_value_and_verify_reads_it(reshaped):
    model, result = reshaped
    manifest = json.loads((result.directory / "manifest.json").read_text())
    assert [(entry["name"], entry["shape"], entry["dtype"]) for entry in manifest["fixed"]] == [("shape", [2], "int64")]
    assert fixed_arrays(manifest)["shape"].tolist() == [6, 4]
    assert verify(model, result.directory).passed


@pytest.mark.parametrize("change", [{"base64": "?"}, {"dtype": "what"}, {"shape": [3]}, {"base64": 5}])
def test_a_damaged_value_in_the_manifest_is_refused(reshaped, change):
    entry = reshaped[1].manifest["fixed"][0]
    with pytest.raises(BadPackage, match="its fixed inputs are damaged"):
        fixed_arrays({"fixed": [entry | change]})


def test_boxes_in_fixed_rows(tmp_path):
    rng = np.random.default_rng(2)
    middle, sides = rng.uniform(0, 10, (1, 20, 2)), rng.uniform(1, 6, (1, 20, 2))
    feeds = {
        "boxes": np.concatenate([middle, middle + sides], 2).astype("float32"),
        "scores": rng.uniform(0, 1, (1, 2, 20)).astype("float32"),
    }
    inputs = [(name, TensorProto.FLOAT, list(array.shape)) for name, array in feeds.items()]
    weights = [
        helper.make_tensor("most", TensorProto.INT64, [1], [5]),
        helper.make_tensor("overlap", TensorProto.FLOAT, [1], [0.3]),
        helper.make_tensor("score", TensorProto.FLOAT, [1], [0.8]),
    ]
    model = _saved(tmp_path / "m.onnx", "NonMaxSuppression", inputs, weights)
    result = build(model, "host", tmp_path / "out", nms_rows=10, samples=feeds)
    assert result.manifest["nms_rows"] == 10
    assert any("exactly 10 rows" in warning for warning in result.warnings)
    assert verify(model, result.directory, samples=feeds).passed
    with xnncc.load(result.directory) as net:
        rows = net(feeds)["y"]
    found = rows[rows[:, 0] >= 0]
    assert 2 <= len(found) < 10 and (rows[len(found) :] == -1).all()
