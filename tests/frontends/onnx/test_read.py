"""Files that are missing, cut, something else, or point outside of their folder."""

from __future__ import annotations

import contextlib
import io
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx_models import const, one_node, random, save
from shared_cases import CASES, REFUSED

from xnncc.errors import BadModel, UnsupportedModel, XnnccError
from xnncc.frontends import load_model
from xnncc.frontends.onnx.read import read_onnx


def refusal(path: Path) -> str:
    with pytest.raises(BadModel) as found:
        load_model(path)
    return str(found.value)


@pytest.fixture
def relu(tmp_path):
    return save(one_node("Add", random(64), const(random(64)))[0], tmp_path / "m.onnx")


def test_reads_a_model(relu):
    assert [node.op_type for node in read_onnx(relu).graph.node] == ["Add"]


def test_missing_empty_and_folder(tmp_path):
    assert "no such file" in refusal(tmp_path / "none.onnx")
    (tmp_path / "e.onnx").touch()
    assert "the file is empty" in refusal(tmp_path / "e.onnx")
    (tmp_path / "d.onnx").mkdir()
    assert "this is a folder" in refusal(tmp_path / "d.onnx")


def test_cut_model(relu):
    relu.write_bytes(relu.read_bytes()[:-40])
    assert "cut off or damaged. Download or export the model again." in refusal(relu)


def _zip_with(name: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, "x")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"<!DOCTYPE html><html>", "a web page"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer: run 'git lfs pull'"),
        (b"\x1c\x00\x00\x00TFL3" + bytes(40), "a TensorFlow Lite model"),
        (_zip_with("archive/data.pkl"), "a PyTorch file: export the network with torch.onnx.export"),
        (_zip_with("x"), "a zip archive"),
        (b"\x80\x02}q\x00", "a Python pickle"),
        (b'{"a": 1}', "a JSON file"),
        (b'name: "net"\nlayer {\n', "a Caffe prototxt"),
        (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    ],
)
def test_other_files_are_recognised(tmp_path, content, words):
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    assert words in refusal(path)


def test_graph_without_output(tmp_path):
    model = one_node("Relu", random(2))[0]
    del model.graph.output[:]
    assert "the graph has no output" in refusal(save(model, tmp_path / "m.onnx"))


def _external(path: Path, location: str) -> Path:
    model = onnx.load(path, load_external_data=False)
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    del tensor.external_data[:]
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    return save(model, path)


def test_external_data_beside_the_model_is_read(relu):
    weights = random(64, seed=5)
    (relu.parent / "w.bin").write_bytes(weights.tobytes())
    model = read_onnx(_external(relu, "w.bin"))
    assert (onnx.numpy_helper.to_array(model.graph.initializer[0]) == weights).all()


def test_external_data_missing_outside_or_short(relu):
    assert "keeps its data in 'w.bin', which is missing. Put 'w.bin' beside the model" in refusal(
        _external(relu, "w.bin")
    )
    for location in ("../w.bin", "/etc/passwd", ""):
        assert "outside the model's folder" in refusal(_external(relu, location))
    (relu.parent / "w.bin").write_bytes(bytes(10))
    assert "damaged" in refusal(_external(relu, "w.bin"))


def test_damaged_models_are_refused_in_words_or_still_right(tmp_path):
    """Bytes changed at random: whatever comes of it, a user reads a sentence and no traceback."""
    rng = np.random.default_rng(7)
    intact = [make()[0].SerializeToString() for name, make in sorted(CASES.items()) if name not in REFUSED]
    path = tmp_path / "m.onnx"
    for _ in range(300):
        data = bytearray(intact[rng.integers(len(intact))])
        for at in rng.integers(0, len(data), rng.integers(1, 5)):
            data[at] = rng.integers(256)
        path.write_bytes(data[: len(data) if rng.random() > 0.1 else rng.integers(len(data))])
        with contextlib.suppress(XnnccError):
            load_model(path)


def test_attributes_of_another_type_are_refused(load):
    model, feeds = one_node("Softmax", random(2, 3), axis=1.5)
    with pytest.raises(UnsupportedModel, match="attribute 'axis' has type float, the standard says int"):
        load(model, feeds)


def test_sparse_weights(tmp_path):
    model = one_node("Relu", random(2))[0]
    model.graph.sparse_initializer.add().values.name = "s"
    with pytest.raises(UnsupportedModel, match="sparse weights are not supported: 's'"):
        load_model(save(model, tmp_path / "m.onnx"))


def test_local_functions_are_inlined(load, operators):
    model, feeds = one_node("Twice", random(3), domain="mine")
    add = onnx.helper.make_node("Add", ["a", "a"], ["b"])
    opset = [onnx.helper.make_opsetid("", 18)]
    model.functions.append(onnx.helper.make_function("mine", "Twice", ["a"], ["b"], [add], opset))
    assert operators(load(model, feeds)) == ["add"]
