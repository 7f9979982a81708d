"""equalise_layers: channels between two layers are scaled so that both layers' weights have the same range in them.

    y = f(W1 x + b1),  z = W2 y      becomes      y' = f(S^-1 (W1 x + b1)),  z = (W2 S) y'

which is the same number where f(s y) = s f(y) for s > 0: nothing, or a ReLU. Nagel, van Baalen, Blankevoort and
Welling 2019, "Data-Free Quantization Through Weight Equalization and Bias Correction", section 4.1: with r1 and r2
the ranges of a channel's row in W1 and column in W2, s = sqrt(r1 / r2) makes both sqrt(r1 r2) (their equation 11).
Depthwise layers are rows and columns at once. One step for a whole weight then fits every channel; what is quantised
after has less error.

The pass keeps the network's numbers (to float rounding); ``rounds``: chains of layers settle in a few.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import tvm
from tvm.ir import Call
from tvm.relax import Var

from .constants import bindings_of, constant_names, operands_of, rebuilt
from .layers import Layer, weight_layers
from .result import Data, MethodReport, Progress, Squeezed, StepConfig

Array = np.ndarray

DEFAULTS: dict[str, bool | int | float | str | tuple] = {"rounds": 8}
NEEDS = "nothing"

_SCALES = (1 / 64, 64.0)  # beyond, a channel is dead or another layer's business


@dataclass(frozen=True)
class Pair:
    """Two layers with nothing but a bias and a ReLU between: names of their constants; ``bias`` may be missing."""

    first: Layer
    second: Layer
    first_name: str
    second_name: str
    bias: str | None


def equalise_layers(state: Squeezed, config: StepConfig, data: Data, seed: int, progress: Progress) -> Squeezed:
    """Return ``state`` with the same numbers and evener channels."""
    params = {**DEFAULTS, **config.params}
    pairs = [p for p in find_pairs(state.mod) if not config.why_not(p.first.name) and not config.why_not(p.second.name)]
    if not pairs:
        return Squeezed(state.mod, state.coded, MethodReport("equalise_layers", facts={"pairs": 0}))
    arrays = {name: constant.value.numpy() for constant, name in constant_names(state.mod).items()}
    changed: dict[str, Array] = {}
    for done in range(int(params["rounds"])):
        progress("equalise", done, int(params["rounds"]))
        for pair in pairs:
            _equalise(pair, arrays, changed)
    mod = rebuilt(state.mod, changed)
    return Squeezed(mod, state.coded, MethodReport("equalise_layers", facts={"pairs": len(pairs)}))


def find_pairs(mod: tvm.IRModule) -> list[Pair]:
    """Return the pairs whose tensors between have one reader each, in order of computation."""
    bindings, names = bindings_of(mod), constant_names(mod)
    readers: dict[Var, list[tuple[Var, Call]]] = {}
    for binding in bindings:
        for _, operand in operands_of(binding.value):
            if isinstance(operand, Var):
                readers.setdefault(operand, []).append((binding.var, binding.value))
    outputs = set(mod["main"].body.body.fields)
    layers = {layer.call: layer for layer in weight_layers(mod) if layer.kind == "conv2d" and not layer.shared}
    found = []
    for binding in bindings:
        first = layers.get(binding.value) if isinstance(binding.value, Call) else None
        if first is None:
            continue
        var, bias = binding.var, None
        while var not in outputs and len(readers.get(var, [])) == 1:
            var, call = readers[var][0]
            operator = getattr(getattr(call, "op", None), "name", "")
            if (second := layers.get(call)) is not None:
                if _fits(first, second):
                    ends = (names[first.call.args[1]], names[second.call.args[1]])
                    found.append(Pair(first, second, *ends, bias))
                break
            if operator == "relax.add" and bias is None and (bias := _bias(call, names, first)) is not None:
                continue
            if operator != "relax.nn.relu":
                break
    return found


def _bias(call: Call, names: dict, first: Layer) -> str | None:
    constants = [names[arg] for arg in call.args if arg in names]
    sizes = [arg.value.numpy().size for arg in call.args if arg in names]
    return constants[0] if sizes == [first.weights.shape[0]] else None


def _fits(first: Layer, second: Layer) -> bool:
    """Both are plain or depthwise, so that a channel is one row here and one column there."""
    plain = all(layer.groups == 1 or layer.is_depthwise for layer in (first, second))
    inputs = second.weights.shape[0] if second.is_depthwise else second.weights.shape[1]
    finite = all(np.isfinite(layer.weights).all() for layer in (first, second))
    return plain and inputs == first.weights.shape[0] and finite


def _equalise(pair: Pair, arrays: dict[str, Array], changed: dict[str, Array]) -> None:
    """Scale the channels of one pair."""
    a, b = arrays[pair.first_name], arrays[pair.second_name]
    rows = np.abs(a).reshape(a.shape[0], -1).max(axis=1)
    across = np.abs(b).reshape(b.shape[0], -1) if pair.second.is_depthwise else np.abs(b).swapaxes(0, 1)
    columns = across.reshape(len(rows), -1).max(axis=1)
    alive = (rows > 0) & (columns > 0)
    scale = np.sqrt(np.divide(rows, columns, out=np.ones_like(rows), where=alive))
    scale = np.clip(np.where(alive, scale, 1), *_SCALES).astype(np.float32)
    new = {pair.first_name: a / scale[:, None, None, None]}
    shape = (-1, 1, 1, 1) if pair.second.is_depthwise else (1, -1, 1, 1)
    new[pair.second_name] = b * scale.reshape(shape)
    if pair.bias is not None:
        old = arrays[pair.bias]
        new[pair.bias] = (old.reshape(-1) / scale).reshape(old.shape)
    arrays.update(new)
    changed.update(new)
