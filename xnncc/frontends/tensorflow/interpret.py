"""Run a graph with numpy, operation by operation: the reference runtime where TensorFlow is not installed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..refused import Refused
from . import meaning_arithmetic, meaning_layout, meaning_list, meaning_windows
from .graph import CONTROL_FLOW, Graph, Operation, needed_for, sorted_operations
from .meanings import MEANINGS, compute
from .tensors import array_of

FAMILIES = (meaning_arithmetic, meaning_layout, meaning_list, meaning_windows)
MAX_STEPS = 100_000  # of a loop

__all__ = ["FAMILIES", "MEANINGS", "interpret"]


def interpret(graph: Graph, feeds: Mapping[str, np.ndarray], wanted: Iterable[str]) -> dict[str, np.ndarray]:
    """Return the ``wanted`` tensors; others are freed after their last use.

    Raises:
        Refused: an operator that is not known here, or operands that do not fit.
    """
    values: dict[str, Any] = dict(feeds)
    wanted = set(wanted)
    _run(graph, needed_for(graph.operations, wanted), values, wanted)
    return {name: values[name] for name in wanted if name in values}


def _run(graph: Graph, operations: Sequence[Operation], values: dict[str, Any], wanted: set[str]) -> None:
    """Add what the operations compute to ``values``."""
    left = Counter(name for operation in operations for name in operation.inputs)
    for operation in operations:
        if operation.name in values:
            continue  # an input
        inputs = [values[name] for name in operation.inputs]
        if operation.kind == "Const":
            results = [array_of(operation.attr("value"), "the constant")]
        elif operation.kind in CONTROL_FLOW:
            results = _control_flow(graph, operation, inputs)
        else:
            results = compute(operation, inputs)
        values |= {operation.output(i): value for i, value in enumerate(results)}
        for name in operation.inputs:
            left[name] -= 1
            if not left[name] and name not in wanted:
                values.pop(name, None)


def _control_flow(graph: Graph, operation: Operation, inputs: list[Any]) -> list[Any]:
    if operation.kind in ("If", "StatelessIf"):
        branch = "then_branch" if inputs[0].reshape(-1)[0] else "else_branch"
        return _called(graph, operation, branch, inputs[1:])
    for _ in range(MAX_STEPS):
        if not _called(graph, operation, "cond", inputs)[0].reshape(-1)[0]:
            return inputs
        inputs = _called(graph, operation, "body", inputs)
    raise Refused(f"it runs more than {MAX_STEPS} steps")


def _called(graph: Graph, operation: Operation, key: str, inputs: list[Any]) -> list[Any]:
    function = graph.functions.get(str(operation.attr(key)))
    if function is None:
        raise Refused(f"function '{operation.attr(key)}' is not in the file")
    values = dict(zip(function.parameters, inputs, strict=True))
    ordered = sorted_operations(function.body, function.parameters)
    _run(graph, needed_for(ordered, function.results), values, set(function.results))
    return [values[name] for name in function.results]
