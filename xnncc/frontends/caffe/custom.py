"""The user's own layers in Caffe networks. Operands: the bottoms, then the blobs of weights.

Attributes: the layer's messages as tables, ``{"swirl_param": {"strength": 0.5}}``; numbers as numbers, true and false
as bools, repeated fields as lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..custom_ops import CustomCall, emit_custom, run_reference
from .formulas import FORMULAS, formula
from .net import Layer
from .node import Node
from .prototxt import Message, Scalar
from .registry import CONVERTERS, converter


def register(kind: str) -> None:
    """Enter a type of layer into the registries. Raises: ValueError: there is one of that name."""
    from . import layers, reference

    assert layers.CONVERTERS is CONVERTERS and reference.FORMULAS is FORMULAS, "all families are there"
    converter(kind)(_convert)
    formula(kind)(_formula)


def _convert(n: Node) -> Any:
    for field in n.layer.body.fields:
        if field.endswith("_param") and n.layer.body.messages(field):
            n.params(field).ignore(*n.layer.body.messages(field)[0].fields)
    values = [*n.values, *n.layer.blobs]
    constants = [np.asarray(v, "float32") if isinstance(v, np.ndarray) else None for v in values]
    shapes = [n.shape(i) for i in range(len(n))] + [blob.shape for blob in n.layer.blobs]
    exprs = [n.expr(i) if i < len(n) else n.build.constant(np.asarray(c)) for i, c in enumerate(constants)]
    return emit_custom(n.build, _call(n.layer, shapes, constants), exprs)


def _formula(layer: Layer, inputs: list[np.ndarray]) -> list[np.ndarray]:
    arrays = [np.asarray(a, "float32") for a in (*inputs, *layer.blobs)]
    return run_reference(_call(layer, [a.shape for a in arrays], arrays), arrays)


def _call(layer: Layer, shapes: Sequence[Any], constants: Sequence[Any]) -> CustomCall:
    attributes = {name: value for name, value in _table(layer.body).items() if name.endswith("_param")}
    dtypes = ("float32",) * len(shapes)
    return CustomCall(layer.type, layer.name, attributes, tuple(map(tuple, shapes)), dtypes, tuple(constants))


def _table(message: Message) -> dict[str, Any]:
    """Return a message as plain data."""
    plain = {name: [_plain(value) for value in values] for name, values in message.fields.items()}
    return {name: values[0] if len(values) == 1 else values for name, values in plain.items()}


def _plain(value: Message | Scalar) -> Any:
    if isinstance(value, Message):
        return _table(value)
    if value.is_string or value.text in ("true", "false"):
        return value.text if value.is_string else value.text == "true"
    for kind in (int, float):
        try:
            return kind(value.text)
        except ValueError:
            continue
    return value.text
