"""The same model without batch-first recurrent nodes: onnxruntime 1.32 has none (``layout`` 1), so it gets transposes.

Given:  y, yh = LSTM[layout=1](x, w, r, b, lens, h0)
Result: y, yh = Transposes of LSTM(Transpose(x), w, r, b, lens, Transpose(h0))
"""

from __future__ import annotations

import onnx
from onnx import helper

_RECURRENT = ("LSTM", "GRU", "RNN")
_INPUTS = (0, 5, 6)  # x, h0, c0 [N, ., .]
_SWAP = [1, 0, 2]
_OUTPUTS = ([2, 0, 1, 3], _SWAP, _SWAP)  # y [T, D, N, H] -> [N, T, D, H], yh and yc [D, N, H] -> [N, D, H]


def without_batchwise(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return ``model`` itself when it has no such node, else a changed copy. Names of tensors stay."""
    if not any(_is_batchwise(node) for node in model.graph.node):
        return model
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    nodes = [part for node in model.graph.node for part in (_spelled_out(node) if _is_batchwise(node) else [node])]
    del changed.graph.node[:]
    changed.graph.node.extend(nodes)
    return changed


def _is_batchwise(node: onnx.NodeProto) -> bool:
    return node.op_type in _RECURRENT and any(a.name == "layout" and a.i == 1 for a in node.attribute)


def _spelled_out(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    inner = onnx.NodeProto()
    inner.CopyFrom(node)
    del inner.attribute[:]
    inner.attribute.extend(a for a in node.attribute if a.name != "layout")
    before, after = [], []
    unique = next(name for name in node.output if name)
    for i in _INPUTS:
        if i < len(node.input) and node.input[i]:
            inner.input[i] = f"{unique}/steps_first/{i}"
            before.append(helper.make_node("Transpose", [node.input[i]], [inner.input[i]], perm=_SWAP))
    for i, name in enumerate(node.output):
        if name:
            inner.output[i] = f"{name}/steps_first"
            after.append(helper.make_node("Transpose", [inner.output[i]], [name], perm=_OUTPUTS[i]))
    return [*before, inner, *after]
