"""The weights of a network: which constants there are, who reads them, along which axis their outputs lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import tvm
from tvm import relax
from tvm.ir import Call, GenericConst
from tvm.relax.expr_functor import PyExprMutator, mutator

from ..ir.coded import CodedTensor, digest
from ..ir.cost import macs_of
from ..ir.recurrent import NAME as RECURRENT
from ..ir.recurrent import Recurrent
from .result import MethodReport, Squeezed

# operator -> (operand that is the weight, axis of the output channels; None: the last)
_READERS: dict[str, tuple[int, int | None]] = {
    "relax.nn.conv1d": (1, 0),
    "relax.nn.conv2d": (1, 0),
    "relax.nn.conv3d": (1, 0),
    "relax.nn.conv2d_transpose": (1, 1),
    "relax.matmul": (1, None),
    "relax.take": (0, 0),
}
_RECURRENT_WEIGHTS = ("w", "r")
SMALLEST = 64  # elements: below, integers and a step save nothing worth a report's line


@dataclass(frozen=True)
class Layer:
    """A float32 constant that a linear operator reads, at least ``SMALLEST`` elements and rank 2.

    ``name``: the tensor that the first reader computes; of a recurrent layer ``<tensor>/w`` and ``<tensor>/r``.
    ``kind``: "conv2d", "matmul", "take" (a table), "recurrent"... ``axis``: of ``weights``, along it the outputs.
    ``groups``: of the convolution. ``macs``: of all readers. ``shared``: tensors of further readers.
    """

    name: str
    kind: str
    weights: np.ndarray
    digest: str
    axis: int
    call: Call
    operand: int  # index of the weight in ``call.args``
    groups: int = 1
    macs: int = 0
    shared: tuple[str, ...] = ()

    @property
    def is_depthwise(self) -> bool:
        """Each group reads one channel."""
        return self.groups > 1 and self.weights.shape[1] == 1


def weight_layers(mod: tvm.IRModule) -> list[Layer]:
    """Return every weight of ``mod`` in order of computation, a shared one once."""
    found: dict[str, Layer] = {}
    for block in mod["main"].body.blocks:
        for binding in block.bindings:
            if isinstance(binding.value, Call):
                for layer in _layers_of(binding.var.name, binding.value):
                    first = found.get(layer.digest)
                    found[layer.digest] = layer if first is None else _shared(first, layer)
    return list(found.values())


def _shared(first: Layer, again: Layer) -> Layer:
    parts = {**first.__dict__, "shared": (*first.shared, again.name), "macs": first.macs + again.macs}
    return Layer(**parts)


def _layers_of(name: str, call: Call) -> list[Layer]:
    operator = getattr(call.op, "name", "")
    if operator == "relax.call_pure_packed" and getattr(call.args[0], "global_symbol", "") == RECURRENT:
        operands = Recurrent.from_json(call.args[-1].value).operands
        at = [(operands.index(weight) + 1, 1, f"{name}/{weight}") for weight in _RECURRENT_WEIGHTS]
        return [layer for index, axis, own in at if (layer := _layer(own, "recurrent", call, index, axis))]
    if operator not in _READERS:
        return []
    index, axis = _READERS[operator]
    layer = _layer(name, operator.rpartition(".")[2], call, index, axis)
    return [layer] if layer else []


def _layer(name: str, kind: str, call: Call, index: int, axis: int | None) -> Layer | None:
    if not isinstance(call.args[index], GenericConst):
        return None
    weights = call.args[index].value.numpy()
    if weights.dtype != np.float32 or weights.size < SMALLEST or weights.ndim < 2:
        return None
    groups = int(getattr(call.attrs, "groups", 1)) if kind.startswith("conv") else 1
    where = weights.ndim - 1 if axis is None else axis
    return Layer(name, kind, weights, digest(weights), where, call, index, groups, macs_of(call))


def with_constants(mod: tvm.IRModule, new: Mapping[str, np.ndarray]) -> tvm.IRModule:
    """Return ``mod`` with each float32 constant whose digest is in ``new`` replaced by an array of the same shape."""
    if not new:
        return mod

    def replaced(constant: GenericConst) -> GenericConst:
        array = constant.value.numpy()
        other = new.get(digest(array)) if array.dtype == np.float32 else None
        return constant if other is None else relax.const(np.ascontiguousarray(other, np.float32), "float32")

    result = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    result["main"] = _Constants(replaced).visit_expr(mod["main"])
    return result


@mutator
class _Constants(PyExprMutator):
    """Replaces constants and nothing else."""

    def __init__(self, replaced: Callable[[GenericConst], GenericConst]) -> None:
        super().__init__()
        self._replaced = replaced

    def visit_generic_const_(self, op: GenericConst) -> GenericConst:
        """Return what stands for the constant ``op``."""
        return self._replaced(op)


def with_coded(state: Squeezed, new: Mapping[str, CodedTensor], report: MethodReport) -> Squeezed:
    """Return ``state`` with the constants of the digests in ``new`` coded: values replaced, the table brought up."""
    values = {old: tensor.values() for old, tensor in new.items()}
    coded = {key: tensor for key, tensor in state.coded.items() if key not in new}
    coded.update({digest(values[old]): tensor for old, tensor in new.items()})
    return Squeezed(with_constants(state.mod, values), coded, report)
