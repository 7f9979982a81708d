"""Tiny ONNX models for tests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

Feeds = dict[str, np.ndarray]


@dataclass(frozen=True)
class const:
    """A weight of the model rather than an input."""

    value: Any
    dtype: str | None = None

    def array(self) -> np.ndarray:
        array = np.asarray(self.value, self.dtype)
        return array.astype("float32") if self.dtype is None and array.dtype == "float64" else array


def random(*shape: int, seed: int = 0, low: float = -2.0, high: float = 2.0) -> np.ndarray:
    """Return float32 numbers spread evenly over [low, high)."""
    return np.random.default_rng(seed).uniform(low, high, shape).astype("float32")


def info(name: str, array: np.ndarray | None = None, shape: Any = ...) -> onnx.ValueInfoProto:
    """Return the declaration of a tensor: of an array's dtype and shape, or float32 of a given one."""
    kind = onnx.TensorProto.FLOAT if array is None else helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(
        name, kind, (None if array is None else array.shape) if shape is ... else shape
    )


def graph(nodes: list[Any], inputs: list[Any], outputs: list[Any], weights: dict[str, Any] | None = None) -> Any:
    """Return a GraphProto; ``weights`` are arrays by name."""
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in (weights or {}).items()]
    return helper.make_graph(nodes, "test", inputs, outputs, tensors)


def model(
    nodes: list[Any], inputs: list[Any], outputs: list[Any], weights: dict[str, Any] | None = None, opset: int = 18,
    domains: tuple[str, ...] = (),
) -> onnx.ModelProto:  # fmt: skip
    """Return a ModelProto of one graph."""
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph(nodes, inputs, outputs, weights), opset_imports=opsets, ir_version=9)


def one_node(
    operator: str, *inputs: Any, outputs: int = 1, opset: int = 18, domain: str = "", **attributes: Any
) -> tuple[onnx.ModelProto, Feeds]:
    """Return a model of the single node ``the_node`` and the feeds of its run-time inputs ``x0``, ``x1``..."""
    names, feeds, weights = [], {}, {}
    for index, value in enumerate(inputs):
        names.append("" if value is None else f"x{index}")
        if isinstance(value, const):
            weights[f"x{index}"] = value.array()
        elif value is not None:
            feeds[f"x{index}"] = np.asarray(value)
    results = [f"y{index}" for index in range(outputs)]
    node = helper.make_node(operator, names, results, name="the_node", domain=domain, **attributes)
    declared = [helper.make_empty_tensor_value_info(name) for name in results]
    inputs_ = [info(name, array) for name, array in feeds.items()]
    return model([node], inputs_, declared, weights, opset, (domain,) if domain else ()), feeds


def node(operator: str, inputs: list[str], outputs: list[str], **attributes: Any) -> Any:
    """Return a NodeProto."""
    return helper.make_node(operator, inputs, outputs, **attributes)


def save(model: onnx.ModelProto, path: Path) -> Path:
    """Write the model and return its path."""
    path.write_bytes(model.SerializeToString())
    return path


def runtime(model: onnx.ModelProto, feeds: Feeds) -> list[np.ndarray]:
    """Return what onnxruntime computes, without any of our code in between."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, feeds)
