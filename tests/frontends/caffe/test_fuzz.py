"""A thousand damaged files: each is read, or refused in one sentence of ours; never another exception."""

from __future__ import annotations

import random

import numpy as np
import pytest
from caffe_files import caffemodel, input_text, layer_text, save

from xnncc.errors import XnnccError
from xnncc.frontends import load_model
from xnncc.frontends.caffe.read import read_net

TEXT = (
    input_text("data", (1, 3, 8, 8))
    + layer_text("Convolution", "convolution_param { num_output: 4 kernel_size: 3 pad: 1 stride: 2 }", top=["c"])
    + layer_text("BatchNorm", "", ["c"], ["c"])
    + layer_text(
        "Pooling", "pooling_param { pool: AVE kernel_size: 2 stride: 2 } include { phase: TEST }", ["c"], ["p"]
    )
    + layer_text("Reshape", "reshape_param { shape { dim: 0 dim: -1 } }", ["p"], ["r"])
    + layer_text("InnerProduct", "inner_product_param { num_output: 5 }", ["r"])
)
WEIGHTS = {
    "convolution": [np.ones((4, 3, 3, 3)), np.ones(4)],
    "batchnorm": [np.ones(4), np.ones(4), np.ones(1)],
    "innerproduct": [np.ones((5, 16)), np.ones(5)],
}
WORDS = [
    "-1",
    "0",
    "99999999999",
    "{",
    "}",
    '"',
    ":",
    "dim: 4",
    "nan",
    "layer",
    "MAX",
    "1e400",
    "\\",
    "top: 'c'",
    "[",
    ">",
]


def _damaged(data: bytes, rng: random.Random) -> bytes:
    """Return ``data`` with a few bytes changed, cut out, doubled, or replaced by a word."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(out)) if out else 0
        end = min(at + rng.randint(1, 12), len(out))
        kind = rng.randrange(5)
        if kind == 0 and out:
            out[at] = rng.randrange(256)
        elif kind == 1:
            del out[at:end]
        elif kind == 2:
            out[at:at] = out[at:end]
        elif kind == 3:
            out[at:end] = rng.choice(WORDS).encode()
        else:
            out = out[:at] if rng.random() < 0.3 else out
    return bytes(out)


@pytest.mark.parametrize("seed", range(10))
def test_reading_damaged_files(tmp_path, seed):
    rng = random.Random(seed)
    path = save(tmp_path, TEXT, WEIGHTS)
    good = path.read_bytes(), caffemodel(WEIGHTS, packed=bool(seed % 2), legacy=seed % 3 == 0)
    read = 0
    for index in range(100):
        path.write_bytes(_damaged(good[0], rng) if index % 2 else good[0])
        path.with_suffix(".caffemodel").write_bytes(good[1] if index % 2 else _damaged(good[1], rng))
        try:
            read_net(path)
            read += 1
        except XnnccError as error:
            assert "\n" not in str(error) and len(str(error)) < 2000
    assert 5 < read < 95, "some damage goes unseen, some is found"


@pytest.mark.parametrize("seed", range(4))
def test_importing_damaged_files(tmp_path, seed):
    rng = random.Random(1000 + seed)
    path = save(tmp_path, TEXT, WEIGHTS)
    good = path.read_bytes()
    for _ in range(25):
        path.write_bytes(_damaged(good, rng))
        try:
            load_model(path)
        except XnnccError as error:
            assert len(str(error)) < 4000
