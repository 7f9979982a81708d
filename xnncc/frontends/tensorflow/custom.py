"""The user's own operators in TensorFlow graphs. Attributes: as the importer reads them (``node.py``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..custom_ops import CustomCall, custom_named, emit_custom, run_reference
from ..network import dtype_of, shape_of
from .graph import Operation
from .meanings import MEANINGS, meaning
from .node import Node
from .registry import CONVERTERS, converter


def register(kind: str) -> None:
    """Enter an operator into the registries. Raises: ValueError: there is one of that name."""
    from . import interpret, operators

    assert operators.CONVERTERS is CONVERTERS and interpret.MEANINGS is MEANINGS, "all families are there"
    converter(kind)(_convert)
    meaning(kind)(_meaning)


def has_custom(operations: Sequence[Operation]) -> bool:
    """Return whether one of the operations is the user's own: TensorFlow itself does not run it."""
    return any(custom_named(operation.kind) is not None for operation in operations)


def _convert(n: Node) -> Any:
    exprs = [n.expr(i) for i in range(len(n))]
    constants = [value if isinstance(value, np.ndarray) else None for value in n.values]
    call = _call(n.operation, [shape_of(e) for e in exprs], [dtype_of(e) for e in exprs], constants)
    return emit_custom(n.build, call, exprs)


def _meaning(operation: Operation, *inputs: Any) -> Any:
    arrays = [np.asarray(value) for value in inputs]
    call = _call(operation, [a.shape for a in arrays], [str(a.dtype) for a in arrays], arrays)
    return run_reference(call, arrays)


def _call(operation: Operation, shapes: Sequence[Any], dtypes: Sequence[str], constants: Sequence[Any]) -> CustomCall:
    attributes = dict(operation.attributes)
    shapes = tuple(map(tuple, shapes))
    return CustomCall(operation.kind, operation.name, attributes, shapes, tuple(dtypes), tuple(constants))
