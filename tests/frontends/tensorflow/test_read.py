"""Broken files: one clear sentence each (tools/fuzz_readers.py damages thousands more)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from graph_writing import const, graph, node, placeholder

from xnncc.errors import BadModel, ShapeError, UnsupportedModel, XnnccError
from xnncc.frontends import load_model

NET = graph(placeholder(), const("w", np.ones((3, 3, 3, 2), "float32")),
            node("c", "Conv2D", "x", "w", strides=[1, 1, 1, 1], padding="SAME"), node("y", "Relu", "c"))  # fmt: skip
CONV = {"strides": [1, 1, 1, 1], "padding": "SAME"}


def _cycle() -> bytes:
    return graph(placeholder(), node("a", "Add", "x", "b"), node("b", "Relu", "a"), node("y", "Relu", "b"))


def _short_weights() -> bytes:
    data = bytearray(graph(placeholder(), const("w", np.ones(3, "float32")), node("y", "Add", "x", "w")))
    place = data.index(np.ones(3, "float32").tobytes())
    from xnncc.frontends.tensorflow.schema import message

    proto = message("GraphDef").FromString(bytes(data))
    assert place
    proto.node[1].attr["value"].tensor.tensor_content = b"\0" * 7
    return proto.SerializeToString()


def _huge() -> bytes:
    return graph(placeholder(), const("s", [2**15, 2**15, 2**15], "int32"), const("v", 1.0, "float32"),
                 node("f", "Fill", "s", "v"), node("y", "Add", "x", "f"))  # fmt: skip


def _call_of_itself() -> bytes:
    body = [node("n", "PartitionedCall", "a", f="func:f")]
    call = node("y", "PartitionedCall", "x", f="func:f")
    return graph(placeholder(), call, functions=[("f", ["a"], body, ["n:output:0"])])


BROKEN: dict[str, tuple[bytes, type[XnnccError], str]] = {
    "empty": (b"", BadModel, "the file is empty"),
    "cut off": (NET[:-5], BadModel, "cut off or damaged"),
    "a web page": (b"<!doctype html><html></html>", BadModel, "it looks like a web page"),
    "an ELF": (b"\x7fELF" + bytes(200), BadModel, "it looks like a program or shared library"),
    "no node": (graph(), BadModel, "the file is empty"),
    "two of one name": (graph(placeholder(), node("y", "Relu", "x"), node("y", "Abs", "x")), BadModel,
                        "two nodes are called 'y'"),
    "a name of two lines": (graph(placeholder(), node("y", "Relu", "x"), node("z", "Add", "y", "a\nb")), BadModel,
                            "the name 'a\\nb' has characters that no name has"),
    "a missing input": (graph(placeholder(), node("y", "Add", "x", "gone")), BadModel,
                        "node 'y' (Add) needs 'gone', which no node computes"),
    "a cycle": (_cycle(), BadModel, "needs itself, through"),
    "no output": (graph(placeholder(), const("w", 1.0)), BadModel, "the graph has no output"),
    "short weights": (_short_weights(), UnsupportedModel,
                      "node 'w' (Const): the constant has 7 bytes, its shape [3] needs 12"),
    "a shape mismatch": (graph(placeholder(), const("w", np.ones((3, 3, 7, 2), "float32")),
                               node("c", "Conv2D", "x", "w", **CONV)), UnsupportedModel,
                         "node 'c' (Conv2D): weights [3, 3, 7, 2] do not fit input [1, 4, 4, 3]"),
    "broadcast mismatch": (graph(placeholder(), const("w", np.ones(5, "float32")), node("y", "Add", "x", "w")),
                           UnsupportedModel, "node 'y' (Add): operands [1, 4, 4, 3] float32, [5] float32 do not fit"),
    "huge constant": (_huge(), UnsupportedModel, "its result would have shape [32768, 32768, 32768]"),
    "negative dimension": (graph(placeholder(shape=(1, -1, 4, 3)), node("y", "Relu", "x")), ShapeError,
                           "input 'x' is [1, ?, 4, 3]: xnncc builds for fixed shapes. Type for example: --shape x="),
    "strings": (graph(placeholder(dtype="string", shape=(1,)), node("y", "Identity", "x")), UnsupportedModel,
                "input 'x' has dtype string"),
    "a function that is not there": (graph(placeholder(), node("y", "PartitionedCall", "x", f="func:g")), BadModel,
                                     "calls function 'g', which is not in the file"),
    "a function that calls itself": (_call_of_itself(), BadModel, "calls functions more than 32 deep"),
    "an output that is not there": (graph(placeholder(), node("a", "Relu", "x"), node("y", "Relu", "a:3")),
                                    UnsupportedModel, "it reads 'a:3', an output that its node does not have"),
    "zero stride": (graph(placeholder(), const("w", np.ones((3, 3, 3, 2), "float32")),
                          node("c", "Conv2D", "x", "w", strides=[1, 0, 1, 1], padding="SAME")), UnsupportedModel,
                    "node 'c' (Conv2D): strides [1, 0, 1, 1] must be at least 1"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_broken_file_gives_one_sentence(case: str, tmp_path: Path) -> None:
    data, kind, words = BROKEN[case]
    path = tmp_path / "net.pb"
    path.write_bytes(data)
    with pytest.raises(kind) as error:
        load_model(path, check=False)
    assert words in str(error.value) and "\n" not in str(error.value) and str(path) in str(error.value)


def test_all_unsupported_operators_are_named_at_once(tmp_path: Path) -> None:
    path = tmp_path / "net.pb"
    path.write_bytes(graph(placeholder(), node("v", "ReadVariableOp", "x"), node("m", "Wonder", "x"),
                           node("n", "Wonder", "m"), node("l", "Enter", "v"), node("y", "Add", "n", "l")))  # fmt: skip
    with pytest.raises(UnsupportedModel) as error:
        load_model(path)
    words = str(error.value)
    assert "3 operators are not supported: Enter (node 'l'), ReadVariableOp (node 'v'), " in words
    assert "Wonder (node 'm', node 'n')" in words
    assert "freeze with lower_control_flow=False" in words and "the graph is not frozen" in words


def test_all_bad_nodes_are_named_at_once(tmp_path: Path) -> None:
    path = tmp_path / "net.pb"
    path.write_bytes(graph(placeholder(), node("a", "MaxPool", "x", ksize=[1, 9, 9, 1], strides=[1, 1, 1, 1],
                           padding="VALID"), node("b", "DepthToSpace", "x", block_size=2)))  # fmt: skip
    with pytest.raises(UnsupportedModel) as error:
        load_model(path)
    assert "2 nodes cannot be built: node 'a' (MaxPool): a window of [9, 9]" in str(error.value)
    assert "node 'b' (DepthToSpace): 3 channels cannot be cut" in str(error.value)


def test_wrong_shape_flags(tmp_path: Path) -> None:
    path = tmp_path / "net.pb"
    path.write_bytes(graph(placeholder(shape=(-1, 4, 4, 3)), node("y", "Relu", "x")))
    with pytest.raises(ShapeError, match="has no such input"):
        load_model(path, {"z": (1, 4, 4, 3)})
    with pytest.raises(ShapeError, match="does not fit input 'x'"):
        load_model(path, {"x": (1, 4, 5, 3)})
    assert load_model(path, {"x": (2, 4, 4, 3)}).inputs[0].shape == (2, 4, 4, 3)


def test_saved_models_and_keras_files_name_the_command(tmp_path: Path) -> None:
    from xnncc.frontends.tensorflow.reference import has_tensorflow

    if has_tensorflow():
        pytest.skip("TensorFlow is installed")
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "saved_model.pb").write_bytes(b"\x08\x01")
    (tmp_path / "net.keras").write_bytes(b"PK\x03\x04")
    for path in (tmp_path / "net", tmp_path / "net" / "saved_model.pb", tmp_path / "net.keras"):
        words = r"frozen by TensorFlow, which is not installed. Type: pip install 'xnncc\[tf\]'"
        with pytest.raises(UnsupportedModel, match=words):
            load_model(path)
