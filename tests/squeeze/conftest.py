"""Tests here run through tests/network_running.py's neighbours and compress one small network."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(scope="session")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an ONNX file: data [1, 32] -> 48 units -> ReLU -> scores [1, 10]; 2,074 weights."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    weights = {
        "w1": rng.standard_normal((32, 48)), "b1": rng.standard_normal(48),
        "w2": rng.standard_normal((48, 10)), "b2": rng.standard_normal(10),
    }  # fmt: skip
    nodes = [
        helper.make_node("MatMul", ["data", "w1"], ["m1"]),
        helper.make_node("Add", ["m1", "b1"], ["h1"]),
        helper.make_node("Relu", ["h1"], ["a1"]),
        helper.make_node("MatMul", ["a1", "w2"], ["m2"]),
        helper.make_node("Add", ["m2", "b2"], ["scores"]),
    ]
    graph = helper.make_graph(
        nodes,
        "classifier",
        [helper.make_tensor_value_info("data", TensorProto.FLOAT, [1, 32])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 10])],
        [numpy_helper.from_array(array.astype("float32"), name) for name, array in weights.items()],
    )
    path = tmp_path_factory.mktemp("models") / "classifier.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.fixture
def samples() -> Callable[[int, int], dict[str, np.ndarray]]:
    """Return ``samples(count, seed)``: arrays for the classifier."""

    def make(count: int, seed: int) -> dict[str, np.ndarray]:
        return {"data": np.random.default_rng(seed).standard_normal((count, 32)).astype("float32")}

    return make
