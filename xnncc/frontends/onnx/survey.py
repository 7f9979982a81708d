"""What is in an ONNX file and what of it cannot be built: see ``frontends/survey.py``."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import onnx

from ...errors import BadModel
from ..survey import OWN_OPERATOR, NodeFacts, Shapes, Survey, Trial, Unsupported, macs_by_label, merged, tried
from .convert import GraphConverter
from .node import label_of, operator_of
from .preflight import RANDOM, opset_of, unsupported_nodes
from .read import read_graph, read_onnx
from .shapes import dtype_words, numpy_dtype, static_inputs

_TEXT = ("StringNormalizer", "TfIdfVectorizer", "StringConcat", "StringSplit", "RegexFullMatch", "LabelEncoder")
# operator -> what to do about it
ADVICE = {
    **dict.fromkeys(RANDOM, "Make the random numbers an input of the model"),
    **dict.fromkeys(_TEXT, "Do the work on text in the app and feed numbers"),
    "ImageDecoder": "Decode the picture in the app and feed its pixels",
}
_TRAINING = "Export the network for inference, not for training"


def survey(path: Path, shapes: Shapes, weights: Path | None) -> Survey:
    """Return what is in the file; its weights need not be there."""
    model = read_graph(path)
    nodes = _nodes(model)
    facts = {node.label: node for node in nodes}
    by_name = [
        Unsupported(node.kind, node.name, "the operator is not supported", _advice(node.kind))
        for proto in unsupported_nodes(model)
        if (node := facts[label_of(proto)])
    ]
    trial = _trial(path, shapes, nodes)
    return Survey(
        format="onnx",
        inputs=tuple(_described(value) for value in _inputs(model.graph)),
        outputs=tuple(_described(value) for value in model.graph.output),
        nodes=nodes,
        unsupported=merged(by_name, trial.unsupported),
        macs=macs_by_label(trial.mod, nodes) if trial.mod is not None else None,
        note=trial.note,
    )


def _advice(kind: str) -> str:
    return _TRAINING if "training" in kind else ADVICE.get(kind, OWN_OPERATOR)


def _inputs(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    weights = {tensor.name for tensor in graph.initializer}
    return [value for value in graph.input if value.name not in weights]


def _described(value: onnx.ValueInfoProto) -> dict[str, Any]:
    tensor = value.type.tensor_type
    dims = [d.dim_value if d.HasField("dim_value") else d.dim_param or "?" for d in tensor.shape.dim]
    shape = dims if tensor.HasField("shape") else None
    return {"name": value.name, "shape": shape, "dtype": dtype_words(tensor.elem_type)}


def _trial(path: Path, shapes: Shapes, nodes: tuple[NodeFacts, ...]) -> Trial:
    try:
        model = read_onnx(path)
        converter = GraphConverter(path, model, opset_of(model))
        inputs = static_inputs(path, model.graph, shapes)
    except BadModel as error:
        return Trial(None, (), f"{error.why}. {error.next}" if error.why else str(error))
    return tried(lambda: converter.convert(inputs)[0], lambda: converter.problems, nodes)


def _nodes(model: onnx.ModelProto) -> tuple[NodeFacts, ...]:
    """Return all nodes, those of branches and loops after the one that holds them."""
    found: list[NodeFacts] = []
    counted: set[str] = set()

    def visit(graph: onnx.GraphProto, outer: dict[str, int]) -> None:
        sizes = {**outer, **{tensor.name: _bytes(tensor) for tensor in graph.initializer}}
        for proto in graph.node:
            new = {name for name in proto.input if name in sizes} - counted
            counted.update(new)
            name = proto.name or next((output for output in proto.output if output), "?")
            size = sum(sizes[tensor] for tensor in new)
            found.append(NodeFacts(operator_of(proto), name, label_of(proto), tuple(proto.output), size))
            for attribute in proto.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    visit(attribute.g, sizes)

    visit(model.graph, {})
    return tuple(found)


def _bytes(tensor: onnx.TensorProto) -> int:
    """Return the bytes of a weight: of its dtype, or half a byte for those that numpy has not."""
    name = numpy_dtype(tensor.data_type)
    size = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize if name else 0.5
    return int(prod(tensor.dims) * size)
