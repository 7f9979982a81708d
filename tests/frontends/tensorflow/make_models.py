"""Makes tests/data/tensorflow with TensorFlow and Keras: networks of our own, frozen, with their expected outputs.

    python3 -m venv VENV; VENV/bin/pip install 'tensorflow-cpu==2.21.0'
    PYTHONPATH=. VENV/bin/python tests/frontends/tensorflow/make_models.py [FOLDER]

Weights are random with a fixed seed; batch norms get statistics that are no identity. ``<net>.pb`` is the frozen graph,
``<net>.npz`` its inputs (``in:NAME``) and what TensorFlow computes for them (``out:NAME``).
"""

from __future__ import annotations

import io
import lzma
import os
import sys
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np
import tensorflow as tf
from keras import layers
from operator_cases import CASES, frozen_case

from xnncc.frontends.tensorflow.freeze import frozen
from xnncc.frontends.tensorflow.reference import TensorFlowReference
from xnncc.ir.plan import TensorInfo

FOLDER = Path(__file__).parents[2] / "data" / "tensorflow"


def _conv(x, filters, kernel, strides=1, **options):
    return layers.Conv2D(filters, kernel, strides, padding="same", use_bias=False, **options)(x)


def _block(x, filters, strides, expand):
    """An inverted residual of MobileNetV2 (Sandler et al. 2018)."""
    y = layers.ReLU(6.0)(layers.BatchNormalization()(_conv(x, x.shape[-1] * expand, 1)))
    if strides == 2:
        y = layers.ZeroPadding2D(((0, 1), (0, 1)))(y)
    y = layers.DepthwiseConv2D(3, strides, padding="same" if strides == 1 else "valid", use_bias=False)(y)
    y = layers.ReLU(6.0)(layers.BatchNormalization()(y))
    y = layers.BatchNormalization()(_conv(y, filters, 1))
    return layers.Add()([x, y]) if strides == 1 and x.shape[-1] == filters else y


def _backbone(x):
    x = layers.Rescaling(1 / 127.5, -1.0)(x)
    x = layers.ReLU(6.0)(layers.BatchNormalization()(_conv(x, 8, 3, 2)))
    x = _block(x, 8, 1, 2)
    x = _block(x, 16, 2, 3)
    return x, _block(_block(x, 16, 1, 3), 24, 2, 3)


def mobilenet():
    """MobileNetV2-like: ReLU6, SAME, an explicit pad before strides, squeeze-excite, global mean, softmax."""
    image = keras.Input((32, 32, 3), batch_size=1, name="image")
    _, x = _backbone(image)
    gate = layers.GlobalAveragePooling2D(keepdims=True)(x)
    gate = layers.Conv2D(24, 1, activation="sigmoid")(layers.Conv2D(6, 1, activation="relu")(gate))
    x = layers.Multiply()([x, gate])
    x = layers.ReLU(6.0)(layers.BatchNormalization()(_conv(x, 48, 1)))
    x = layers.Dropout(0.2)(layers.GlobalAveragePooling2D()(x))
    return keras.Model(image, layers.Dense(10, activation="softmax", name="scores")(x))


def recurrent(unroll):
    """An LSTM and a GRU over eight steps."""
    sound = keras.Input((8, 6), batch_size=1, name="sound")
    x = layers.LSTM(16, return_sequences=True, unroll=unroll)(sound)
    x = layers.GRU(12, unroll=unroll, reset_after=True)(x)
    return keras.Model(sound, layers.Dense(4, activation="tanh", name="state")(x))


def ssd():
    """Two scales of box and class heads, anchors decoded and scores softmaxed in the graph."""
    image = keras.Input((40, 40, 3), batch_size=1, name="image")
    boxes, scores = [], []
    for feature in _backbone(image):
        boxes.append(layers.Reshape((-1, 4))(layers.Conv2D(8, 3, padding="same")(feature)))
        scores.append(layers.Reshape((-1, 5))(layers.Conv2D(10, 3, padding="same")(feature)))
    offsets, logits = layers.Concatenate(axis=1)(boxes), layers.Concatenate(axis=1)(scores)
    count = offsets.shape[1]
    anchors = np.random.default_rng(3).uniform(0.1, 0.9, (1, count, 4)).astype("float32")
    centre = layers.Lambda(lambda t: t[..., :2] * 0.1 * anchors[..., 2:] + anchors[..., :2])(offsets)
    size = layers.Lambda(lambda t: tf.exp(tf.minimum(t[..., 2:] * 0.2, 4.0)) * anchors[..., 2:])(offsets)
    corners = layers.Lambda(lambda p: tf.concat([p[0] - p[1] / 2, p[0] + p[1] / 2], -1), name="boxes")([centre, size])
    return keras.Model(image, [corners, layers.Softmax(name="scores")(logits)])


def fake_quantised():
    """Convolutions between fake-quant nodes, per tensor and per channel, as quantisation-aware training leaves them."""
    rng = np.random.default_rng(5)
    w = rng.normal(0, 0.3, (3, 3, 3, 8)).astype("float32")
    low, high = w.min((0, 1, 2)), w.max((0, 1, 2))

    @tf.function(input_signature=[tf.TensorSpec([1, 12, 12, 3], name="image")])
    def run(image):
        x = tf.quantization.fake_quant_with_min_max_vars(image, -1.0, 1.0)
        k = tf.quantization.fake_quant_with_min_max_vars_per_channel(w, low, high, narrow_range=True)
        x = tf.nn.relu6(tf.nn.conv2d(x, k, 2, "SAME"))
        return {"features": tf.quantization.fake_quant_with_min_max_vars(x, 0.0, 6.0)}

    return run


NETWORKS = {
    "mobilenet": (mobilenet, {"image": ((1, 32, 32, 3), 0, 255)}),
    "recurrent_unrolled": (lambda: recurrent(True), {"sound": ((1, 8, 6), -1, 1)}),
    "recurrent_loop": (lambda: recurrent(False), {"sound": ((1, 8, 6), -1, 1)}),
    "ssd": (ssd, {"image": ((1, 40, 40, 3), 0, 255)}),
    "fake_quantised": (fake_quantised, {"image": ((1, 12, 12, 3), -1, 1)}),
}


def _with_statistics(model):
    """Give batch norms statistics and scales that are no identity."""
    rng = np.random.default_rng(1)
    for layer in model.layers:
        if isinstance(layer, layers.BatchNormalization):
            size = layer.gamma.shape
            layer.set_weights([rng.uniform(0.5, 1.5, size), rng.normal(0, 0.3, size), rng.normal(0, 0.2, size),
                               rng.uniform(0.5, 1.5, size)])  # fmt: skip
    return model


def _frozen(net, scratch: Path) -> bytes:
    if isinstance(net, keras.Model):
        folder = scratch / "saved"
        names = list(net.output_names)

        @tf.function(input_signature=[tf.TensorSpec(net.inputs[0].shape, name=net.inputs[0].name)])
        def run(x):
            return dict(zip(names, tf.nest.flatten(net(x, training=False)), strict=True))

        tf.saved_model.save(net, str(folder), signatures=run)
        return frozen(folder)
    module = tf.Module()
    tf.saved_model.save(module, str(scratch / "saved"), signatures=net)
    return frozen(scratch / "saved")


def main(folder: Path) -> None:
    import tempfile

    folder.mkdir(parents=True, exist_ok=True)
    for name, (make, inputs) in NETWORKS.items():
        keras.utils.set_random_seed(7)
        net = make()
        net = _with_statistics(net) if isinstance(net, keras.Model) else net
        with tempfile.TemporaryDirectory() as scratch:
            data = _frozen(net, Path(scratch))
        outputs = sorted(net.output_names) if isinstance(net, keras.Model) else ["features"]
        prefix = "serving_default_"
        rng = np.random.default_rng(0)
        graph = tf.compat.v1.GraphDef.FromString(data)
        holders = [node.name for node in graph.node if node.op == "Placeholder"]
        feeds = {}
        for given, (shape, low, high) in inputs.items():
            holder = next(h for h in holders if h.removeprefix(prefix) == given)
            feeds[holder] = rng.uniform(low, high, shape).astype("float32")
        infos = tuple(TensorInfo(output, (), "float32") for output in outputs)
        found = TensorFlowReference(folder, data, infos).run(feeds)
        (folder / f"{name}.pb").write_bytes(data)
        np.savez_compressed(
            folder / f"{name}.npz",
            **{f"in:{k}": v for k, v in feeds.items()}, **{f"out:{k}": v for k, v in found.items()},
        )  # fmt: skip
        print(name, len(data), {k: v.shape for k, v in found.items()})
    _operators(folder)


def _operators(folder: Path) -> None:
    """All operator cases in one file: ``<case>|graph``, ``<case>|in|NAME``, ``<case>|out|NAME``."""
    arrays = {}
    for name, case in CASES.items():
        data, feeds, found = frozen_case(case)
        arrays[f"{name}|graph"] = np.frombuffer(data, "uint8")
        arrays |= {f"{name}|in|{k}": v for k, v in feeds.items()} | {f"{name}|out|{k}": v for k, v in found.items()}
    plain = io.BytesIO()
    np.savez(plain, **arrays)
    packed = lzma.compress(plain.getvalue(), preset=9)  # the cases share their images and weights
    (folder / "operators.npz.xz").write_bytes(packed)
    print(len(CASES), "operator cases,", len(packed), "bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
