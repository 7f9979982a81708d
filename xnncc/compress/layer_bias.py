"""The bias behind a layer: what can take up the mean of a quantisation error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import tvm
from tvm.ir import Call, GenericConst
from tvm.relax import Var

from ..ir.coded import digest
from .constants import bindings_of, constant_arrays, operands_of
from .layers import Layer, with_constants
from .result import Squeezed


def biases_of(mod: tvm.IRModule, layers: list[Layer]) -> dict[str, str]:
    """Return digest of a layer's weight -> digest of its bias, where the bias is the layer's alone.

    A bias is a constant with one element an output channel that an ``add`` puts on the layer's result, the only
    reader of that result. Left out: shared weights, a bias whose bytes occur twice (replacing it by digest would
    change both).
    """
    bindings = bindings_of(mod)
    readers: dict[Var, list[tuple[str, Call]]] = {}
    times: Counter[str] = Counter()
    for binding in bindings:
        for _, operand in operands_of(binding.value):
            if isinstance(operand, Var):
                readers.setdefault(operand, []).append((binding.var.name, binding.value))
            elif isinstance(operand, GenericConst):
                times[digest(operand.value.numpy())] += 1
    results = {binding.value: binding.var for binding in bindings if isinstance(binding.value, Call)}
    found = {}
    for layer in layers:
        calls = readers.get(results.get(layer.call), []) if not layer.shared else []
        if len(calls) == 1 and (key := _bias(calls[0][1], layer)) and times[key] == 1:
            found[layer.digest] = key
    return found


def _bias(call: object, layer: Layer) -> str | None:
    """Return the digest of the constant that ``call`` adds to each output channel of ``layer``, if it does."""
    if not isinstance(call, Call) or getattr(call.op, "name", "") != "relax.add":
        return None
    constants = [arg.value.numpy() for arg in call.args if isinstance(arg, GenericConst)]
    outputs = layer.weights.shape[layer.axis] * (layer.groups if layer.kind == "conv2d_transpose" else 1)
    if len(constants) != 1 or constants[0].size != outputs or constants[0].dtype != np.float32:
        return None
    return digest(constants[0])


def with_shifted_biases(state: Squeezed, shifted: Mapping[str, np.ndarray]) -> Squeezed:
    """Return ``state`` with ``shifted`` (digest of a bias -> [outputs]) added to its biases."""
    new = {}
    for array in constant_arrays(state.mod).values():
        if (shift := shifted.get(key := digest(array))) is not None:
            new[key] = (array + shift.reshape(array.shape)).astype(np.float32)
    coded = {key: tensor for key, tensor in state.coded.items() if key not in new}
    return Squeezed(with_constants(state.mod, new), coded, state.report)
