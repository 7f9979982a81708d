"""Operators that the standard defines as a graph of simpler ones: their bodies, made ready to stand in their place.

    Given:                                    Result (nodes of the body, in order):
      y = Celu<alpha=2>(x)                      y/alpha = Constant<value_float=2>()
                                                ...
                                                y = Max(y/positive, y/negative)

Tensors of the body are called after the node's first output, so that they meet no other name. A converter of ours goes
before the body: it knows better kernels. Bodies may depend on the dtypes and shapes of the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, FunctionProto, NodeProto, TypeProto

Types = Sequence["tuple[str, tuple[int, ...]] | None"]  # dtype and shape of each input; None: not given


@dataclass(frozen=True)
class Body:
    """The nodes that stand for one node, and the opset that they are written in."""

    nodes: tuple[NodeProto, ...]
    opset: int


def has_body(proto: NodeProto, opset: int) -> bool:
    """Return whether the standard defines the operator by a body."""
    schema = _schema_of(proto, opset)
    return schema is not None and bool(schema.has_function or schema.has_context_dependent_function)


def body_of(proto: NodeProto, opset: int, types: Types) -> Body | None:
    """Return the body of a node on inputs of ``types``; None when the standard gives none for them."""
    schema = _schema_of(proto, opset)
    if schema is None:
        return None
    function = _function_of(schema, proto, opset, types)
    if function is None or not function.node:
        return None
    version = max((o.version for o in function.opset_import if o.domain in ("", "ai.onnx")), default=opset)
    return Body(tuple(_placed(function, proto, schema)), version)


def _schema_of(proto: NodeProto, opset: int) -> onnx.defs.OpSchema | None:
    domain = "" if proto.domain == "ai.onnx" else proto.domain
    if not onnx.defs.has(proto.op_type, domain=domain, max_inclusive_version=opset):
        return None
    return onnx.defs.get_schema(proto.op_type, opset, domain)


def _function_of(schema: onnx.defs.OpSchema, proto: NodeProto, opset: int, types: Types) -> FunctionProto | None:
    function = FunctionProto()
    if schema.has_function:
        versions = [version for version in schema.function_opset_versions if version <= opset]
        if not versions:
            return None
        function.ParseFromString(schema.get_function_with_opset_version(versions[-1]))
        return function
    versions = [version for version in schema.context_dependent_function_opset_versions if version <= opset]
    if not schema.has_context_dependent_function or not versions:
        return None
    protos = [_type_proto(entry).SerializeToString() for entry in types]
    try:
        data = schema.get_context_dependent_function_with_opset_version(versions[-1], proto.SerializeToString(), protos)
    except RuntimeError:  # the standard's builder says so when it has no body for these types
        return None
    function.ParseFromString(data)
    return function


def _type_proto(entry: tuple[str, tuple[int, ...]] | None) -> TypeProto:
    if entry is None:
        return TypeProto()
    dtype, shape = entry
    return onnx.helper.make_tensor_type_proto(onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)


def _placed(function: FunctionProto, proto: NodeProto, schema: onnx.defs.OpSchema) -> list[NodeProto]:
    """Return the function's nodes with its formal names and attributes replaced by those of ``proto``."""
    prefix = next((name for name in proto.output if name), proto.op_type)
    names = dict.fromkeys(function.input, "")
    names.update(zip(function.input, proto.input, strict=False))
    for formal, actual in zip(function.output, [*proto.output, *[""] * len(function.output)], strict=False):
        names[formal] = actual or f"{prefix}/{formal}"
    given = {attribute.name: attribute for attribute in proto.attribute}
    for name, attribute in schema.attributes.items():
        if name not in given and attribute.default_value.type != AttributeProto.UNDEFINED:
            given[name] = attribute.default_value

    def renamed(name: str) -> str:
        return names.setdefault(name, f"{prefix}/{name}") if name else ""

    nodes = []
    for node in function.node:
        copy = _with_attributes(node, given)
        copy.name = proto.name or ""
        copy.input[:] = [renamed(name) for name in node.input]
        copy.output[:] = [renamed(name) for name in node.output]
        for attribute in copy.attribute:
            if attribute.type == AttributeProto.GRAPH:
                _rename_graph(attribute.g, renamed, set(), given)
        nodes.append(copy)
    return nodes


def _with_attributes(node: NodeProto, given: dict[str, Any]) -> NodeProto:
    """Return a copy of ``node`` whose references to the function's attributes are values; absent ones are dropped."""
    copy = NodeProto()
    copy.CopyFrom(node)
    del copy.attribute[:]
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            copy.attribute.add().CopyFrom(attribute)
        elif attribute.ref_attr_name in given:
            added = copy.attribute.add()
            added.CopyFrom(given[attribute.ref_attr_name])
            added.name = attribute.name
    return copy


def _rename_graph(graph: onnx.GraphProto, renamed: Callable[[str], str], own: set[str], given: dict[str, Any]) -> None:
    """Rename what a subgraph reads from outside of it; its own tensors keep their names."""
    own = own | {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    own |= {name for node in graph.node for name in node.output}
    for node in graph.node:
        node.CopyFrom(_with_attributes(node, given))
        node.input[:] = [name if name in own or not name else renamed(name) for name in node.input]
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                _rename_graph(attribute.g, renamed, own, given)
    for output in graph.output:
        output.name = output.name if output.name in own else renamed(output.name)
