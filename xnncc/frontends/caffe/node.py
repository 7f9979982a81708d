"""Node: one Caffe layer as its converter sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from tvm.relax import Expr

from ..emitter import Emitter
from ..network import NetworkBuilder, dtype_of, shape_of
from .net import Layer
from .params import Params
from .refused import Broken

Value: TypeAlias = "np.ndarray | Expr"  # a constant (of a PriorBox), or a tensor that is computed at run time

_FILLERS = ("weight_filler", "bias_filler", "filler", "scale_filler", "engine", "force_nd_im2col")
_MISSING = "Give the .caffemodel that belongs to this prototxt with --weights."


class Node(Emitter):
    """One layer: inputs, weights, parameters, and ways to emit Relax. Everything is float32."""

    def __init__(
        self, layer: Layer, values: Sequence[Value], build: NetworkBuilder, readers: Callable[[str], int]
    ) -> None:
        super().__init__(build)
        self.layer, self.values = layer, list(values)
        self._readers = readers
        self._params: dict[str, Params] = {}

    # Parameters

    def params(self, field: str) -> Params:
        """Return a message of the layer; the same object each time, which remembers what was read."""
        if field not in self._params:
            params = self._params[field] = self.layer.params(field)
            params.ignore(*_FILLERS)
        return self._params[field]

    def unread(self) -> list[str]:
        """Return the fields that were given and looked at by nobody."""
        given = {field for field in self.layer.body.fields if field.endswith("_param")} - {
            "transform_param",
            "loss_param",
        }
        inner = [
            f"{name}.{field}" for name in sorted(given & set(self._params)) for field in self._params[name].unread()
        ]
        return self.layer.unknown_fields() + sorted(given - set(self._params)) + inner

    # Weights

    def blob(self, index: int, shape: Sequence[int], what: str) -> np.ndarray:
        """Return blob ``index`` in ``shape``; leading ones do not count, old files pad every shape to four dims."""
        if index >= len(self.layer.blobs):
            why = f"blob {index} ({what} {list(shape)}) is missing: the weights have {len(self.layer.blobs)} for it"
            raise Broken(why, _MISSING)
        blob = self.layer.blobs[index]
        if _significant(blob.shape) != _significant(shape):
            raise Broken(f"blob {index} ({what}) is {list(blob.shape)}, the layer needs {list(shape)}", _MISSING)
        return blob.reshape(tuple(shape))

    # Inputs

    def __len__(self) -> int:
        return len(self.values)

    def need(self, low: int, high: int | None = None) -> None:
        """Check the number of inputs."""
        high = low if high is None else high
        if not low <= len(self.values) <= high:
            expected = f"{low}" if low == high else f"{low} to {high}"
            raise Broken(f"it reads {len(self.values)} blobs, expected {expected}")

    def expr(self, index: int = 0) -> Expr:
        """Return input ``index`` as a Relax expression."""
        value = self.values[index]
        return self.build.constant(value) if isinstance(value, np.ndarray) else value

    def shape(self, index: int = 0) -> tuple[int, ...]:
        """Return the static shape of input ``index``."""
        value = self.values[index]
        return tuple(value.shape) if isinstance(value, np.ndarray) else shape_of(value)

    def dtype(self, index: int = 0) -> str:
        """Return the numpy dtype name of input ``index``."""
        value = self.values[index]
        return str(value.dtype) if isinstance(value, np.ndarray) else dtype_of(value)

    def axis(self, value: int, rank: int | None = None) -> int:
        """Return an axis counted from the front."""
        rank = self.rank() if rank is None else rank
        if not -rank <= value < rank:
            raise Broken(f"axis {value} is out of range for {rank} dimensions")
        return value % rank

    def only_used_here(self, index: int = 0) -> bool:
        """Return whether nothing but this layer reads input ``index``."""
        return self._readers(self.layer.inputs[index]) == 1

    # Outputs

    def wants(self, index: int) -> bool:
        """Return whether output ``index`` is named, so that somebody reads it or it leaves the network."""
        return index < len(self.layer.outputs) and self._readers(self.layer.outputs[index]) > 0


def _significant(shape: Sequence[int]) -> tuple[int, ...]:
    dims = list(shape)
    while dims and dims[0] == 1:
        dims.pop(0)
    return tuple(dims)
