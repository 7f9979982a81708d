"""What inspect finds in models of all formats, right and unsupported ones, with and without their weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from caffe_files import save
from graph_writing import const as tf_const
from graph_writing import graph, node, placeholder
from onnx import TensorProto, helper, numpy_helper
from tflite_models import Out, T, one_operator
from tflite_models import const as tflite_const

from xnncc.errors import BadModel
from xnncc.frontends.survey import OWN_OPERATOR, Survey, survey_model

KERNEL = np.ones((4, 3, 3, 3), "float32")


def _onnx(path: Path, *nodes: onnx.NodeProto, width: int | str = 8, kernel: onnx.TensorProto | None = None) -> Path:
    weight = kernel or numpy_helper.from_array(KERNEL, "k")
    conv = helper.make_node("Conv", ["x", "k"], ["c"], name="conv1")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, width])
    last = nodes[-1].output[0] if nodes else "c"
    y = helper.make_tensor_value_info(last, TensorProto.FLOAT, None)
    model = helper.make_graph([conv, *nodes], "g", [x], [y], [weight])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("my.own", 1)]
    onnx.save(helper.make_model(model, opset_imports=opsets, ir_version=8), path)
    return path


def _survey(path: Path, **shapes: tuple[int, ...]) -> Survey:
    found = survey_model(path, shapes)
    assert found is not None
    return found


def test_onnx_that_can_be_built(tmp_path: Path) -> None:
    found = _survey(_onnx(tmp_path / "m.onnx", helper.make_node("Relu", ["c"], ["y"])))
    assert [(n.kind, n.name, n.weight_bytes) for n in found.nodes] == [("Conv", "conv1", 432), ("Relu", "y", 0)]
    assert found.unsupported == () and found.note == ""
    assert found.macs == {"node 'conv1' (Conv)": 4 * 6 * 6 * 27}
    assert found.inputs == ({"name": "x", "shape": [1, 3, 8, 8], "dtype": "float"},)


def test_onnx_names_all_unknown_operators_at_once(tmp_path: Path) -> None:
    twirl = helper.make_node("Twirl", ["c"], ["t"], name="twirl1", domain="my.own")
    noise = helper.make_node("RandomNormalLike", ["t"], ["r"], name="noise")
    found = _survey(_onnx(tmp_path / "m.onnx", twirl, noise))
    assert [(u.kind, u.name) for u in found.unsupported] == [("RandomNormalLike", "noise"), ("my.own.Twirl", "twirl1")]
    assert found.unsupported[0].next == "Make the random numbers an input of the model"
    assert found.unsupported[1].why == "the operator is not supported" and found.unsupported[1].next == OWN_OPERATOR
    assert found.macs is None


def test_onnx_tells_why_an_attribute_is_refused(tmp_path: Path) -> None:
    pool = helper.make_node("MaxPool", ["c"], ["y"], name="pool1", kernel_shape=[2, 2], colour="blue")
    (refused,) = _survey(_onnx(tmp_path / "m.onnx", pool)).unsupported
    assert (refused.kind, refused.name) == ("MaxPool", "pool1")
    assert refused.why == "attribute 'colour' is not supported" and refused.next == OWN_OPERATOR


def test_onnx_with_free_dimensions_needs_a_shape_for_the_rest(tmp_path: Path) -> None:
    path = _onnx(tmp_path / "m.onnx", width="w")
    found = _survey(path)
    assert found.macs is None and "input 'x' is [1, 3, 8, w]" in found.note
    assert _survey(path, x=(1, 3, 8, 8)).note == ""


def test_onnx_without_its_external_weights(tmp_path: Path) -> None:
    kernel = onnx.TensorProto(name="k", data_type=TensorProto.FLOAT, dims=KERNEL.shape, data_location=1)
    kernel.external_data.add(key="location", value="gone.bin")
    found = _survey(_onnx(tmp_path / "m.onnx", helper.make_node("Nope", ["c"], ["y"], name="n"), kernel=kernel))
    assert [u.name for u in found.unsupported] == ["n"]
    assert found.nodes[0].weight_bytes == 432 and "'gone.bin', which is missing" in found.note


CAFFE = """
name: "n" input: "x" input_shape { dim: 1 dim: 3 dim: 8 dim: 8 }
layer { name: "conv1" type: "Convolution" bottom: "x" top: "c"
  convolution_param { num_output: 4 kernel_size: 3 bias_term: false } }
"""
TWIRL = 'layer { name: "twirl1" type: "Twirl" bottom: "c" top: "t" }\n'


def test_caffe(tmp_path: Path) -> None:
    path = save(tmp_path, CAFFE, {"conv1": [KERNEL]})
    found = _survey(path)
    assert [(n.kind, n.name, n.weight_bytes) for n in found.nodes] == [("Convolution", "conv1", 432)]
    assert found.macs == {"layer 'conv1' (Convolution)": 4 * 36 * 27} and not found.unsupported
    (tmp_path / path.with_suffix(".caffemodel").name).unlink()
    path.write_text(CAFFE + TWIRL + 'layer { name: "lstm" type: "LSTM" bottom: "t" top: "l" }\n')
    without = _survey(path)
    assert [(u.kind, u.name) for u in without.unsupported] == [("LSTM", "lstm"), ("Twirl", "twirl1")]
    assert "are not there. Name the .caffemodel with --weights FILE." in without.note


def test_tensorflow(tmp_path: Path) -> None:
    weights = np.ones((3, 3, 3, 4), "float32")
    conv = node("c", "Conv2D", "x", "w/read", strides=[1, 1, 1, 1], padding="VALID")
    nodes = [placeholder("x", (1, 8, 8, 3)), tf_const("w", weights), node("w/read", "Identity", "w"), conv]
    (tmp_path / "m.pb").write_bytes(graph(*nodes))
    found = _survey(tmp_path / "m.pb")
    assert [(n.kind, n.weight_bytes) for n in found.nodes] == [("Identity", 0), ("Conv2D", 432)]
    assert found.macs == {"node 'c' (Conv2D)": 4 * 36 * 27} and not found.unsupported
    nodes += [node("t", "Twirl", "c"), node("v", "CropAndResize", "t")]
    (tmp_path / "m.pb").write_bytes(graph(*nodes))
    bad = _survey(tmp_path / "m.pb").unsupported
    assert [(u.kind, u.name) for u in bad] == [("CropAndResize", "v"), ("Twirl", "t")]
    assert bad[0].next == "end the network before its post-processing and run that in the app"
    assert bad[1].next == OWN_OPERATOR


def test_tflite(tmp_path: Path) -> None:
    image, kernel = T(np.zeros((1, 8, 8, 3), "float32")), tflite_const(np.ones((4, 3, 3, 3), "float32"))
    bias = tflite_const(np.zeros(4, "float32"))
    options = {"stride_h": 1, "stride_w": 1, "padding": 1}
    data, _ = one_operator("CONV_2D", image, kernel, bias, out=Out((1, 6, 6, 4)), **options)
    (tmp_path / "m.tflite").write_bytes(data)
    found = _survey(tmp_path / "m.tflite")
    assert [(n.kind, n.name, n.weight_bytes) for n in found.nodes] == [("CONV_2D", "y0", 448)]
    assert list((found.macs or {}).values()) == [4 * 36 * 27]
    data, _ = one_operator("Twirl", image, out=Out((1, 8, 8, 3)), custom=b"")
    (tmp_path / "m.tflite").write_bytes(data)
    (bad,) = _survey(tmp_path / "m.tflite").unsupported
    assert (bad.kind, bad.name, bad.why) == ("custom Twirl", "y0", "the operator is not supported")


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"Dear reader,\n")
    with pytest.raises(BadModel, match="not an ONNX model"):
        survey_model(tmp_path / "m.onnx", {})
