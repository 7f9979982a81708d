"""Node: one TensorFlow operation as its converter sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from tvm import relax
from tvm.relax import Expr

from ...ir.transposed import transposed_name
from ..emitter import Emitter
from ..network import NetworkBuilder, dtype_of, shape_of
from ..refused import Refused
from .graph import Operation
from .tensor_list import TensorList

Value: TypeAlias = "np.ndarray | Expr | TensorList"  # a constant, a tensor computed at run time, or a list of them

TO_NCHW, TO_NHWC = [0, 3, 1, 2], [0, 2, 3, 1]


@dataclass(frozen=True)
class Made:
    """How a tensor came to be: its operation and the values that it read."""

    operation: Operation
    values: tuple[Any, ...]


class Node(Emitter):
    """One operation: inputs as constants or expressions, attributes with defaults, and ways to emit Relax."""

    def __init__(
        self,
        operation: Operation,
        values: list[Any],
        build: NetworkBuilder,
        made: Callable[[str], Made | None],
        warn: Callable[[str], None],
    ) -> None:
        super().__init__(build)
        self.operation, self.values = operation, values
        self._made, self.warn = made, warn

    # Attributes

    def attr(self, name: str, default: Any = None) -> Any:
        """Return an attribute or ``default``."""
        return self.operation.attributes.get(name, default)

    def choice(self, name: str, default: str, allowed: tuple[str, ...]) -> str:
        """Return a string attribute that must be one of ``allowed``."""
        value = self.attr(name, default)
        if value not in allowed:
            raise Refused(f"{name} '{value}' is not supported", f"Supported: {', '.join(allowed)}.")
        return value

    # Inputs

    def __len__(self) -> int:
        return len(self.values)

    def is_const(self, index: int) -> bool:
        """Return whether input ``index`` is a constant."""
        return isinstance(self._given(index), np.ndarray)

    def const(self, index: int, what: str) -> np.ndarray:
        """Return constant input ``index``; ``what`` names it in the message when it is computed at run time."""
        value = self._given(index)
        if not isinstance(value, np.ndarray):
            why = f"{what} (tensor '{self.operation.inputs[index]}') is computed at run time"
            raise Refused(why, "Freeze the network with it as a constant.")
        return value

    def ints(self, index: int, what: str) -> list[int]:
        """Return constant input ``index`` as a flat list of ints."""
        return [int(value) for value in self.const(index, what).reshape(-1)]

    def integer(self, index: int, what: str) -> int:
        """Return constant input ``index``, which has one element."""
        values = self.ints(index, what)
        if len(values) != 1:
            raise Refused(f"{what} has {len(values)} elements, not one")
        return values[0]

    def expr(self, index: int) -> Expr:
        """Return input ``index`` as a Relax expression."""
        return self.as_expr(self._given(index))

    def as_expr(self, value: Any) -> Expr:
        """Return a value as a Relax expression."""
        if isinstance(value, TensorList) or value is None:
            raise Refused("it reads a list of tensors where it needs a tensor")
        return self.build.constant(value) if isinstance(value, np.ndarray) else value

    def _given(self, index: int) -> Any:
        if index >= len(self.values):
            raise Refused(f"input {index} is missing")
        return self.values[index]

    def made(self, index: int) -> Made | None:
        """Return how input ``index`` came to be, if an operation of this graph computed it."""
        return self._made(self.operation.inputs[index])

    def shape(self, index: int = 0) -> tuple[int, ...]:
        """Return the static shape of input ``index``."""
        value = self._given(index)
        return tuple(value.shape) if isinstance(value, np.ndarray) else shape_of(self.as_expr(value))

    def dtype(self, index: int = 0) -> str:
        """Return the numpy dtype name of input ``index``."""
        value = self._given(index)
        return str(value.dtype) if isinstance(value, np.ndarray) else dtype_of(self.as_expr(value))

    # Images

    @property
    def is_nchw(self) -> bool:
        """Return whether the operation's images are NCHW."""
        return self.choice("data_format", "NHWC", ("NHWC", "NCHW")) == "NCHW"

    def image(self, index: int = 0) -> Expr:
        """Return 4-D input ``index`` as NCHW."""
        if self.rank(index) != 4:
            raise Refused(f"input {list(self.shape(index))} has not four dimensions")
        return self.expr(index) if self.is_nchw else self.emit(relax.op.permute_dims(self.expr(index), TO_NCHW))

    def image_result(self, y: Expr) -> Expr:
        """Return NCHW ``y`` in the operation's own layout."""
        if self.is_nchw:
            return y
        return relax.op.permute_dims(self.build.emit(y, transposed_name(self.operation.name, TO_NCHW)), TO_NHWC)

    def pair(self, name: str) -> tuple[int, int]:
        """Return the (height, width) of an attribute that has a number for each dimension."""
        values = self.attr(name) or [1, 1, 1, 1]
        if len(values) != 4:
            raise Refused(f"{name} {values} has not four numbers")
        at = (2, 3) if self.is_nchw else (1, 2)
        if any(values[i] != 1 for i in range(4) if i not in at):
            raise Refused(f"{name} {values} over batch or channels is not supported")
        if min(values) < 1:
            raise Refused(f"{name} {values} must be at least 1")
        return values[at[0]], values[at[1]]
