"""What is in a TFLite file and what of it cannot be built: see ``frontends/survey.py``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..survey import OWN_OPERATOR, NodeFacts, Shapes, Survey, Unsupported, macs_by_label, merged, tried
from .convert import GraphConverter, label_of
from .model import Graph, Operator, Tensor
from .preflight import unsupported_operators
from .read import read_tflite


def survey(path: Path, shapes: Shapes, weights: Path | None) -> Survey:
    """Return what is in the file; its shapes are fixed."""
    model = read_tflite(path)
    graph = model.main
    nodes = _nodes(graph)
    by_name = [
        Unsupported(_kind(op), _name(graph, op), "the operator is not supported", OWN_OPERATOR)
        for op in unsupported_operators(model)
    ]
    converter = GraphConverter(path, model)
    trial = tried(converter.convert, lambda: converter.problems, nodes)
    return Survey(
        format="tflite",
        inputs=tuple(_tensor(graph.tensors[i]) for i in graph.inputs),
        outputs=tuple(_tensor(graph.tensors[i]) for i in graph.outputs),
        nodes=nodes,
        unsupported=merged(by_name, trial.unsupported),
        macs=macs_by_label(trial.mod, nodes) if trial.mod is not None else None,
        note=trial.note,
    )


def _tensor(tensor: Tensor) -> dict[str, Any]:
    return {"name": tensor.name, "shape": list(tensor.shape), "dtype": tensor.dtype}


def _kind(op: Operator) -> str:
    return f"custom {op.kind}" if op.is_custom else op.kind


def _name(graph: Graph, op: Operator) -> str:
    return graph.tensors[op.outputs[0]].name if op.outputs else f"operator {op.index}"


def _nodes(graph: Graph) -> tuple[NodeFacts, ...]:
    """Return the operators; a constant's bytes count for the first that reads it."""
    counted: set[int] = set()
    found = []
    for op in graph.operators:
        new = {i for i in op.inputs if i >= 0 and graph.tensors[i].data is not None} - counted
        counted |= new
        size = sum(data.nbytes for i in new if (data := graph.tensors[i].data) is not None)
        outputs = tuple(graph.tensors[i].name for i in op.outputs)
        found.append(NodeFacts(_kind(op), _name(graph, op), label_of(graph, op), outputs, size))
    return tuple(found)
