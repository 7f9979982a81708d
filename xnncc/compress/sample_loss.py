"""A loss for step allocation that needs no labels: labels drawn from the network's own answer.

The Fisher information of the network's answer about a weight is E[(dL/dw)^2] with labels sampled from the network
itself (Martens, "New insights and perspectives on the natural gradient method", 2020, section 5: the true Fisher, not
the empirical one). What a head means follows from the operator that computes it: after a softmax one class at each
position, after a sigmoid one bit for each element, otherwise a value with Gaussian noise of the head's own size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from tvm.relax import Var

from .numpy_network import NumpyNetwork

Array = np.ndarray
_RENAMING = {"reshape", "permute_dims", "squeeze", "expand_dims"}


@dataclass(frozen=True)
class Head:
    """Where dL/d is set: ``var``; ``kind`` "softmax", "sigmoid" or "gaussian"; ``axis`` of the classes."""

    var: Var
    kind: str
    axis: int = -1


def find_heads(network: NumpyNetwork, kinds: Mapping[str, str]) -> list[Head]:
    """Return the heads, each at the logits where there are any. ``kinds``: name of a head -> kind, where given.

    A head that is no softmax but has "softmax" in ``kinds`` is taken for logits, its last axis for the classes.
    """
    found = []
    for var in network.heads:
        step = network.producers[var]
        while _operator(step.call) in _RENAMING and step.operands[0] in network.producers:
            step = network.producers[step.operands[0]]
        operator = _operator(step.call)
        if var.name in kinds:
            found.append(Head(var, kinds[var.name]))
        elif operator == "nn.softmax":
            found.append(Head(step.operands[0], "softmax", int(step.call.attrs.axis)))
        elif operator == "sigmoid":
            found.append(Head(step.operands[0], "sigmoid"))
        else:
            found.append(Head(var, "gaussian"))
    return list(dict.fromkeys(found))


def _operator(call: object) -> str:
    return getattr(getattr(call, "op", None), "name", "").removeprefix("relax.")


def decisions(head: Head, value: Array) -> int:
    """Return how many labels one sample has at this head."""
    return value.size // value.shape[head.axis] if head.kind == "softmax" else value.size


def sampled_gradient(head: Head, value: Array, rng: np.random.Generator) -> Array:
    """Return dL/dvalue of the negative log-likelihood of one label drawn from the answer ``value``."""
    if head.kind == "softmax":
        e = np.exp(value - value.max(axis=head.axis, keepdims=True))
        p = e / e.sum(axis=head.axis, keepdims=True)
        # Gumbel-max: the largest of log p + Gumbel noise is a draw from p
        noise = -np.log(-np.log(rng.uniform(1e-12, 1, value.shape)))
        label = (np.log(p + 1e-30) + noise).argmax(axis=head.axis, keepdims=True)
        onehot = np.zeros_like(p)
        np.put_along_axis(onehot, label, 1, axis=head.axis)
        return p - onehot
    if head.kind == "sigmoid":
        with np.errstate(over="ignore"):  # exp(-value) = inf is p = 0, as it should be
            p = 1 / (1 + np.exp(-value))
        return p - (rng.uniform(size=value.shape) < p).astype(value.dtype)
    spread = float(np.sqrt(np.mean(np.square(value)))) or 1.0
    return rng.standard_normal(value.shape).astype(value.dtype) / value.dtype.type(spread)
