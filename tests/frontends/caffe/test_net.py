"""What of a prototxt runs at inference, and what its tensors are called."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from caffe_files import caffemodel, input_text, layer_text, save

from xnncc.frontends import load_model
from xnncc.frontends.caffe.prototxt import read_prototxt
from xnncc.frontends.caffe.read import read_net

DATA = input_text("data", (1, 3, 8, 8))


def net_of(folder: Path, text: str, blobs=None, **options):
    return read_net(save(folder, text, blobs, **options))


def types(net) -> list[str]:
    return [layer.type for layer in net.layers]


@pytest.mark.parametrize(
    ("rules", "runs"),
    [
        ("", True),
        ("include { phase: TEST }", True),
        ("include { phase: TRAIN }", False),
        ("include { phase: TRAIN } include { phase: TEST }", True),
        ("exclude { phase: TEST }", False),
        ("exclude { phase: TRAIN }", True),
        ("include { phase: 1 }", True),
        ("include { min_level: 1 }", False),
        ("include { max_level: 0 }", True),
        ("include { stage: 'deploy' }", False),
        ("include { not_stage: 'deploy' }", True),
        ("exclude { stage: 'deploy' }", True),
    ],
)
def test_phases_levels_and_stages(tmp_path, rules, runs):
    net = net_of(tmp_path, DATA + layer_text("TanH") + layer_text("ReLU", rules, top=["other"]))
    assert ("ReLU" in types(net)) is runs


def test_old_inputs(tmp_path):
    shapes = "input: 'a' input: 'b' " + "".join(f"input_dim: {d} " for d in (1, 3, 4, 5, 2, 6, 7, 8))
    net = net_of(tmp_path, shapes + layer_text("ReLU", bottom=["a"]))
    assert net.inputs == (("a", (1, 3, 4, 5)), ("b", (2, 6, 7, 8)))


def test_input_shape(tmp_path):
    net = net_of(tmp_path, "input: 'a' input_shape { dim: [1, 3, 9] }" + layer_text("ReLU", bottom=["a"]))
    assert net.inputs == (("a", (1, 3, 9)),)


def test_one_shape_for_two_tops(tmp_path):
    text = 'layer { name: "in" type: "Input" top: "a" top: "b" input_param { shape { dim: 2 dim: 3 } } }'
    net = net_of(tmp_path, text + layer_text("Eltwise", bottom=["a", "b"]))
    assert net.inputs == (("a", (2, 3)), ("b", (2, 3)))


def test_v1_layers(tmp_path, load):
    text = """input: 'data' input_dim: 1 input_dim: 2 input_dim: 5 input_dim: 5
        layers { name: 'ip' type: INNER_PRODUCT bottom: 'data' top: 'ip' blobs_lr: 1 weight_decay: 1
                 inner_product_param { num_output: 3 } }
        layers { name: 'r' type: RELU bottom: 'ip' top: 'ip' }
        layers { name: 'loss' type: SOFTMAX_LOSS bottom: 'ip' bottom: 'data' top: 'l' include: { phase: TRAIN } }
        layers { name: 'p' type: SOFTMAX bottom: 'ip' top: 'p' }"""
    weight, bias = np.random.default_rng(1).normal(size=(1, 1, 3, 50)), np.ones((1, 1, 1, 3))
    imported = load(text, {"ip": [weight, bias]}, v1=True, legacy=True)
    assert [info.name for info in imported.outputs] == ["p"] and imported.check.max_relative_error < 1e-6
    assert imported.warnings == ()


@pytest.mark.parametrize("options", [{}, {"legacy": True}, {"packed": False}, {"double": True}, {"v1": True}])
def test_every_way_to_store_a_blob(tmp_path, options):
    values = np.random.default_rng(2).normal(size=(2, 3)).astype("f4")
    net = net_of(tmp_path, DATA + layer_text("ReLU"), {"relu": [values]}, **options)
    assert np.array_equal(net.layers[0].blobs[0].reshape(2, 3), values)


def test_half_precision_of_a_fork(tmp_path):
    from caffe_files import field, number

    values = np.array([0.5, -2.0, 3.25], "<f2")
    blob = field(7, field(1, b"\x03")) + number(10, 2) + field(12, values.tobytes())
    path = save(tmp_path, DATA + layer_text("ReLU"))
    path.with_suffix(".caffemodel").write_bytes(field(100, field(1, b"relu") + field(7, blob)))
    assert read_net(path).layers[0].blobs[0].tolist() == [0.5, -2.0, 3.25]


def test_in_place_layers_have_tensors_of_their_own(tmp_path):
    text = DATA + layer_text("TanH", bottom=["data"], top=["data"]) + layer_text("AbsVal", top=["a"])
    text += layer_text("Power", "power_param { scale: 3 }", ["a"], ["a"]) + layer_text("ReLU", "", ["a"], ["a"])
    net = net_of(tmp_path, text)
    assert [(layer.inputs, layer.outputs) for layer in net.layers] == [
        (("data",), ("data@tanh",)),
        (("data@tanh",), ("a@absval",)),
        (("a@absval",), ("a@power",)),
        (("a@power",), ("a",)),
    ]
    assert net.outputs == ("a",)


def test_in_place_keeps_what_others_read_before(tmp_path, load):
    """The sum reads 'a' after the ReLU, the concatenation before."""
    x = np.array([[-1.0, 2.0]], "f4")
    text = input_text("data", (1, 2)) + layer_text("Power", "power_param { scale: 2 }", top=["a"])
    text += layer_text("Concat", "", ["a", "data"], ["before"]) + layer_text("ReLU", "", ["a"], ["a"])
    text += layer_text("Eltwise", "", ["a", "data"], ["after"])
    outputs = load(text, None, {"data": x}).reference({"data": x})
    assert outputs["before"].tolist() == [[-2, 4, -1, 2]] and outputs["after"].tolist() == [[-1, 6]]


def test_outputs_are_what_nobody_reads_in_order_of_computation(tmp_path):
    net = net_of(tmp_path, DATA + layer_text("TanH", top=["z"]) + layer_text("ReLU", top=["a"]))
    assert net.outputs == ("z", "a")


def test_silence_takes_an_output_away(tmp_path):
    text = DATA + layer_text("TanH", top=["z"]) + layer_text("ReLU", top=["a"]) + layer_text("Silence", "", ["z"], [])
    assert net_of(tmp_path, text).outputs == ("a",)


def test_weights_shared_by_name(tmp_path, load):
    shape = "inner_product_param { num_output: 2 } param { name: 'w' } param { name: 'b' }"
    text = input_text("data", (1, 3)) + layer_text("InnerProduct", shape, top=["a"])
    text += layer_text("InnerProduct", shape, top=["b"]).replace('"innerproduct"', '"second"')
    x = np.array([[1, 2, 3]], "f4")
    blobs = {"innerproduct": [np.arange(6).reshape(2, 3), np.ones(2)]}
    outputs = load(text, blobs, {"data": x}).reference({"data": x})
    assert outputs["a"].tolist() == outputs["b"].tolist() == [[9, 27]]


def test_weights_elsewhere(tmp_path):
    path = save(tmp_path, DATA + layer_text("PReLU"))
    path.with_suffix(".caffemodel").unlink()
    other = tmp_path / "trained_iter_1000.caffemodel"
    other.write_bytes(caffemodel({"prelu": [np.ones(3)]}))
    assert load_model(path, weights=other).check.max_relative_error < 1e-6


def test_parameter_layer(load):
    text = input_text("data", (1, 3)) + layer_text(
        "Parameter", "parameter_param { shape { dim: 1 dim: 3 } }", [], ["p"]
    )
    text += layer_text("Eltwise", "", ["data", "p"])
    x = np.array([[1, 2, 3]], "f4")
    assert load(text, {"parameter": [np.array([[5, 6, 7]])]}, {"data": x}).reference({"data": x})["out"].tolist() == [
        [6, 8, 10]
    ]


def test_what_is_not_known_is_said(load):
    text = DATA + layer_text("Pooling", "pooling_param { kernel_size: 2 frobnicate: 3 } shiny_param { a: 1 } odd: 4")
    imported = load(text + "\nunheard_of: 7")
    assert imported.warnings == (
        "net.prototxt: field 'unheard_of' is not known and was left out",
        "layer 'pooling' (Pooling): field 'odd' is not known and was left out",
        "layer 'pooling' (Pooling): field 'shiny_param' is not known and was left out",
        "layer 'pooling' (Pooling): field 'pooling_param.frobnicate' is not known and was left out",
    )


def test_weights_that_no_layer_takes_are_said(load):
    imported = load(DATA + layer_text("ReLU"), {"loss3": [np.ones(2)]})
    assert imported.warnings == ("weights of 1 layers are not used: loss3",)


def test_shape_flag_replaces_the_shape(tmp_path):
    path = save(tmp_path, DATA + layer_text("ReLU"))
    assert load_model(path, {"data": (2, 3, 5, 7)}).outputs[0].shape == (2, 3, 5, 7)


def test_text_format(tmp_path):
    path = tmp_path / "net.prototxt"
    path.write_text("# a comment\na: \"x\\ty\" 'z'; b < c: -1.5e-3f, d: [1, 2] > e: true # behind\nb { c: 0x10 }")
    message = read_prototxt(path)
    assert message.texts("a") == ["x\tyz"]
    assert [m.texts("c") for m in message.messages("b")] == [["-1.5e-3f"], ["0x10"]]
    assert message.messages("b")[0].texts("d") == ["1", "2"]


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        ("ReLU6", "relu6_param { } relu_param { negative_slope: 0.1 }"),
        ("Sigmoid", "sigmoid_param { engine: CAFFE }"),
        ("TanH", "tanh_param { engine: CUDNN }"),
        ("Eltwise", "eltwise_param { operation: PROD stable_prod_grad: false }"),
        ("Dropout", "dropout_param { dropout_ratio: 0.3 }"),
    ],
)
def test_fields_for_training_are_passed_over(load, kind, params):
    assert load(DATA + layer_text(kind, params)).warnings == ()
