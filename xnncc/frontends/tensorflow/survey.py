"""What is in a TensorFlow graph and what of it cannot be built: see ``frontends/survey.py``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...errors import BadModel
from ..refused import Refused
from ..survey import OWN_OPERATOR, NodeFacts, Shapes, Survey, Trial, Unsupported, macs_by_label, merged, tried
from .convert import GraphConverter
from .freeze import frozen
from .graph import Graph, Operation, needed_for
from .preflight import hint_for, unsupported_operations
from .read import parse_graph_def, read_bytes
from .reference import used_placeholders
from .shapes import static_inputs
from .tensors import array_of

_MOST_OUTPUTS = 8


def survey(path: Path, shapes: Shapes, weights: Path | None) -> Survey:
    """Return what is in the graph; SavedModels and Keras files are frozen by TensorFlow first."""
    folder = path.parent if path.name == "saved_model.pb" else path
    graph = parse_graph_def(read_bytes(path) if folder == path and path.suffix == ".pb" else frozen(folder), path)
    needed = list(needed_for(graph.operations, graph.outputs))
    nodes = _nodes(needed)
    by_name = [
        Unsupported(o.kind, o.name, "the operator is not supported", hint_for(o.kind) or OWN_OPERATOR)
        for o in unsupported_operations(graph, needed)
    ]
    trial = _trial(path, graph, needed, shapes, nodes)
    return Survey(
        format="tensorflow",
        inputs=tuple(_input(placeholder) for placeholder in used_placeholders(needed)),
        outputs=tuple({"name": name, "shape": None, "dtype": "as computed"} for name in graph.outputs),
        nodes=nodes,
        unsupported=merged(by_name, trial.unsupported),
        macs=macs_by_label(trial.mod, nodes) if trial.mod is not None else None,
        note=trial.note,
    )


def _input(placeholder: Operation) -> dict[str, Any]:
    shape = placeholder.attr("shape")
    dims = None if shape is None else ["?" if size < 0 else int(size) for size in shape]
    return {"name": placeholder.name, "shape": dims, "dtype": str(placeholder.attr("dtype", "unknown"))}


def _trial(path: Path, graph: Graph, needed: list[Operation], shapes: Shapes, nodes: tuple[NodeFacts, ...]) -> Trial:
    try:
        inputs = static_inputs(path, used_placeholders(needed), shapes)
    except BadModel as error:
        return Trial(None, (), f"{error.why}. {error.next}" if error.why else str(error))
    converter = GraphConverter(path, graph)
    return tried(lambda: converter.convert(inputs)[0], lambda: converter.problems, nodes)


def _nodes(needed: list[Operation]) -> tuple[NodeFacts, ...]:
    """Return the operations but for constants and inputs; a constant's bytes count for the first that reads it.

    Frozen variables are read through an Identity, which is no reader.
    """
    sizes = {o.name: _bytes(o) for o in needed if o.kind == "Const"}
    found = []
    for operation in needed:
        if operation.kind in ("Const", "Placeholder"):
            continue
        size = sum(sizes.pop(name.partition(":")[0], 0) for name in operation.inputs)
        if operation.kind == "Identity" and size:
            sizes[operation.name], size = size, 0
        outputs = tuple(operation.output(i) for i in range(_MOST_OUTPUTS))
        found.append(NodeFacts(operation.kind, operation.name, operation.label, outputs, size))
    return tuple(found)


def _bytes(operation: Operation) -> int:
    try:
        return array_of(operation.attr("value"), "the constant").nbytes
    except Refused:
        return 0
