"""Broken files end in one sentence, exit code 1, and soon: no traceback, no crash, no memory filled."""

from __future__ import annotations

import resource
import time

import numpy as np
import pytest
from bad_files import BAD
from onnx_models import const, node, one_node, random, save
from onnx_models import info as declared
from onnx_models import model as made_of

from xnncc.cli.main import app
from xnncc.cli.messages import run_to_exit_code
from xnncc.errors import XnnccError
from xnncc.frontends import load_model

LONGEST_S = 60  # on a machine that does ten other things; alone each takes under a second
MOST_KIB = 2**20  # that one of them may add to the largest size of this process


@pytest.fixture(scope="module", autouse=True)
def _loaded_before(tmp_path_factory):
    """TVM and onnxruntime are loaded before time and memory count."""
    load_model(save(one_node("Relu", random(2))[0], tmp_path_factory.mktemp("warm") / "m.onnx"))


@pytest.mark.parametrize("name", BAD)
def test_one_sentence_and_exit_code_1(tmp_path, capfd, name):
    make, words = BAD[name]
    path = make(tmp_path)
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    code = run_to_exit_code(app, ["build", str(path), "--target", "host", "--output", str(tmp_path / "out"), "-q"])
    assert time.process_time() - started < LONGEST_S
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_KIB
    said = capfd.readouterr().err.strip().splitlines()
    assert code == 1, said
    assert len(said) == 2 and said[0].startswith("error: ") and words in said[0]
    assert said[0].endswith((".", "--shape x=1,3"))
    assert "Traceback" not in said[0] and len(said[0]) < 600
    assert said[1].startswith("  see docs/errors.md#")


def _small_model() -> bytes:
    nodes = [
        node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1], name="conv"),
        node("Relu", ["c"], ["r"]),
        node("Reshape", ["r", "s"], ["f"]),
        node("Gemm", ["f", "g"], ["y"], transB=1),
    ]
    weights = {"w": random(2, 1, 3, 3), "s": np.array([1, -1]), "g": random(3, 32)}
    return made_of(nodes, [declared("x", random(1, 1, 4, 4))], [declared("y")], weights).SerializeToString()


@pytest.mark.parametrize("seed", range(4))
def test_changed_bytes_end_in_a_sentence_or_a_network(tmp_path, seed):
    """Bytes flipped, cut out, doubled and overwritten with extreme numbers: only XnnccError comes out."""
    rng = np.random.default_rng(seed)
    intact, path, refused = _small_model(), tmp_path / "m.onnx", 0
    for _ in range(60):
        data = bytearray(intact)
        for _ in range(int(rng.integers(1, 4))):
            at, length = int(rng.integers(len(data))), int(rng.integers(1, 9))
            match int(rng.integers(4)):
                case 0:
                    data[at] ^= 1 << int(rng.integers(8))
                case 1:
                    del data[at : at + length]
                case 2:
                    data[at:at] = data[at : at + length]
                case 3:
                    data[at : at + length] = rng.choice([b"\xff" * 9 + b"\x01", b"\x00", b"\x7f\xff\xff\xff", b"\x80"])
        path.write_bytes(data)
        try:
            load_model(path)
        except XnnccError as error:
            refused += 1
            assert str(error).startswith((f"{path}", "--shape")) and "\n" not in str(error)
    assert refused > 20


def test_a_link_out_of_the_folder_is_refused(tmp_path):
    import onnx

    (tmp_path / "outside.bin").write_bytes(bytes(256))
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "w.bin").symlink_to(tmp_path / "outside.bin")
    model = one_node("Add", random(64), const(random(64)))[0]
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.bin")
    with pytest.raises(XnnccError, match="outside the model's folder"):
        load_model(save(model, folder / "m.onnx"))
