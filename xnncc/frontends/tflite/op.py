"""Op: one TFLite operator as its converter sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from tvm import relax
from tvm.relax import Expr

from ..emitter import Emitter
from ..network import NetworkBuilder, dtype_of
from ..refused import Refused
from .fixed_point import dequantise
from .flow import TO_NCHW, Flow
from .model import Graph, Operator, Tensor
from .schema import ACTIVATIONS, PADDINGS

Value: TypeAlias = "np.ndarray | Flow"  # a constant, or what is computed at run time


class Op(Emitter):
    """One operator: operands as constants or expressions in either layout, options, and ways to emit Relax."""

    def __init__(
        self,
        graph: Graph,
        op: Operator,
        values: list[Value | None],
        build: NetworkBuilder,
        warn: Callable[[str], None],
    ) -> None:
        super().__init__(build)
        self.graph, self.op, self.values, self.warn = graph, op, values, warn

    @property
    def kind(self) -> str:
        """The operator's name."""
        return self.op.kind

    # Options

    def option(self, name: str) -> Any:
        """Return an option of the operator."""
        return self.op.options[name]

    @property
    def activation(self) -> str:
        """The fused activation's name."""
        return self._named(ACTIVATIONS, "activation")

    @property
    def padding(self) -> str:
        """SAME or VALID."""
        return self._named(PADDINGS, "padding")

    def _named(self, names: tuple[str, ...], option: str) -> str:
        number = self.option(option)
        if not 0 <= number < len(names):
            raise Refused(f"{option} {number} is none of {', '.join(names)}")
        return names[number]

    # Operands

    def __len__(self) -> int:
        return len(self.values)

    def has(self, index: int) -> bool:
        """Return whether operand ``index`` is given."""
        return index < len(self.values) and self.values[index] is not None

    def is_const(self, index: int) -> bool:
        """Return whether operand ``index`` is a constant."""
        return self.has(index) and isinstance(self.values[index], np.ndarray)

    def _given(self, index: int) -> Value:
        value = self.values[index] if index < len(self.values) else None
        if value is None:
            raise Refused(f"operand {index} is missing")
        return value

    def tensor(self, index: int = 0) -> Tensor:
        """Return the tensor of the file behind operand ``index``."""
        self._given(index)
        return self.graph.tensors[self.op.inputs[index]]

    def out(self, index: int = 0) -> Tensor:
        """Return the tensor of the file that output ``index`` becomes."""
        return self.graph.tensors[self.op.outputs[index]]

    def const(self, index: int, what: str) -> np.ndarray:
        """Return constant operand ``index``; ``what`` names it in the message when it is computed at run time."""
        value = self._given(index)
        if not isinstance(value, np.ndarray):
            why = f"{what} (tensor '{self.tensor(index).name}') is computed at run time"
            raise Refused(why, "Convert the model with it as a constant.")
        return value

    def ints(self, index: int, what: str) -> list[int]:
        """Return constant operand ``index`` as a flat list of ints."""
        return [int(value) for value in self.const(index, what).reshape(-1)]

    def weights(self, index: int, what: str = "the weights") -> np.ndarray:
        """Return constant weights for an operator on real numbers; stored integers become float32, and it is said."""
        value = self.const(index, what)
        if not self.tensor(index).is_quantised:
            return value
        self.warn(
            f"weights '{self.tensor(index).name}' are {value.dtype} and their activations float32 (dynamic range): "
            "they are built as float32, LiteRT rounds the activations to 8 bits"
        )
        return dequantise(value, self.tensor(index))

    def shape(self, index: int = 0) -> tuple[int, ...]:
        """Return the shape of operand ``index`` as TFLite knows it."""
        return tuple(self._given(index).shape)

    def dtype(self, index: int = 0) -> str:
        """Return the numpy dtype name of operand ``index``."""
        value = self._given(index)
        return str(value.dtype) if isinstance(value, np.ndarray) else dtype_of(value.expr)

    def expr(self, index: int = 0) -> Expr:
        """Return operand ``index`` as TFLite knows it."""
        value = self._given(index)
        return self.build.constant(value) if isinstance(value, np.ndarray) else value.logical(self.build)

    def planar(self, index: int = 0) -> Expr:
        """Return operand ``index`` [N, H, W, C] as [N, C, H, W]."""
        value = self._given(index)
        if len(value.shape) != 4:
            raise Refused(f"operand {index} {list(value.shape)} is no image [N, H, W, C]")
        if isinstance(value, np.ndarray):
            return self.build.derived(value, TO_NCHW, lambda array: array.transpose(TO_NCHW))
        return value.planar(self.build)

    def is_planar(self, index: int = 0) -> bool:
        """Return whether operand ``index`` was computed as [N, C, H, W]."""
        value = self.values[index]
        return isinstance(value, Flow) and value.is_planar

    def alike(self, *indices: int) -> tuple[list[Expr], bool]:
        """Return operands that are combined element by element, all planar if one is and the others can be."""
        fit = all(self.is_const(i) or self.rank(i) == 4 for i in indices)
        is_planar = fit and any(self.is_planar(i) for i in indices)
        if not is_planar:
            return [self.expr(i) for i in indices], False
        return [self._broadcast_planar(i) if self.is_const(i) else self.planar(i) for i in indices], True

    def _broadcast_planar(self, index: int) -> Expr:
        """Return a constant that broadcasts against [N, H, W, C] in the form that does so against [N, C, H, W]."""
        value = self.const(index, "")
        if value.size == 1:
            return self.build.derived(value, "scalar", lambda array: array.reshape(()))
        full = (1,) * (4 - value.ndim) + value.shape
        return self.build.derived(value, "planar", lambda array: array.reshape(full).transpose(TO_NCHW))

    # Results

    def activated(self, expr: Expr, is_planar: bool = False) -> Flow:
        """Return ``expr`` after the fused activation."""
        return Flow(self.emit(activate(self.activation, expr)), is_planar)


def activate(name: str, x: Expr) -> Expr:
    """Return activation ``name`` of a real ``x``."""
    match name:
        case "NONE":
            return x
        case "RELU":
            return relax.op.nn.relu(x)
        case "RELU6":
            return relax.op.clip(x, 0.0, 6.0)
        case "RELU_N1_TO_1":
            return relax.op.clip(x, -1.0, 1.0)
        case "TANH":
            return relax.op.tanh(x)
    raise Refused(f"fused activation {name} is not supported", "Supported: RELU, RELU6, RELU_N1_TO_1, TANH.")
