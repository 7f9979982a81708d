"""Writes GraphDefs with the light schema: small graphs, right and broken ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from xnncc.frontends.tensorflow.schema import message
from xnncc.frontends.tensorflow.tensors import DTYPES

NUMBERS = {name: number for number, name in DTYPES.items()}


def graph(*nodes: dict[str, Any], functions: Any = ()) -> bytes:
    """Return the bytes of a GraphDef of ``node(...)``s."""
    proto = message("GraphDef")()
    for entry in nodes:
        _fill(proto.node.add(), entry)
    for name, arguments, body, results in functions:
        function = proto.library.function.add()
        function.signature.name = name
        for argument in arguments:
            function.signature.input_arg.add(name=argument)
        for i, result in enumerate(results):
            function.signature.output_arg.add(name=f"r{i}")
            function.ret[f"r{i}"] = result
        for entry in body:
            _fill(function.node_def.add(), entry)
    return proto.SerializeToString()


def node(name: str, op: str, *inputs: str, **attributes: Any) -> dict[str, Any]:
    """Return a node; attributes: str, bool, int, float, list of ints, tuple = shape, numpy array, ``dtype:NAME``."""
    return {"name": name, "op": op, "inputs": inputs, "attributes": attributes}


def placeholder(name: str = "x", shape: tuple[int, ...] = (1, 4, 4, 3), dtype: str = "float32") -> dict[str, Any]:
    return node(name, "Placeholder", dtype=f"dtype:{dtype}", shape=shape)


def const(name: str, value: Any, dtype: str | None = None) -> dict[str, Any]:
    return node(name, "Const", value=np.asarray(value, dtype))


def _fill(proto: Any, entry: dict[str, Any]) -> None:
    proto.name, proto.op = entry["name"], entry["op"]
    proto.input.extend(entry["inputs"])
    for key, value in entry["attributes"].items():
        attribute = proto.attr[key]
        if isinstance(value, np.ndarray):
            attribute.tensor.dtype = NUMBERS[str(value.dtype)]
            for size in value.shape:
                attribute.tensor.tensor_shape.dim.add(size=size)
            attribute.tensor.tensor_content = value.tobytes()
        elif isinstance(value, tuple):
            for size in value:
                attribute.shape.dim.add(size=size)
            attribute.shape.SetInParent()
        elif isinstance(value, bool):
            attribute.b = value
        elif isinstance(value, int):
            attribute.i = value
        elif isinstance(value, float):
            attribute.f = value
        elif isinstance(value, list):
            attribute.list.i.extend(value)
        elif value.startswith("dtype:"):
            attribute.type = NUMBERS[value.removeprefix("dtype:")]
        elif value.startswith("func:"):
            attribute.func.name = value.removeprefix("func:")
        else:
            attribute.s = value.encode()
