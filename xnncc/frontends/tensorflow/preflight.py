"""Before any conversion: does every operator have a converter? All without one are named at once.

A node whose inputs are constants needs none: it is computed at import, whatever it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ...errors import UnsupportedModel
from .graph import CONTROL_FLOW, Graph, Operation, needed_for, node_of, sorted_operations
from .meanings import MEANINGS
from .operators import CONVERTERS

STATIC = frozenset({"Const", "Shape", "ShapeN", "Size", "Rank"})  # constants once all shapes are static
_OLD_LOOPS = frozenset({"Enter", "Exit", "Merge", "Switch", "NextIteration", "LoopCond", "RefEnter", "RefSwitch"})
_VARIABLES = frozenset({"VarHandleOp", "ReadVariableOp", "Variable", "VariableV2", "AssignVariableOp", "Assign"})
_HINTS = (
    (_OLD_LOOPS, "loops and branches of this old form cannot be read: freeze with lower_control_flow=False"),
    (_VARIABLES, "the graph is not frozen: give the SavedModel, or turn its variables into constants"),
    ({"RandomUniform", "RandomStandardNormal"}, "this is a training graph: freeze it for inference"),
    ({"ParseExample", "ParseExampleV2", "DecodeJpeg", "DecodePng", "DecodeRaw"},
     "cut the decoding of files off and feed the tensor after it"),
    ({"NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4", "NonMaxSuppressionV5",
      "CombinedNonMaxSuppression", "CropAndResize", "Where", "TopKV2"},
     "end the network before its post-processing and run that in the app"),
)  # fmt: skip


def check_operators(path: Path, graph: Graph, needed: Iterable[Operation]) -> None:
    """Look at every operation that the outputs need.

    Raises:
        UnsupportedModel: operators have no converter (all of them, sorted).
    """
    missing: dict[str, list[str]] = {}
    for operation in unsupported_operations(graph, needed):
        missing.setdefault(operation.kind, []).append(f"node '{operation.name}'")
    if missing:
        kinds = [f"{kind} ({_some(names)})" for kind, names in sorted(missing.items())]
        count = "1 operator is" if len(kinds) == 1 else f"{len(kinds)} operators are"
        hints = list(dict.fromkeys(hint for kind in sorted(missing) if (hint := hint_for(kind))))
        why = "; ".join([f"{count} not supported: {', '.join(kinds)}", *hints])
        raise UnsupportedModel(f"{path}", why, "See docs/errors.md#unsupported-operator.")


def unsupported_operations(graph: Graph, needed: Iterable[Operation]) -> list[Operation]:
    """Return the operations that have no converter, those of branches and loops too."""
    return _unsupported(graph, list(needed), set(), set())


def hint_for(kind: str) -> str:
    """Return what to do about an operator without a converter, an empty string when nothing special is known."""
    return next((hint for group, hint in _HINTS if kind in group), "")


def _unsupported(graph: Graph, operations: list[Operation], constants: set[str], seen: set[str]) -> list[Operation]:
    found = []
    for operation in operations:
        if operation.kind == "Placeholder":
            continue
        known = all(node_of(name) in constants for name in operation.inputs)
        if operation.kind in STATIC or (known and operation.kind in MEANINGS):
            constants.add(operation.name)
        elif operation.kind in CONTROL_FLOW:
            for key in ("cond", "body", "then_branch", "else_branch"):
                function = graph.functions.get(str(operation.attr(key)))
                if function is not None and function.name not in seen:
                    seen.add(function.name)
                    ordered = sorted_operations(function.body, function.parameters)
                    found += _unsupported(graph, needed_for(ordered, function.results), set(), seen)
        elif operation.kind not in CONVERTERS:
            found.append(operation)
    return found


def _some(names: list[str], at_most: int = 5) -> str:
    more = f" and {len(names) - at_most} more" if len(names) > at_most else ""
    return ", ".join(sorted(names)[:at_most]) + more
