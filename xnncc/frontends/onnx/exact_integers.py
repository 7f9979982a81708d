"""Integer operators for onnxruntime with unsigned weights, because its products of uint8 and int8 are not exact.

On x86 without VNNI they add pairs in saturating int16: MatMulInteger of values near the limits was off by 12,329
(onnxruntime 1.32.0, AVX2, 2026-11). Weights and zero point moved by 128 into uint8 mean the same and are exact.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper

_WEIGHTS = {"ConvInteger": (1, 3), "MatMulInteger": (1, 3), "QLinearConv": (3, 5), "QLinearMatMul": (3, 5)}


def with_unsigned_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with the int8 weights of such operators, where they are constants, as uint8."""
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    wanted = [node for node in model.graph.node if node.op_type in _WEIGHTS and node.domain in ("", "ai.onnx")]
    if not any(_is_signed(node, weights) for node in wanted):
        return model
    result = onnx.ModelProto()
    result.CopyFrom(model)
    for node in result.graph.node:
        if node.op_type in _WEIGHTS and node.domain in ("", "ai.onnx") and _is_signed(node, weights):
            _move(node, result.graph, weights)
    return result


def _is_signed(node: onnx.NodeProto, weights: dict[str, onnx.TensorProto]) -> bool:
    at, zero = _WEIGHTS[node.op_type]
    names = [node.input[at], *(name for name in node.input[zero : zero + 1] if name)]
    return all(name in weights and weights[name].data_type == onnx.TensorProto.INT8 for name in names)


def _move(node: onnx.NodeProto, graph: onnx.GraphProto, weights: dict[str, onnx.TensorProto]) -> None:
    at, zero = _WEIGHTS[node.op_type]
    label = next(name for name in node.output if name)
    while len(node.input) <= zero:
        node.input.append("")
    old = node.input[zero]
    values = {
        at: numpy_helper.to_array(weights[node.input[at]]),
        zero: numpy_helper.to_array(weights[old]) if old else np.zeros((), "int8"),
    }
    for index, array in values.items():
        name = f"{label}#unsigned{index}"
        graph.initializer.append(numpy_helper.from_array((array.astype("int16") + 128).astype("uint8"), name))
        node.input[index] = name
