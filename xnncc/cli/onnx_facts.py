"""What is inside an ONNX file: graph, shapes, operators, weights and work. Reads; converts and checks nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Any

from xnncc.errors import BadModel

BIGGEST = 10  # tensors that are listed


def onnx_facts(path: Path) -> dict[str, Any]:
    """Return what the ONNX file at ``path`` holds, as plain data. Free dimensions are names or ``"?"``.

    Raises: BadModel.
    """
    import onnx

    if not path.is_file():
        raise BadModel(f"'{path}'", "there is no such file", "Check the path.")
    try:
        model = onnx.load(str(path), load_external_data=False)
    except Exception as error:  # protobuf raises classes of its own, different ones per backend
        raise BadModel(f"'{path}'", f"it is no ONNX model, or cut off ({error})", "Export it again.") from error
    graph = model.graph
    if not graph.node:
        raise BadModel(f"'{path}'", "it is no ONNX model, or one without operators", "Export it again.")
    graphs = list(_with_subgraphs(graph))
    nodes = [node for part in graphs for node in part.node]
    weights = {name: tensor for part in graphs for name, tensor in _weights(part)}
    shapes = _shapes(model, weights)
    macs = [_macs(node, shapes) for node in nodes]
    known = sum(m for m in macs if m is not None)
    return {
        "file": str(path),
        "format": "onnx",
        "producer": f"{model.producer_name} {model.producer_version}".strip(),
        "opset": {entry.domain or "ai.onnx": entry.version for entry in model.opset_import},
        "inputs": [_value(v) for v in graph.input if v.name not in weights],
        "outputs": [_value(v) for v in graph.output],
        "nodes": len(nodes),
        "operators": dict(Counter(node.op_type for node in nodes).most_common()),
        "weights": {
            "tensors": len(weights),
            "elements": sum(prod(t.dims) for t in weights.values()),
            "bytes": sum(_bytes(t) for t in weights.values()),
        },
        "biggest": [
            {"name": name, "shape": list(t.dims), "dtype": _dtype(t.data_type), "bytes": _bytes(t)}
            for name, t in sorted(weights.items(), key=lambda item: (-_bytes(item[1]), item[0]))[:BIGGEST]
        ],
        "macs": known if all(m is not None for m in macs) else None,
        "macs_unknown_nodes": sum(m is None for m in macs),
    }


def _with_subgraphs(graph: Any) -> Iterator[Any]:
    """Yield the graph and the bodies of its If, Loop and Scan nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                if body.node:
                    yield from _with_subgraphs(body)


def _weights(graph: Any) -> Iterator[tuple[str, Any]]:
    """Yield name and tensor of each initialiser and of each Constant node."""
    for tensor in graph.initializer:
        yield tensor.name, tensor
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].HasField("t"):
            yield node.output[0], node.attribute[0].t


def _dtype(code: int) -> str:
    import onnx

    try:
        return str(onnx.helper.tensor_dtype_to_np_dtype(code))
    except (KeyError, ValueError):
        return f"onnx type {code}"


def _bytes(tensor: Any) -> int:
    """Return the bytes of an initialiser's elements; 4-bit types count half a byte each."""
    import onnx

    if tensor.data_type in {getattr(onnx.TensorProto, name, -1) for name in ("INT4", "UINT4")}:
        return -(-prod(tensor.dims) // 2)
    try:
        return prod(tensor.dims) * int(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize)
    except (KeyError, ValueError):
        return 0


def _value(value: Any) -> dict[str, Any]:
    """Return name, shape and dtype of a graph input or output."""
    if not value.type.HasField("tensor_type"):
        return {"name": value.name, "shape": None, "dtype": value.type.WhichOneof("value") or "unknown"}
    tensor = value.type.tensor_type
    shape = [_dim(d) for d in tensor.shape.dim] if tensor.HasField("shape") else None
    return {"name": value.name, "shape": shape, "dtype": _dtype(tensor.elem_type)}


def _dim(dim: Any) -> int | str:
    return dim.dim_value if dim.HasField("dim_value") and dim.dim_value > 0 else dim.dim_param or "?"


def _shapes(model: Any, weights: dict[str, Any]) -> dict[str, list[int | str]]:
    """Return every tensor's shape as far as ONNX's own shape inference knows it."""
    import onnx

    with suppress(Exception):  # a graph that it cannot infer is still worth listing
        model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    shapes: dict[str, list[int | str]] = {name: list(tensor.dims) for name, tensor in weights.items()}
    for value in (*model.graph.value_info, *model.graph.input, *model.graph.output):
        if value.type.HasField("tensor_type") and value.type.tensor_type.HasField("shape"):
            shapes.setdefault(value.name, [_dim(d) for d in value.type.tensor_type.shape.dim])
    return shapes


def _macs(node: Any, shapes: dict[str, list[int | str]]) -> int | None:
    """Return the multiply-accumulates of a node; 0 for the cheap ones, None when a shape it needs is unknown."""
    if node.op_type not in ("Conv", "ConvTranspose", "Gemm", "MatMul", "ConvInteger", "MatMulInteger", "LSTM", "GRU"):
        return 0
    data, weight, out = (_known(shapes.get(name)) for name in (node.input[0], node.input[1], node.output[0]))
    if data is None or weight is None or out is None:
        return None
    if node.op_type in ("Conv", "ConvInteger"):
        return prod(out) * prod(weight[1:])  # weight [O, C/g, KH, KW]
    if node.op_type == "ConvTranspose":
        return prod(data) * prod(weight[1:])  # weight [C, O/g, KH, KW]
    if node.op_type in ("LSTM", "GRU"):
        recurrent = _known(shapes.get(node.input[2]))
        return (
            None if recurrent is None else prod(data[:2]) * (prod(weight) + prod(recurrent))
        )  # data [S, N, I]; W [D, G*H, I]; R [D, G*H, H]
    turned = node.op_type == "Gemm" and any(a.name == "transA" and a.i for a in node.attribute)
    return prod(out) * (data[0] if turned else data[-1])


def _known(shape: list[int | str] | None) -> list[int] | None:
    """Return a shape without free dimensions, or None."""
    if shape is None or any(isinstance(dim, str) for dim in shape):
        return None
    return [int(dim) for dim in shape]
