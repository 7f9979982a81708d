"""Broken files end in one sentence each (tools/fuzz_readers.py damages thousands more)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tflite_models import Call, Out, T, Writer, const, one_operator

from xnncc.errors import BadModel, XnnccError
from xnncc.frontends import load_model

GOOD = one_operator("RELU", T(np.ones((1, 4))), out=Out((1, 4)))[0]


def _broken(**changes: object) -> bytes:
    """Return RELU x -> y with parts of the file replaced."""
    w = Writer()
    shape = changes.get("shape", (1, 4))
    tensors = [w.tensor("x", shape, "float32"), w.tensor("y", (1, 4), "float32")]
    tensors.append(w.tensor("weights", changes.get("weight_shape", (2,)), "float32", bytes(8)))
    calls = [w.operator(call) for call in changes.get("calls", [Call("RELU", [0], [1])])]  # type: ignore[attr-defined]
    graph = w.graph(tensors, calls, changes.get("inputs", [0]), changes.get("outputs", [1]))
    return w.finish([] if changes.get("graphs") == 0 else [graph], int(str(changes.get("version", 3))))


BROKEN: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "an empty file"),
    "cut in half": (GOOD[: len(GOOD) // 2], "the file is damaged"),
    "cut to its magic": (GOOD[:8], "the file is damaged: offset"),
    "wrong magic": (GOOD[:4] + b"TFLX" + GOOD[8:], "not a TFLite model"),
    "a picture": (b"\x89PNG" + bytes(100), "it looks like a PNG picture"),
    "other schema version": (_broken(version=2), "schema version 2, expected 3"),
    "no graph": (_broken(graphs=0), "it has no graph"),
    "no output": (_broken(outputs=[]), "its graph has no output"),
    "output that is not there": (_broken(outputs=[7]), "the graph names tensor 7 of 3"),
    "operand that is not there": (_broken(calls=[Call("RELU", [9], [1])]), "operator 0 (RELU) names tensor 9 of 3"),
    "negative dimension": (_broken(shape=(1, -4)), "tensor 'x' has shape [1, -4]"),
    "huge dimensions": (_broken(shape=(2**30, 2**30)), "tensor 'x' has shape"),
    "weights that do not fit": (_broken(weight_shape=(3,)), "tensor 'weights' has shape [3] and 2 elements"),
    "a cycle": (_broken(calls=[Call("ADD", [0, 1], [1])]), "needs tensor 'y', which no earlier operator computes"),
    "computed twice": (_broken(calls=[Call("RELU", [0], [1])] * 2), "computes a tensor that exists"),
    "nobody computes": (_broken(calls=[]), "the graph's output needs tensor 'y'"),
    "two outputs of one name": (_broken(outputs=[1, 1]), "2 outputs are called 'y'"),
    "two inputs of one name": (_broken(inputs=[0, 0]), "2 inputs are called 'x'"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_one_clear_sentence(name: str, tmp_path: Path) -> None:
    data, why = BROKEN[name]
    (tmp_path / "model.tflite").write_bytes(data)
    with pytest.raises(BadModel) as refusal:
        load_model(tmp_path / "model.tflite")
    assert why in str(refusal.value) and "\n" not in str(refusal.value)


def test_all_unsupported_operators_are_named_at_once(refuses: Callable[..., str]) -> None:
    calls = [Call("SVDF", [0], [1]), Call("FooBar", [1], [2], custom=b""), Call("LSTM", [2], [3])]
    w = Writer()
    tensors = [w.tensor(name, (1, 4), "float32") for name in ("x", "a", "b", "y")]
    message = refuses(w.finish([w.graph(tensors, [w.operator(c) for c in calls], [0], [3])]))
    assert "3 operators are not supported: LSTM (tensor 'y'), SVDF (tensor 'a'), custom operator FooBar" in message


def test_all_operators_that_do_not_fit_are_named_at_once(refuses: Callable[..., str]) -> None:
    w = Writer()
    tensors = [w.tensor("x", (1, 4), "float32"), w.tensor("a", (1, 5), "float32"), w.tensor("y", (1, 6), "float32")]
    calls = [w.operator(Call("RELU", [0], [1])), w.operator(Call("TANH", [0], [2]))]
    message = refuses(w.finish([w.graph(tensors, calls, [0], [1, 2])]))
    assert "2 operators cannot be built" in message
    assert "operator 0 (RELU of 'a'): its result is [1, 4], the file says [1, 5]" in message


def test_sixteen_bit_activations_are_refused(refuses: Callable[..., str]) -> None:
    data, _ = one_operator("ADD", *[T(np.ones((1, 4), "int16"), 0.1)] * 1, T(np.ones((1, 4), "int16"), 0.1, name="b"),
                           out=Out((1, 4), "int16", 0.1))  # fmt: skip
    assert "has 16-bit activations" in refuses(data)


def test_weights_that_make_a_layer_dynamic_range_are_said(load: Callable[..., object]) -> None:
    weights = const(np.arange(-8, 8, dtype="int8").reshape(4, 4), scale=0.1)
    data, feeds = one_operator("FULLY_CONNECTED", T(np.ones((1, 4))), weights, out=Out((1, 4)))
    warnings = load(data, feeds).warnings  # type: ignore[attr-defined]
    assert any("weights 'x1' are int8 and their activations float32" in text for text in warnings)


def test_another_shape_than_the_file_has_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.tflite").write_bytes(GOOD)
    with pytest.raises(XnnccError, match="the file was converted for"):
        load_model(tmp_path / "model.tflite", {"x0": (2, 4)})


def test_constants_that_ask_for_endless_memory_are_refused(refuses: Callable[..., str]) -> None:
    data, _ = one_operator("TILE", const(np.ones((2, 2))), const(np.array([2**30, 2**30], "int32")), out=Out((2, 2)))
    assert "would have 4.61e+18 elements" in refuses(data)
