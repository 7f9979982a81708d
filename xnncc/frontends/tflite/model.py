"""A TFLite file as frozen dataclasses: all that the converters and the interpreter see of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Quantisation:
    """real = scale * (stored - zero_point); one scale for all, or one for each index of ``axis``."""

    scale: np.ndarray  # [1] or [channels] float32
    zero_point: np.ndarray  # the same shape, int64
    axis: int = 0

    @property
    def is_per_tensor(self) -> bool:
        """One scale for all elements."""
        return self.scale.size == 1

    def equals(self, other: Quantisation | None) -> bool:
        """Return whether the same stored number means the same real one."""
        return (
            other is not None
            and np.array_equal(self.scale, other.scale)
            and np.array_equal(self.zero_point, other.zero_point)
        )


@dataclass(frozen=True, eq=False)
class Tensor:
    """One tensor of a graph; ``data`` holds a constant (dense, of ``shape``), None what is computed."""

    name: str
    shape: tuple[int, ...]
    dtype: str  # as numpy calls it, or one of schema.TYPES that numpy does not have
    data: np.ndarray | None = None
    quantisation: Quantisation | None = None
    is_variable: bool = False
    signature: tuple[int, ...] = ()  # the shape with -1 where it is free
    data_offset: int = -1  # byte in the file where a dense constant stands

    @property
    def is_quantised(self) -> bool:
        """Stored as integers that stand for real numbers."""
        return self.quantisation is not None and self.dtype in ("int8", "uint8", "int16", "int32")


@dataclass(frozen=True, eq=False)
class Operator:
    """One operator; tensors by index, -1 where an optional input is left out."""

    index: int
    kind: str  # a name of schema.OPERATORS, or the name of a custom operator
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: dict[str, Any] = field(default_factory=dict)
    custom: bytes = b""
    is_custom: bool = False


@dataclass(frozen=True, eq=False)
class Graph:
    """A subgraph; operators in order of execution."""

    name: str
    tensors: tuple[Tensor, ...]
    operators: tuple[Operator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Model:
    """A file: its first graph is what runs; others are called by operators."""

    graphs: tuple[Graph, ...]
    data: bytes

    @property
    def main(self) -> Graph:
        """The graph that runs."""
        return self.graphs[0]
