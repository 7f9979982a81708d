"""replace_layer: a compressed network with one weight as it was, to measure what that weight costs."""

from __future__ import annotations

import tvm

from .layers import weight_layers, with_constants


def restored(mod: tvm.IRModule, original: tvm.IRModule, name: str) -> tvm.IRModule:
    """Return ``mod`` with the weight of layer ``name`` as in ``original``; unchanged where its shape was changed."""
    before = {layer.name: layer for layer in weight_layers(original)}
    for layer in weight_layers(mod):
        if layer.name == name and name in before and before[name].weights.shape == layer.weights.shape:
            return with_constants(mod, {layer.digest: before[name].weights})
    return mod
