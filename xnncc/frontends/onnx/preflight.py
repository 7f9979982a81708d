"""Before any conversion: is the opset one that we know, and does every operator have a converter?

All operators without one are named at once. A node whose inputs are constants needs none: it is computed at import
(``fold.py``), whatever it is. Attribute values and shapes are looked at during conversion, which also goes on after
the first problem and names all of them.
"""

from __future__ import annotations

from pathlib import Path

import onnx

from ...errors import UnsupportedModel
from .control_flow import CONTROL_FLOW
from .expand_function import has_body
from .node import label_of, operator_of
from .operators import CONVERTERS, OTHER_DOMAINS

MIN_OPSET = 6
RANDOM = frozenset(
    {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli"}
)
_STATIC = frozenset({"Constant", "Shape", "Size"})  # constants once all shapes are static
_TRAINING = "ai.onnx.preview.training"


def check_model(path: Path, model: onnx.ModelProto) -> int:
    """Return the opset of ai.onnx.

    Raises:
        UnsupportedModel: the opset is out of range, or operators have no converter (all of them, sorted).
    """
    opset = opset_of(model)
    newest = onnx.defs.onnx_opset_version()
    if not MIN_OPSET <= opset <= newest:
        why = f"opset {opset or 'not stated'}; xnncc reads opset {MIN_OPSET} to {newest}"
        raise UnsupportedModel(f"{path}", why, "Export again with opset_version=17.")
    missing: dict[str, list[str]] = {}
    for proto in unsupported_nodes(model):
        missing.setdefault(operator_of(proto), []).append(label_of(proto).rsplit(" (", 1)[0])
    if missing:
        raise UnsupportedModel(f"{path}", _words(missing), "See docs/errors.md#unsupported-operator.")
    return opset


def opset_of(model: onnx.ModelProto) -> int:
    """Return the opset of ai.onnx, 0 when it is not stated."""
    return max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=0)


def unsupported_nodes(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """Return the nodes whose operator has no converter, those of branches and loops too."""
    return _unsupported(model.graph, {tensor.name for tensor in model.graph.initializer}, opset_of(model))


def is_supported(proto: onnx.NodeProto, opset: int) -> bool:
    """Return whether the operator has a converter, or a body of operators by the standard."""
    operator = operator_of(proto)
    return operator in CONVERTERS or operator in CONTROL_FLOW or (operator not in RANDOM and has_body(proto, opset))


def _unsupported(graph: onnx.GraphProto, constants: set[str], opset: int) -> list[onnx.NodeProto]:
    found = []
    for proto in graph.node:
        known = all(name in constants for name in proto.input if name)
        if proto.op_type in _STATIC or (known and proto.op_type not in RANDOM and proto.op_type not in CONTROL_FLOW):
            constants.update(proto.output)
        elif not is_supported(proto, opset):
            found.append(proto)
        elif proto.op_type in CONTROL_FLOW and not known:
            for attribute in proto.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    weights = {tensor.name for tensor in attribute.g.initializer}
                    found += _unsupported(attribute.g, constants | weights, opset)
    return found


def _words(missing: dict[str, list[str]]) -> str:
    kinds = [f"{operator} ({_some(labels)})" for operator, labels in sorted(missing.items())]
    note = ""
    domains = sorted({op.rpartition(".")[0] for op in missing if "." in op} - set(OTHER_DOMAINS))
    if _TRAINING in domains:
        note = "; this is a training graph, export the network for inference"
    count = "1 operator is" if len(kinds) == 1 else f"{len(kinds)} operators are"
    return f"{count} not supported: {', '.join(kinds)}{note}"


def _some(labels: list[str], at_most: int = 5) -> str:
    more = f" and {len(labels) - at_most} more" if len(labels) > at_most else ""
    return ", ".join(sorted(labels)[:at_most]) + more
