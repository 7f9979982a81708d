"""A network of four operators that builds in a second."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def small_network(path: Path, weights: np.ndarray | None = None, free: bool = False, kind: str = "Relu") -> Path:
    """Write ``data [1, 3, 8, 8] -> conv 3x3 -> kind -> mean -> scores [1, 4]``; ``free``: the batch has no size."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    if weights is None:
        weights = np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["data", "kernel"], ["features"], name="conv1", pads=[1, 1, 1, 1]),
        helper.make_node(kind, ["features"], ["active"], name="act1"),
        helper.make_node("GlobalAveragePool", ["active"], ["mean"], name="pool1"),
        helper.make_node("Flatten", ["mean"], ["scores"], name="flat1"),
    ]
    batch: str | int = "batch" if free else 1
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("data", TensorProto.FLOAT, [batch, 3, 8, 8])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [batch, 4])],
        [numpy_helper.from_array(weights, "kernel")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path
