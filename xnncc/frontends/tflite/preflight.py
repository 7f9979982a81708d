"""Before any conversion: does every operator have a converter, and every tensor a dtype that is built?

All operators without one are named at once. An operator of constants needs none if the interpreter knows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...errors import ShapeError, UnsupportedModel, nearest
from ...ir.plan import TensorInfo
from .interpret import evaluators
from .model import Graph, Model, Operator
from .operators import CONVERTERS, INTEGER, VARIABLES
from .schema import NUMERIC

_STATIC = frozenset({"SHAPE", "RANK"})


def check_model(path: Path, model: Model) -> None:
    """Refuse what cannot be built.

    Raises:
        UnsupportedModel: operators without a converter (all of them, sorted), or dtypes that are not built.
    """
    graph = model.main
    missing: dict[str, list[str]] = {}
    for op in unsupported_operators(model):
        kind = f"custom operator {op.kind}" if op.is_custom else op.kind
        name = graph.tensors[op.outputs[0]].name if op.outputs else "?"
        if op.kind == "CALL_ONCE":
            kind, name = f"CALL_ONCE of subgraph {op.options['init_subgraph_index']}", "?"
        missing.setdefault(kind, []).append(f"'{name}'")
    if missing:
        kinds = [f"{kind} (tensor {_some(names)})" for kind, names in sorted(missing.items())]
        count = "1 operator is" if len(kinds) == 1 else f"{len(kinds)} operators are"
        why = f"{count} not supported: {', '.join(kinds)}"
        raise UnsupportedModel(f"{path}", why, "See docs/errors.md#unsupported-operator.")
    _check_dtypes(path, graph)


def unsupported_operators(model: Model) -> list[Operator]:
    """Return the operators that have no converter, and calls of subgraphs that are not there."""
    graph = model.main
    known = {index for index, tensor in enumerate(graph.tensors) if tensor.data is not None} | {-1}
    foldable, found = evaluators(), []
    for op in graph.operators:
        if op.kind in _STATIC or (op.kind in foldable and op.inputs and known.issuperset(op.inputs)):
            known.update(op.outputs)
        elif _calls_nothing(op, model) or not any(op.kind in table for table in (CONVERTERS, INTEGER, VARIABLES)):
            found.append(op)
    return found


def _calls_nothing(op: Operator, model: Model) -> bool:
    return op.kind == "CALL_ONCE" and not 0 <= op.options["init_subgraph_index"] < len(model.graphs)


def _some(names: list[str], at_most: int = 5) -> str:
    more = f" and {len(names) - at_most} more" if len(names) > at_most else ""
    return ", ".join(sorted(names)[:at_most]) + more


def _check_dtypes(path: Path, graph: Graph) -> None:
    used = {index for op in graph.operators for index in (*op.inputs, *op.outputs) if index >= 0}
    used |= {*graph.inputs, *graph.outputs}
    wrong = sorted(
        f"'{graph.tensors[i].name}' ({graph.tensors[i].dtype})"
        for i in used
        if graph.tensors[i].dtype not in NUMERIC and graph.tensors[i].dtype != "resource"
    )
    if wrong:
        why = f"{len(wrong)} tensors have a dtype that is not built: {_some(wrong)}"
        raise UnsupportedModel(f"{path}", why, "Convert the model with float32, float16 or 8-bit weights.")


def check_shapes(inputs: Sequence[TensorInfo], shapes: dict[str, tuple[int, ...]]) -> None:
    """Refuse a ``--shape`` that the file does not have.

    Raises:
        ShapeError: an input that does not exist, or another shape than the file was converted for.
    """
    known = {info.name: info.shape for info in inputs}
    for name, shape in shapes.items():
        if name not in known:
            hint = nearest(name, list(known))
            raise ShapeError(f"--shape {name}", f"the model has no such input{hint}", f"Inputs: {', '.join(known)}.")
        if tuple(shape) != known[name]:
            why = f"{list(shape)}, the file was converted for {list(known[name])}"
            raise ShapeError(f"--shape {name}", why, "Leave it out, or convert the model for the shape that you need.")
