"""The protobuf messages of a GraphDef, made from a table at first use: field names and numbers are TensorFlow's.

Only what an inference graph holds is here; fields that are not (versions, devices' details, debug info) are skipped by
protobuf as unknown. See tensorflow/core/framework/{graph,node_def,attr_value,tensor,function}.proto.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # type: ignore[import-untyped]

_PACKAGE = "xnncc.tensorflow"  # not "tensorflow": the real messages may live in the same process
_SCALARS = {"bytes": 12, "string": 9, "int64": 3, "int32": 5, "uint32": 13, "uint64": 4, "float": 2, "double": 1,
            "bool": 8}  # fmt: skip

# message -> field -> (number, type); "*" repeats, "map:" maps strings to a type. Enums are read as int32.
_MESSAGES: dict[str, dict[str, tuple[int, str]]] = {
    "GraphDef": {"node": (1, "*NodeDef"), "library": (2, "FunctionDefLibrary")},
    "NodeDef": {"name": (1, "string"), "op": (2, "string"), "input": (3, "*string"), "attr": (5, "map:AttrValue")},
    "AttrValue": {
        "list": (1, "ListValue"), "s": (2, "bytes"), "i": (3, "int64"), "f": (4, "float"), "b": (5, "bool"),
        "type": (6, "int32"), "shape": (7, "TensorShapeProto"), "tensor": (8, "TensorProto"),
        "placeholder": (9, "string"), "func": (10, "NameAttrList"),
    },
    "ListValue": {
        "s": (2, "*bytes"), "i": (3, "*int64"), "f": (4, "*float"), "b": (5, "*bool"), "type": (6, "*int32"),
        "shape": (7, "*TensorShapeProto"),
    },
    "NameAttrList": {"name": (1, "string")},
    "TensorShapeProto": {"dim": (2, "*Dim"), "unknown_rank": (3, "bool")},
    "Dim": {"size": (1, "int64")},
    "TensorProto": {
        "dtype": (1, "int32"), "tensor_shape": (2, "TensorShapeProto"), "tensor_content": (4, "bytes"),
        "half_val": (13, "*int32"), "float_val": (5, "*float"), "double_val": (6, "*double"), "int_val": (7, "*int32"),
        "string_val": (8, "*bytes"), "int64_val": (10, "*int64"), "bool_val": (11, "*bool"),
        "uint32_val": (16, "*uint32"), "uint64_val": (17, "*uint64"),
    },
    "FunctionDefLibrary": {"function": (1, "*FunctionDef")},
    "FunctionDef": {
        "signature": (1, "OpDef"), "node_def": (3, "*NodeDef"), "ret": (4, "map:string"), "attr": (5, "map:AttrValue"),
    },
    "OpDef": {"name": (1, "string"), "input_arg": (2, "*ArgDef"), "output_arg": (3, "*ArgDef")},
    "ArgDef": {"name": (1, "string")},
}  # fmt: skip
_ONEOF = {"AttrValue": "value"}


@lru_cache(maxsize=1)
def message(name: str = "GraphDef") -> Any:
    """Return the class of a message."""
    file = descriptor_pb2.FileDescriptorProto(name="xnncc/tensorflow.proto", package=_PACKAGE, syntax="proto3")
    for title, fields in _MESSAGES.items():
        _describe(file.message_type.add(name=title), title, fields)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


def _describe(proto: Any, title: str, fields: dict[str, tuple[int, str]]) -> None:
    if title in _ONEOF:
        proto.oneof_decl.add(name=_ONEOF[title])
    for name, (number, kind) in fields.items():
        field = proto.field.add(name=name, number=number, label=1)
        if kind.startswith("map:"):
            entry = proto.nested_type.add(name=f"{name.capitalize()}Entry")
            entry.options.map_entry = True
            entry.field.add(name="key", number=1, label=1, type=_SCALARS["string"])
            _set_type(entry.field.add(name="value", number=2, label=1), kind.removeprefix("map:"))
            field.label, field.type, field.type_name = 3, 11, f".{_PACKAGE}.{title}.{entry.name}"
            continue
        if kind.startswith("*"):
            field.label = 3
        _set_type(field, kind.removeprefix("*"))
        if title in _ONEOF:
            field.oneof_index = 0


def _set_type(field: Any, kind: str) -> None:
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type, field.type_name = 11, f".{_PACKAGE}.{kind}"
