"""Node: one ONNX operator as its converter sees it."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, TypeAlias

import numpy as np
import onnx
from tvm.relax import Expr

from ..emitter import Emitter
from ..network import NetworkBuilder, dtype_of, shape_of
from ..refused import Refused

Value: TypeAlias = "np.ndarray | Expr"  # a constant, or a tensor that is computed at run time


def operator_of(proto: onnx.NodeProto) -> str:
    """Return ``Conv`` for the standard domain, ``com.microsoft.Gelu`` for others."""
    return proto.op_type if proto.domain in ("", "ai.onnx") else f"{proto.domain}.{proto.op_type}"


def label_of(proto: onnx.NodeProto) -> str:
    """Return the node for a message: ``node 'up1' (Resize)``; nameless nodes are named by what they compute."""
    if proto.name:
        return f"node '{proto.name}' ({operator_of(proto)})"
    output = next((name for name in proto.output if name), "?")
    return f"node of tensor '{output}' ({operator_of(proto)})"


def _check_attribute_types(proto: onnx.NodeProto, opset: int) -> None:
    """Refuse attributes of another type than the standard gives them, as damaged files have them."""
    domain = "" if proto.domain == "ai.onnx" else proto.domain
    if not onnx.defs.has(proto.op_type, domain=domain, max_inclusive_version=opset):
        return
    known = onnx.defs.get_schema(proto.op_type, opset, domain).attributes
    for attribute in proto.attribute:
        if attribute.name in known and attribute.type != int(known[attribute.name].type):
            kinds = onnx.AttributeProto.AttributeType.Name
            found, expected = (kinds(int(t)).lower() for t in (attribute.type, known[attribute.name].type))
            raise Refused(f"attribute '{attribute.name}' has type {found}, the standard says {expected}")


class Node(Emitter):
    """One operator: inputs as constants or expressions, attributes with defaults, and ways to emit Relax.

    An attribute that no converter asks for is refused, so nothing is silently left out: see ``unread``.
    """

    def __init__(
        self,
        proto: onnx.NodeProto,
        opset: int,
        values: list[Value | None],
        build: NetworkBuilder,
        used: Callable[[str], int],
    ) -> None:
        super().__init__(build)
        self.proto, self.opset, self.values = proto, opset, values
        self._used = used
        self._attributes = {a.name: onnx.helper.get_attribute_value(a) for a in proto.attribute}
        _check_attribute_types(proto, opset)
        self._read: set[str] = set()

    def on(self, values: list[Value | None], opset: int | None = None) -> Node:
        """Return the same operator on other inputs, by the rules of another opset if one is given."""
        other = copy(self)
        other.values, other.opset = values, opset or self.opset
        return other

    # Attributes

    def attr(self, name: str, default: Any = None) -> Any:
        """Return an attribute (strings decoded, lists as lists) or ``default``."""
        self._read.add(name)
        value = self._attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def choice(self, name: str, default: str, allowed: tuple[str, ...]) -> str:
        """Return a string attribute that must be one of ``allowed``."""
        value = self.attr(name, default)
        if value not in allowed:
            raise Refused(f"{name} '{value}' is not supported", f"Supported: {', '.join(allowed)}.")
        return value

    def has_attr(self, name: str) -> bool:
        """Return whether the node sets the attribute."""
        self._read.add(name)
        return name in self._attributes

    def ignore(self, *names: str) -> None:
        """Say that attributes change nothing at inference."""
        self._read.update(names)

    def unread(self) -> list[str]:
        """Return the attributes that the converter did not look at."""
        return sorted(set(self._attributes) - self._read)

    # Inputs

    def __len__(self) -> int:
        return len(self.values)

    def has(self, index: int) -> bool:
        """Return whether input ``index`` is given."""
        return index < len(self.values) and self.values[index] is not None

    def is_const(self, index: int) -> bool:
        """Return whether input ``index`` is a constant."""
        return self.has(index) and isinstance(self.values[index], np.ndarray)

    def const(self, index: int, what: str) -> np.ndarray:
        """Return constant input ``index``; ``what`` names it in the message when it is computed at run time."""
        value = self._given(index, what)
        if not isinstance(value, np.ndarray):
            name = self.proto.input[index]
            if self.build.value_of(value) is None:
                raise Refused(f"{what} is input '{name}', whose value a build needs", f"Fix it: --fix {name}=VALUES.")
            why = f"{what} (tensor '{name}') is computed at run time"
            raise Refused(why, "Export the model with it as a constant, or fix the inputs it comes from: --fix.")
        return value

    def ints(self, index: int, what: str) -> list[int]:
        """Return constant input ``index`` as a flat list of ints."""
        return [int(value) for value in self.const(index, what).reshape(-1)]

    def expr(self, index: int) -> Expr:
        """Return input ``index`` as a Relax expression."""
        value = self._given(index, "")
        return self.build.constant(value) if isinstance(value, np.ndarray) else value

    def exprs(self) -> list[Expr]:
        """Return all inputs as Relax expressions."""
        return [self.expr(index) for index in range(len(self.values))]

    def _given(self, index: int, what: str) -> Value:
        value = self.values[index] if index < len(self.values) else None
        if value is None:
            raise Refused(f"input {index}{f' ({what})' if what else ''} is missing")
        if isinstance(value, list):
            raise Refused(f"input {index} is a sequence, a tensor is expected")
        return value

    def sequence(self, index: int) -> list[Value]:
        """Return input ``index``, which is a sequence of known length."""
        value = self.values[index] if index < len(self.values) else None
        if not isinstance(value, list):
            raise Refused(f"input {index} is not a sequence of known length")
        return value

    def shape(self, index: int = 0) -> tuple[int, ...]:
        """Return the static shape of input ``index``."""
        value = self._given(index, "")
        return tuple(value.shape) if isinstance(value, np.ndarray) else shape_of(value)

    def dtype(self, index: int = 0) -> str:
        """Return the numpy dtype name of input ``index``."""
        value = self._given(index, "")
        return str(value.dtype) if isinstance(value, np.ndarray) else dtype_of(value)

    def only_used_here(self, index: int) -> bool:
        """Return whether nothing but this node reads input ``index``."""
        return self._used(self.proto.input[index]) == 1

    # Outputs

    def wants(self, index: int) -> bool:
        """Return whether somebody reads output ``index``."""
        return index < len(self.proto.output) and self._used(self.proto.output[index]) > 0
