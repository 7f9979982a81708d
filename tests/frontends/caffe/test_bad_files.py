"""Broken files: one clear sentence each, of the right class, naming the file, the layer and what to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from caffe_files import caffemodel, field, input_text, layer_text, number, save

from xnncc.errors import BadModel, ShapeError, UnsupportedModel, XnnccError
from xnncc.frontends import load_model

DATA = input_text("data", (1, 3, 8, 8))
CONV = layer_text("Convolution", "convolution_param { num_output: 4 kernel_size: 3 }")
WEIGHTS = {"convolution": [np.ones((4, 3, 3, 3)), np.ones(4)]}


def refusal(folder: Path, text: str, blobs=None, kind: type[XnnccError] = BadModel, **options) -> str:
    """Return the sentence with which the import refuses the network; checks its form."""
    with pytest.raises(kind) as caught:
        load_model(save(folder, text, blobs, **options))
    assert type(caught.value) is kind
    sentence = str(caught.value)
    assert "net." in sentence and sentence.endswith((".", "?", "8", "4", "l")) and "\n" not in sentence, sentence
    return sentence.replace(str(folder) + "/", "")


def test_the_good_one_is_good(tmp_path):
    assert load_model(save(tmp_path, DATA + CONV, WEIGHTS)).outputs[0].shape == (1, 4, 6, 6)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "net.prototxt: the file is empty"),
        ("layer {\n  name: 'a'\n", "line 2: the file is cut off: the '{' of line 1 is never closed"),
        ("layer { name: 'a' ] }", "line 1: expected a field's name, found ']'"),
        ("layer {\n name 'a' }", "line 2: expected ':' or '{' after 'name', found \"'a'\""),
        ("layer { name: }", "line 1: expected a value, found '}'"),
        ("\x01\x02", "line 1: unexpected '\\x01'"),
        ("name: 'net'", "there are no layers in it that run at inference"),
        (CONV, "the network has no input"),
        (DATA + DATA + CONV, "two inputs are called 'data'"),
        (DATA + "layer { name: 'a' bottom: 'data' top: 'a' }", "layer 'a' (line 2) has no type"),
        (DATA + "layer { name: 'a' name: 'b' type: 'ReLU' }", "line 2: a layer needs exactly one 'name'"),
        (DATA + layer_text("ReLU", bottom=["gone"]), "layer 'relu' reads blob 'gone', which no layer computes"),
        (DATA + layer_text("ReLU", bottom=["out"]), "layer 'relu' reads blob 'out', which it computes itself: a cycle"),
        (
            DATA + layer_text("ReLU", bottom=["b"], top=["a"]) + layer_text("TanH", bottom=["a"], top=["b"]),
            "layer 'relu' reads blob 'b', which only the later layer 'tanh' computes: a cycle, or layers out of order",
        ),
        (DATA + layer_text("ReLU") + layer_text("TanH"), "blob 'out' is computed by layer 'relu' and by layer 'tanh'"),
        (DATA + CONV + layer_text("Silence", bottom=["out"], top=[]), "no layer computes an output"),
        (DATA + "layers { name: 'a' type: RELU bottom: 'data' top: 'b' }", "both 'layer' and 'layers' are used"),
        ("layers { layer { name: 'a' type: 'conv' } bottom: 'data' }", "the format of 2013 (V0)"),
        (
            DATA + layer_text("ReLU", "include { phase: TEST } exclude { phase: TRAIN }"),
            "layer 'relu': it has include and exclude rules",
        ),
        ("input: 'a' input: 'b' input_dim: 1 input_dim: 3 input_dim: 8 input_dim: 8 " + CONV, "2 inputs, but 1 shapes"),
        (DATA.replace("dim: 8", "dim: eight", 1) + CONV, "dim is 'eight' (line 1), expected a whole number"),
    ],
)  # fmt: skip
def test_broken_text(tmp_path, text, words):
    assert words in refusal(tmp_path, text, WEIGHTS)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ("num_output: 4", "convolution_param gives no kernel_size"),
        ("kernel_size: 3", "convolution_param gives no num_output"),
        ("num_output: -4 kernel_size: 3", "num_output is -4, expected 0 to 2147483647"),
        ("num_output: 4 kernel_size: 3 group: 2", "3 channels to 4 outputs cannot be cut into 2 groups"),
        ("num_output: 4 num_output: 5 kernel_size: 3", "num_output is given 2 times"),
        ("num_output: 4 kernel_size: 30", "blob 0 (weights) is [4, 3, 3, 3], the layer needs [4, 3, 30, 30]"),
        ("num_output: 4 kernel_size: 3 pad: 99999999", "pad is 99999999, larger than 65536"),
        ("num_output: 4 kernel_size: 3 dilation: 9", "a window of [19, 19] does not fit input [1, 3, 8, 8]"),
        ("num_output: 4 kernel_size: 3 kernel_h: 3", "gives both kernel_size and kernel_h, kernel_w"),
        ("num_output: 4 kernel_size: 3 stride: 0", "stride is 0, expected 1 to"),
        ("num_output: 4 kernel_size: { a: 1 }", "kernel_size is a message, a value was expected"),
        ("num_output: 4 kernel_size: 3 bias_term: 7", "bias_term is '7' (line 2), expected true or false"),
    ],
)
def test_broken_parameters_name_the_layer(tmp_path, params, words):
    text = DATA + layer_text("Convolution", f"convolution_param {{ {params} }}")
    sentence = refusal(tmp_path, text, WEIGHTS)
    assert "1 layer cannot be built: layer 'convolution' (Convolution): " in sentence and words in sentence


def test_missing_blob_names_the_flag(tmp_path):
    sentence = refusal(tmp_path, DATA + CONV, {"other": [np.ones(3)]})
    assert "blob 0 (weights [4, 3, 3, 3]) is missing: the weights have 0 for it. Give the .caffemodel" in sentence
    assert "--weights" in sentence


def test_every_broken_layer_is_named_at_once(tmp_path):
    text = DATA + "".join(layer_text("Convolution", "", top=[t]).replace('"convolution"', f'"{t}"') for t in ("a", "b"))
    sentence = refusal(tmp_path, text)
    assert (
        "2 layers cannot be built: layer 'a' (Convolution): " in sentence and "; layer 'b' (Convolution): " in sentence
    )


def test_every_unknown_type_is_named_at_once(tmp_path):
    text = DATA + layer_text("Frobnicate") + layer_text("LSTM", top=["b"]) + layer_text("Im2col", top=["c"])
    sentence = refusal(tmp_path, text, kind=UnsupportedModel)
    assert "3 types of layers are not supported: Frobnicate ('frobnicate'), Im2col ('im2col': " in sentence
    assert "LSTM ('lstm': recurrent layers of Caffe are not supported; export the network as ONNX)" in sentence


def test_training_network_says_what_to_give(tmp_path):
    text = DATA + CONV + layer_text("SoftmaxWithLoss", bottom=["out", "data"], top=["loss"])
    assert "give the prototxt for deployment" in refusal(tmp_path, text, WEIGHTS, UnsupportedModel)


def test_two_layers_with_weights_of_one_name(tmp_path):
    text = DATA + CONV + CONV.replace('"out"', '"two"')
    assert "2 layers with weights are called 'convolution'" in refusal(tmp_path, text, WEIGHTS)


@pytest.mark.parametrize(
    ("dims", "words"),
    [
        ((), "input 'data': has no shape. Give its shape: --shape data=1,3,224,224"),
        ((1, 3, -8, 8), "has the shape [1, 3, -8, 8], dimensions are at least 1"),
        ((1, 3, 0, 8), "has the shape [1, 3, 0, 8], dimensions are at least 1"),
        ((1, 3, 2000000, 2000000), "more than 268435456 elements"),
        ((1,) * 9, "has 9 dimensions, at most 8 are"),
    ],
)
def test_shapes_of_the_input(tmp_path, dims, words):
    text = input_text("data", dims) if dims else 'layer { name: "data" type: "Input" top: "data" }'
    assert words in refusal(tmp_path, text + CONV, WEIGHTS, ShapeError)


def test_shape_for_no_input(tmp_path):
    with pytest.raises(ShapeError, match="has no such input; did you mean 'data'"):
        load_model(save(tmp_path, DATA + CONV, WEIGHTS), {"dta": (1, 3, 8, 8)})


def stored(*blob: bytes) -> bytes:
    """Return a caffemodel of one layer with one blob."""
    return field(100, field(1, b"c") + field(7, b"".join(blob)))


def shaped(dims: bytes) -> bytes:
    return field(7, field(1, dims))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "net.caffemodel: the file is empty"),
        (caffemodel(WEIGHTS)[:-7], "net.caffemodel: cut off, damaged, or no caffemodel"),
        (b"PK\x03\x04 a zip archive", "net.caffemodel: "),
        (b"\x89HDF\r\n", "an HDF5 file, not protobuf"),
        (field(1, b"net"), "there are no layers in it, so it is no caffemodel"),
        (stored(number(1, 2), number(2, 3), field(5, bytes(8))), "has 2 values, its shape [2, 3, 1, 1] needs 6"),
        (stored(shaped(b"\x02"), field(5, bytes(7))), "holds no whole number of values"),
        (stored(shaped(b"\xff" * 9 + b"\x01"), field(5, bytes(4))), "has the shape [-1]"),
        (stored(shaped(b"\x01" * 9), field(5, bytes(4))), "has the shape [1, 1, 1"),
        (caffemodel(WEIGHTS) + caffemodel(WEIGHTS), "two layers with weights are called 'convolution'"),
    ],
)
def test_broken_weights(tmp_path, data, words):
    path = save(tmp_path, DATA + CONV)
    path.with_suffix(".caffemodel").write_bytes(data)
    with pytest.raises(BadModel) as caught:
        load_model(path)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_weights_that_are_not_there(tmp_path):
    path = save(tmp_path, DATA + CONV)
    path.with_suffix(".caffemodel").unlink()
    with pytest.raises(BadModel, match=r"net.caffemodel are not there. Name the .caffemodel with --weights FILE."):
        load_model(path)


def test_weights_given_as_the_model(tmp_path):
    path = save(tmp_path, DATA + CONV, WEIGHTS).with_suffix(".caffemodel")
    with pytest.raises(BadModel, match=r"these are the weights only. Give the network: .*net.prototxt --weights"):
        load_model(path)


def test_weights_for_a_format_that_has_them_inside(tmp_path):
    (tmp_path / "m.onnx").touch()
    with pytest.raises(BadModel, match=r"holds its weights itself\. Leave --weights out\."):
        load_model(tmp_path / "m.onnx", weights=tmp_path / "w.caffemodel")


def test_a_tower_of_messages(tmp_path):
    assert "nested more than 64 deep" in refusal(tmp_path, DATA + "a { " * 5000)


def test_a_result_too_large(tmp_path):
    text = DATA + layer_text("Tile", "tile_param { tiles: 2000000000 }")
    assert "has more than 268435456 elements" in refusal(tmp_path, text, kind=UnsupportedModel)


@pytest.mark.parametrize("field", ["fixed_size: 20", "fixed_ratio: 1", "density: 4", "width: 20", "height: 20"])
def test_priors_of_other_forks(tmp_path, field):
    text = DATA + layer_text("PriorBox", f"prior_box_param {{ min_size: 8 {field} }}", ["data", "data"])
    words = f"prior_box_param {field.split(':')[0]} is not supported. Use min_size, max_size and aspect_ratio"
    assert words in refusal(tmp_path, text, kind=UnsupportedModel)


def test_boxes_in_pixels(tmp_path):
    text = DATA + layer_text("PriorBox", "prior_box_param { min_size: 8 }", ["data", "data"], ["priors"])
    text += input_text("loc", (1, 256)) + input_text("conf", (1, 128))
    params = "detection_output_param { num_classes: 2 normalized_bbox: false nms_param { nms_threshold: 0.4 } }"
    text += layer_text("DetectionOutput", params, ["loc", "conf", "priors"])
    sentence = refusal(tmp_path, text, kind=UnsupportedModel)
    assert "normalized_bbox is false: boxes in pixels are not supported" in sentence
