"""Kept weights corrected for what was cut: the least-squares fit of each reader's output by the inputs it keeps.

    W' = W_k + W_c H_ck (H_kk + damping)^-1

for the columns k that stay and c that go, with the inputs' second moment H (He, Zhang, Sun 2017, "Channel Pruning for
Accelerating Very Deep Neural Networks", equation 2). A constant column is among those that stay where the layer has a
bias: it takes up the mean of what is gone.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import tvm
from tvm.ir import GenericConst

from .channel_groups import ChannelGroups
from .channel_importance import DAMP, Inputs, reader_columns, reader_rows
from .constants import bindings_of, constant_arrays, constant_names, rebuilt
from .layers import Layer

Array = np.ndarray


def corrected(mod: tvm.IRModule, groups: ChannelGroups, gone: Collection[int], inputs: Inputs) -> tvm.IRModule:
    """Return ``mod``, nothing cut yet, with the weights that stay set to what suits the cut of ``gone`` best."""
    names, arrays, biases = constant_names(mod), constant_arrays(mod), _biases(mod)
    new: dict[str, Array] = {}
    for name, layer, classes in reader_columns(mod, groups):
        is_cut = np.isin(classes, sorted(gone))
        if name not in inputs.second or layer.shared or not is_cut.any():
            continue
        w, bias = reader_rows(layer), biases.get(name)
        kept, cut = np.flatnonzero(~is_cut), np.flatnonzero(is_cut)
        ends = np.append(kept, len(classes)) if bias else kept  # with the constant column
        fit = _fit(inputs.second[name], ends, cut)
        change = w[:, cut] @ fit
        w[:, kept] += change[:, : len(kept)]
        new[names[layer.call.args[layer.operand]]] = _shaped(layer, w)
        if bias:
            shift = change[:, -1].astype(np.float32)
            new[bias] = arrays[bias] + shift.reshape(arrays[bias].shape)
    return rebuilt(mod, new)


def _fit(second: Array, kept: Array, cut: Array) -> Array:
    """Return [cut, kept]: how much of each column that stays stands for one that goes."""
    inner = second[np.ix_(kept, kept)].copy()
    damp = DAMP * float(np.trace(inner)) / len(kept) or 1.0
    inner[np.arange(len(kept)), np.arange(len(kept))] += damp
    return np.linalg.solve(inner, second[np.ix_(kept, cut)]).T


def _shaped(layer: Layer, rows: Array) -> Array:
    w = rows.T if layer.kind == "matmul" else rows.reshape(layer.weights.shape)
    return np.ascontiguousarray(w, np.float32)


def _biases(mod: tvm.IRModule) -> dict[str, str]:
    """Return the tensor of a layer -> name of the constant that is added to it, one element for each output."""
    names, found = constant_names(mod), {}
    bindings = bindings_of(mod)
    readers: dict[str, int] = {}
    for binding in bindings:
        for operand in getattr(binding.value, "args", []):
            if hasattr(operand, "name"):
                readers[operand.name] = readers.get(operand.name, 0) + 1
    uses: dict[GenericConst, int] = {}
    for binding in bindings:
        for operand in getattr(binding.value, "args", []):
            if isinstance(operand, GenericConst):
                uses[operand] = uses.get(operand, 0) + 1
    for binding in bindings:
        if getattr(getattr(binding.value, "op", None), "name", "") != "relax.add":
            continue
        data, constant = binding.value.args
        if isinstance(data, GenericConst):
            data, constant = constant, data
        if not isinstance(constant, GenericConst) or readers.get(data.name) != 1 or uses[constant] != 1:
            continue
        if sum(size > 1 for size in constant.value.numpy().shape) == 1:
            found[data.name] = names[constant]
    return found
