"""The user's own operators in ONNX graphs. Attributes: as ``onnx.helper`` gives them, strings as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx

from ..custom_ops import CustomCall, emit_custom
from ..network import constant
from ..refused import Refused
from .node import Node, operator_of
from .registry import CONVERTERS, converter


def register(kind: str) -> None:
    """Enter an operator into the registry. Raises: ValueError: there is one of that name."""
    from . import operators

    assert operators.CONVERTERS is CONVERTERS, "all families are there to be compared with"
    converter(kind)(_convert)


def _convert(n: Node) -> Any:
    if any(value is None or isinstance(value, list) for value in n.values):
        raise Refused("an operand of it is left out or a sequence")
    n.ignore(*(attribute.name for attribute in n.proto.attribute))
    constants = [value if isinstance(value, np.ndarray) else None for value in n.values]
    shapes = [n.shape(i) for i in range(len(n))]
    call = _call(n.proto, shapes, [n.dtype(i) for i in range(len(n))], constants)
    return emit_custom(n.build, call, [n.expr(i) if c is None else constant(c) for i, c in enumerate(constants)])


def call_of(proto: onnx.NodeProto, arrays: Sequence[np.ndarray]) -> CustomCall:
    """Return a node whose operands are all known."""
    return _call(proto, [a.shape for a in arrays], [str(a.dtype) for a in arrays], arrays)


def _call(proto: onnx.NodeProto, shapes: Sequence[Any], dtypes: Sequence[str], constants: Sequence[Any]) -> CustomCall:
    values = {a.name: onnx.helper.get_attribute_value(a) for a in proto.attribute}
    attributes = {name: v.decode() if isinstance(v, bytes) else v for name, v in values.items()}
    name = proto.name or next((name for name in proto.output if name), "")
    return CustomCall(operator_of(proto), name, attributes, tuple(map(tuple, shapes)), tuple(dtypes), tuple(constants))
