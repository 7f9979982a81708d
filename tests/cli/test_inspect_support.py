"""The pre-flight of inspect: what can be built, on which target, and what to do about the rest."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest


def _model(path: Path) -> Path:
    """x [1, 3, 8, 8] -> Conv -> com.example::Twirl -> y."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    kernel = numpy_helper.from_array(np.ones((4, 3, 3, 3), "float32"), "k")
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["c"], name="conv1"),
        helper.make_node("Twirl", ["c"], ["y"], name="twirl1", domain="com.example"),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 6, 6])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)]
    graph = helper.make_graph(nodes, "g", [x], [y], [kernel])
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


PLUGIN = """
import xnncc
from tvm import te

@xnncc.custom_op("com.example::Twirl", reference=lambda call, x: x * 2)
def twirl(call, x):
    return te.compute(x.shape, lambda *i: x(*i) * 2.0, name="twirl")
"""


def test_what_cannot_be_built_is_told_and_is_no_failure(xnncc: Callable, tmp_path: Path) -> None:
    _model(tmp_path / "m.onnx")
    ended = xnncc("inspect", "m.onnx")
    assert ended.code == 0, ended.stderr
    sentence = "'twirl1' (com.example.Twirl): the operator is not supported. Replace it before the export, or write it"
    assert sentence in ended.stdout
    assert "web-wasm        1 node cannot be built" in ended.stdout
    assert "next:" not in ended.stderr, "there is nothing to build"


def test_json_has_every_node_and_every_target(xnncc: Callable, tmp_path: Path) -> None:
    _model(tmp_path / "m.onnx")
    support = json.loads(xnncc("inspect", "m.onnx", "--json").stdout)["support"]
    (bad,) = support["unsupported"]
    assert (bad["kind"], bad["name"], bad["why"]) == ("com.example.Twirl", "twirl1", "the operator is not supported")
    assert {t["name"]: t["supported"] for t in support["targets"]}["android-arm64"] is False
    assert [(row["kind"], row["nodes"], row["weight_bytes"]) for row in support["operators"]] == [
        ("Conv", 1, 432), ("com.example.Twirl", 1, 0),
    ]  # fmt: skip


def test_a_plugin_makes_it_whole_and_stands_in_the_next_command(
    xnncc: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from xnncc.frontends import custom_ops
    from xnncc.frontends.onnx.operators import CONVERTERS

    _model(tmp_path / "m.onnx")
    (tmp_path / "p.py").write_text(PLUGIN.replace("reference=", 'formats=("onnx",), reference='))
    try:
        ended = xnncc("inspect", "m.onnx", "--plugin", "p.py", "--target", "android-arm64", "-t", "linux-arm64")
    finally:
        CONVERTERS.pop("com.example.Twirl", None)
        custom_ops._TABLE.pop("com.example.Twirl", None)
    assert ended.code == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert ["com.example.Twirl", "1", "0", "0", "B", "p.py"] in [line.split() for line in lines]
    assert sum(line.startswith(("android-arm64   yes", "linux-arm64     yes")) for line in lines) == 2
    assert "tools here" in ended.stdout and "web-wasm" not in ended.stdout
    assert "xnncc build m.onnx --target host --plugin p.py" in ended.stderr


def test_an_unknown_target_is_refused(xnncc: Callable, tmp_path: Path) -> None:
    ended = xnncc("inspect", _model(tmp_path / "m.onnx"), "--target", "andriod-arm64")
    assert ended.code == 1 and "did you mean 'android-arm64'" in ended.stderr


def test_a_plugin_that_is_not_there(xnncc: Callable, tmp_path: Path) -> None:
    ended = xnncc("inspect", _model(tmp_path / "m.onnx"), "--plugin", "p.py")
    assert ended.code == 1 and "error: --plugin p.py: no such Python file." in ended.stderr
    assert "docs/errors.md#pluginerror" in ended.stderr


def test_the_narrow_targets_have_less_room() -> None:
    from xnncc.cli.support_facts import support_facts
    from xnncc.frontends.survey import NodeFacts, Survey

    large = NodeFacts("MatMul", "m", "node 'm' (MatMul)", ("y",), 3 * 2**30)
    verdicts = {t["name"]: t for t in support_facts(Survey("onnx", (), (), (large,), ()), ())["targets"]}
    assert verdicts["android-arm64"]["supported"]
    assert verdicts["web-wasm"]["problem"] == "3.0 GiB of weights do not fit 32-bit addresses"
    assert not verdicts["android-arm32"]["supported"]
