"""Names and types of a network's tensors in other languages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from xnncc.ir.names import c_identifier
from xnncc.ir.plan import TensorInfo

# Words that neither Kotlin nor Swift takes as a parameter's name, and names that our own wrappers use.
_TAKEN = frozenset((
    "as", "break", "case", "class", "continue", "default", "defer", "do", "else", "enum", "extension", "false",
    "for", "fun", "func", "guard", "if", "import", "in", "init", "inout", "interface", "internal", "is", "let",
    "nil", "null", "object", "operator", "package", "private", "protocol", "public", "repeat", "return", "self",
    "static", "struct", "subscript", "super", "switch", "this", "throw", "throws", "true", "try", "typealias",
    "val", "var", "when", "where", "while", "choose", "close", "counts", "inputs", "outputs", "net", "packagePath",
    "reset", "run", "status", "threads", "useVariant", "variant",
))  # fmt: skip
_KOTLIN = {
    "float32": "Float", "float64": "Double", "int8": "Byte", "uint8": "Byte", "bool": "Byte", "int16": "Short",
    "uint16": "Short", "float16": "Short", "bfloat16": "Short", "int32": "Int", "uint32": "Int", "int64": "Long",
    "uint64": "Long",
}  # fmt: skip
_SWIFT = {
    "float32": "Float", "float64": "Double", "int8": "Int8", "uint8": "UInt8", "bool": "UInt8", "int16": "Int16",
    "uint16": "UInt16", "float16": "UInt16", "bfloat16": "UInt16", "int32": "Int32", "uint32": "UInt32",
    "int64": "Int64", "uint64": "UInt64",
}  # fmt: skip
_JAVASCRIPT = {
    "float32": "Float32Array", "float64": "Float64Array", "int8": "Int8Array", "uint8": "Uint8Array",
    "bool": "Uint8Array", "int16": "Int16Array", "uint16": "Uint16Array", "float16": "Uint16Array",
    "bfloat16": "Uint16Array", "int32": "Int32Array", "uint32": "Uint32Array", "int64": "BigInt64Array",
    "uint64": "BigUint64Array",
}  # fmt: skip


@dataclass(frozen=True)
class Argument:
    """A tensor as the templates see it."""

    name: str  # the model's own
    ident: str  # as an identifier, unique among its side
    shape: tuple[int, ...]
    dtype: str
    count: int  # elements
    size_bytes: int
    kotlin: str
    swift: str
    javascript: str

    @property
    def label(self) -> str:
        """The name as it may stand in a comment of any language."""
        return " ".join(self.name.split()).replace("*/", "* /")

    @property
    def shape_text(self) -> str:
        """The shape as people write it: "1 x 3 x 224 x 224"."""
        return " x ".join(str(n) for n in self.shape) or "scalar"


def arguments(tensors: Sequence[TensorInfo]) -> list[Argument]:
    """Return the tensors of one side (inputs or outputs) with their names in every language."""
    taken: set[str] = set()
    result = []
    for tensor in tensors:
        ident = c_identifier(tensor.name).lstrip("_") or "tensor"
        while ident in taken or ident in _TAKEN:
            ident += "_"
        taken.add(ident)
        count = 1
        for n in tensor.shape:
            count *= n
        types = _KOTLIN[tensor.dtype], _SWIFT[tensor.dtype], _JAVASCRIPT[tensor.dtype]
        result.append(Argument(tensor.name, ident, tensor.shape, tensor.dtype, count, tensor.size_bytes, *types))
    return result


def class_name(stem: str) -> str:
    """Return a class name for a stem: "mobilenet-v2.1" -> "MobilenetV21"."""
    words = re.findall(r"[0-9A-Za-z]+", stem)
    name = "".join(word[0].upper() + word[1:] for word in words) or "Network"
    return f"Net{name}" if name[0].isdigit() else name
