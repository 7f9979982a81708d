"""Run a graph with numpy, operation by operation: the reference runtime where TensorFlow is not installed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from . import meaning_arithmetic, meaning_layout, meaning_windows
from .graph import Graph, Operation, node_of
from .meanings import MEANINGS, compute
from .tensors import array_of

FAMILIES = (meaning_arithmetic, meaning_layout, meaning_windows)

__all__ = ["FAMILIES", "MEANINGS", "interpret", "needed_for"]


def needed_for(graph: Graph, tensors: Iterable[str]) -> list[Operation]:
    """Return the operations that ``tensors`` depend on, in order."""
    wanted = {node_of(name) for name in tensors}
    needed = []
    for operation in reversed(graph.operations):
        if operation.name in wanted:
            needed.append(operation)
            wanted.update(node_of(name) for name in operation.inputs)
    return needed[::-1]


def interpret(graph: Graph, feeds: Mapping[str, np.ndarray], wanted: Iterable[str]) -> dict[str, np.ndarray]:
    """Return the ``wanted`` tensors; others are freed after their last use.

    Raises:
        Refused: an operator that is not known here, or operands that do not fit.
    """
    wanted = set(wanted)
    operations = needed_for(graph, wanted)
    left = Counter(name for operation in operations for name in operation.inputs)
    values: dict[str, np.ndarray] = {}
    for operation in operations:
        if operation.name in feeds:
            results = [feeds[operation.name]]
        elif operation.kind == "Const":
            results = [array_of(operation.attr("value"), "the constant")]
        else:
            results = compute(operation, [values[name] for name in operation.inputs])
        values |= {operation.output(i): value for i, value in enumerate(results)}
        for name in operation.inputs:
            left[name] -= 1
            if not left[name] and name not in wanted:
                values.pop(name, None)
    return {name: values[name] for name in wanted if name in values}
