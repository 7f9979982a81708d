"""xnncc compress: what it prints, how it fails, and that the other commands take its file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import typer

from xnncc.cli.compress import parse_loss


@pytest.fixture
def network(tmp_path: Path) -> Path:
    """Return an ONNX file: data [1, 64] -> scores [1, 32]."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    weights = np.random.default_rng(0).standard_normal((64, 32)).astype("float32")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["data", "w"], ["scores"])],
        "net",
        [helper.make_tensor_value_info("data", TensorProto.FLOAT, [1, 64])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 32])],
        [numpy_helper.from_array(weights, "w")],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "net.onnx"
    )
    return tmp_path / "net.onnx"


@pytest.mark.parametrize(("text", "loss"), [("0.5%", 0.005), ("0.005", 0.005), (" 2 % ", 0.02), ("0", 0.0)])
def test_a_loss_may_be_in_percent(text: str, loss: float) -> None:
    assert parse_loss(text) == pytest.approx(loss)


@pytest.mark.parametrize("text", ["much", "-1%", "inf", "%"])
def test_a_loss_that_is_none_is_wrong_usage(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="--max-loss"):
        parse_loss(text)


def test_the_file_goes_through_every_command(network: Path, xnncc: Callable) -> None:
    made = xnncc("compress", network, "-o", "small.xq")
    assert made.code == 0, made.stderr
    assert "x smaller than net.onnx's weights" in made.stdout
    assert "next: xnncc build small.xq --target host" in made.stderr
    shown = xnncc("inspect", "small.xq")
    assert shown.code == 0, shown.stderr
    assert "compressed from net.onnx with recipe safe: loss not measured; 1 of 1 constants are coded" in shown.stdout
    built = xnncc("build", "small.xq", "--target", "host")
    assert built.code == 0, built.stderr
    verified = xnncc("verify", "small.xq", "small-host")
    assert verified.code == 0, verified.stdout + verified.stderr
    assert xnncc("compress", "small.xq", "-o", "again.xq", "-q").code == 0


def test_json_is_one_document(network: Path, xnncc: Callable) -> None:
    document = json.loads(xnncc("compress", network, "-o", "small.xq", "--json", "-q").stdout)
    assert document["holds"] is True
    assert document["path"] == "small.xq"
    assert document["report"]["ratio"] > 3


def test_a_contract_that_cannot_be_met_exits_1_and_says_the_best(network: Path, xnncc: Callable) -> None:
    ended = xnncc("compress", network, "-o", "small.xq", "--target-kib", "0.5", "-q")
    assert ended.code == 1
    assert "error: --target-kib 0.5: this recipe cannot do it, the smallest file is" in ended.stderr
    assert "The best is in small.best.xq" in ended.stderr
    assert Path("small.best.xq").is_file() and not Path("small.xq").exists()


def test_a_loss_that_cannot_be_met_names_the_costly_layers(network: Path, xnncc: Callable) -> None:
    np.savez("eval.npz", data=np.random.default_rng(1).standard_normal((30, 64)).astype("float32"))
    recipe = '[[step]]\nmethod = "quantise_round"\nbits = 2\nsensitive_bits = 2\nsearch = true\n'
    Path("hard.toml").write_text(recipe + '[[step]]\nmethod = "quantise_small"\nsearch = false\n')
    asked = ("--recipe", "hard.toml", "--eval", "eval.npz", "--metric", "sqnr", "--max-loss", "1e-9", "-q")
    ended = xnncc("compress", network, "-o", "small.xq", *asked)
    assert ended.code in (0, 1)  # leaving the only layer alone is exact, which a search may do
    document = json.loads(next(Path().glob("*.xq.report.json")).read_text())
    assert [entry["layer"] for entry in document["costly"]] == ["scores"]


def test_a_broken_file_is_one_sentence(network: Path, xnncc: Callable) -> None:
    xnncc("compress", network, "-o", "small.xq", "-q")
    data = Path("small.xq").read_bytes()
    Path("small.xq").write_bytes(data[:-5])
    for command in (
        ("inspect", "small.xq"),
        ("build", "small.xq", "--target", "host"),
        ("compress", "small.xq", "-o", "b.xq"),
    ):
        ended = xnncc(*command)
        assert ended.code == 1
        assert "error: small.xq: its checksum is wrong: it was cut or changed. Get the file again." in ended.stderr
