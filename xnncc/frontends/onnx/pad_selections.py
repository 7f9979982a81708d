"""A fixed number of rows for NonMaxSuppression: one graph for us, and one of the same meaning for onnxruntime.

    Given:                                     For onnxruntime:
      y = NonMaxSuppression(boxes, scores)       y/found = NonMaxSuppression(boxes, scores)
                                                 y/all = Concat(y/found, [[-1, -1, -1]] * rows)
                                                 y = Slice(y/all, 0, rows)

Both give exactly ``rows`` rows, so what reads y is the same network in both and is compared row by row, with the -1.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ...errors import BadInput
from .ops_detect import ROWS

OPERATOR = "NonMaxSuppression"


def pad_selections(model: onnx.ModelProto, rows: int, path: Path) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """Return the model for our importer and for its own runtime, each with ``rows`` rows.

    Raises:
        BadInput: ``rows`` is not positive, or no NonMaxSuppression is in the main graph.
    """
    flag = f"--nms-rows {rows}"
    if rows < 1:
        raise BadInput(flag, "a tensor has at least one row", "Give the largest number of boxes that you want.")
    if not any(node.op_type == OPERATOR for node in model.graph.node):
        raise BadInput(flag, f"{path} has no {OPERATOR} in its main graph", "Leave the flag out.")
    ours, theirs = onnx.ModelProto(), onnx.ModelProto()
    ours.CopyFrom(model)
    theirs.CopyFrom(model)
    for node in ours.graph.node:
        if node.op_type == OPERATOR:
            node.attribute.append(helper.make_attribute(ROWS, rows))
    del theirs.graph.node[:]
    for node in model.graph.node:
        theirs.graph.node.extend(_padded(node, rows) if node.op_type == OPERATOR else [node])
    for made in (ours, theirs):  # what a shape inference wrote about these tensors is no longer so
        del made.graph.value_info[:]
        for output in made.graph.output:
            if output.type.HasField("tensor_type"):
                output.type.tensor_type.ClearField("shape")
    return ours, theirs


def warning(rows: int) -> str:
    """Return what a user must know about such a network."""
    return (
        f"NonMaxSuppression gives exactly {rows} rows here: -1 in the rows behind the boxes, "
        f"and boxes beyond {rows} are left out"
    )


def _padded(node: onnx.NodeProto, rows: int) -> list[onnx.NodeProto]:
    name = node.output[0]
    found, every, empty, begin, end = (f"{name}/{part}" for part in ("found", "all", "empty", "begin", "end"))
    select = onnx.NodeProto()
    select.CopyFrom(node)
    select.output[0] = found

    def constant(array: np.ndarray, to: str) -> onnx.NodeProto:
        return helper.make_node("Constant", [], [to], value=numpy_helper.from_array(array))

    return [
        select,
        constant(np.full((rows, 3), -1, "int64"), empty),
        constant(np.array([0], "int64"), begin),
        constant(np.array([rows], "int64"), end),
        helper.make_node("Concat", [found, empty], [every], axis=0),
        helper.make_node("Slice", [every, begin, end], [name]),
    ]
