"""The user's own operators in TFLite files, on real numbers. Tensors are as TFLite has them (images NHWC).

Attributes: ``{"custom_options": bytes}``, a FlexBuffer as the converter wrote it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..custom_ops import CustomCall, emit_custom, run_reference
from ..network import dtype_of, shape_of
from .flow import Flow
from .interpret import Step, evaluators
from .model import Operator
from .op import Op
from .registry import CONVERTERS, converter


def register(kind: str) -> None:
    """Enter an operator into the registries. Raises: ValueError: there is one of that name."""
    from . import interpret_layout, operators

    assert operators.CONVERTERS is CONVERTERS, "all families are there to be compared with"
    if kind in evaluators():
        raise ValueError(f"operator '{kind}' has an evaluator")
    converter(kind)(_convert)
    interpret_layout.EVALUATORS[kind] = _evaluate


def _convert(n: Op) -> Any:
    exprs = [n.expr(i) for i in range(len(n))]
    constants = [value if isinstance(value, np.ndarray) else None for value in n.values]
    call = _call(n.op, n.out().name, [shape_of(e) for e in exprs], [dtype_of(e) for e in exprs], constants)
    return [Flow(n.emit(result)) for result in emit_custom(n.build, call, exprs)]


def _evaluate(step: Step) -> Any:
    arrays = [np.asarray(value) for value in step.x]
    shapes, dtypes = [a.shape for a in arrays], [str(a.dtype) for a in arrays]
    return run_reference(_call(step.op, step.outputs[0].name, shapes, dtypes, arrays), arrays)


def _call(
    op: Operator, name: str, shapes: Sequence[Any], dtypes: Sequence[str], constants: Sequence[Any]
) -> CustomCall:
    attributes = {"custom_options": op.custom}
    return CustomCall(op.kind, name, attributes, tuple(map(tuple, shapes)), tuple(dtypes), tuple(constants))
