"""Put the bodies of called functions in place of the calls, as TensorFlow 2 writes nearly everything as a function."""

from __future__ import annotations

from dataclasses import replace

from ..refused import Refused
from .graph import BrokenGraph, Function, Graph, Operation, inlined, sorted_operations

CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
MAX_DEPTH = 32
MAX_OPERATIONS = 2**18


def without_calls(graph: Graph) -> Graph:
    """Return the graph, and its functions, without calls; a call's own name stays, as an IdentityN of the results.

    Raises:
        BrokenGraph: a call of a function that is not there, of itself, or with the wrong number of arguments.
    """
    operations = tuple(sorted_operations(_expanded(graph.operations, graph.functions)))
    functions = {
        name: replace(f, body=tuple(sorted_operations(_expanded(f.body, graph.functions), f.parameters)))
        for name, f in graph.functions.items()
    }
    return Graph(operations, graph.outputs, functions)


def _expanded(operations: tuple[Operation, ...], functions: dict[str, Function], depth: int = 0) -> list[Operation]:
    result: list[Operation] = []
    for operation in operations:
        function = functions.get(str(operation.attr("f", operation.kind)))
        if operation.kind not in CALLS and function is None:
            result.append(operation)
            continue
        if function is None:
            raise BrokenGraph(f"{operation.label} calls function '{operation.attr('f')}', which is not in the file")
        if depth >= MAX_DEPTH:
            raise BrokenGraph(f"{operation.label} calls functions more than {MAX_DEPTH} deep")
        try:
            body, results = inlined(operation, function)
        except Refused as refused:
            raise BrokenGraph(f"{operation.label}: {refused.sentence}") from None
        result += _expanded(tuple(body), functions, depth + 1)
        result.append(Operation(operation.name, "IdentityN", tuple(results.values())))
        if len(result) > MAX_OPERATIONS:
            raise BrokenGraph(f"it has more than {MAX_OPERATIONS} operations")
    return result
