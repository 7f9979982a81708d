"""First-order importance of neurons: how much the loss would change without each, by its gradient.

    importance = mean over samples of | sum over positions of  a * dL/da |

Molchanov and others 2017, "Pruning Convolutional Neural Networks for Resource Efficient Inference", equation 8. Where
we differ: the sum runs over everything that reads the neuron (all layers behind a residual sum), which is what really
goes when it is cut. It is the gradient of a gate of 1 that multiplies the neuron wherever it is read. Without labels
they are drawn from the network's own answer, since against its own outputs a network has no gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tvm

from .channel_groups import ChannelGroups
from .distil import class_labels, is_class_head
from .result import Samples
from .torch_network import Head, TorchNetwork

_BATCH = 256


def by_taylor(mod: tvm.IRModule, groups: ChannelGroups, samples: Samples, seed: int) -> dict[int, float]:
    """Return the importance of every neuron; of those that no constant weight reads: infinite."""
    import torch

    network = TorchNetwork(mod)
    neurons = sorted({int(n) for reader in groups.readers for n in reader.classes if n})
    places = np.zeros(max(neurons, default=0) + 1, np.int64)
    places[neurons] = np.arange(1, len(neurons) + 1)  # column 0 is always 1: positions that are fixed
    gates_of = {r.name: (r.axis, torch.from_numpy(places[r.classes])) for r in groups.readers if np.any(r.classes)}
    generator = torch.Generator().manual_seed(seed)
    labels = class_labels(samples, network.heads)
    inputs = network.tensors(samples)
    total = torch.zeros(len(neurons) + 1, dtype=torch.float64)

    def watch(name: str, operands: list[Any], row: Any) -> list[Any]:
        if name not in gates_of:
            return operands
        axis, columns = gates_of[name]
        shape = [1] * operands[0].ndim
        shape[axis] = -1
        return [operands[0] * row[columns].reshape(shape), *operands[1:]]

    for start in range(0, len(samples), _BATCH):
        rows = {name: tensor[start : start + _BATCH] for name, tensor in inputs.items()}
        gates = torch.ones(len(next(iter(rows.values()))), len(neurons) + 1, requires_grad=True)
        outputs = network.run(rows, watch=watch, extra=gates)
        aims = None if labels is None else labels[start : start + _BATCH]
        (gradient,) = torch.autograd.grad(_sampled_loss(network.heads, outputs, aims, generator), gates)
        total += gradient.abs().sum(dim=0).double()
    found = dict(zip(neurons, (total[1:] / len(samples)).tolist(), strict=True))
    return {n: found.get(n, float("inf")) for group in groups.groups for n in group.neurons}


def _sampled_loss(heads: Sequence[Head], outputs: Sequence[Any], labels: Any, generator: Any) -> Any:
    """Return the sum over samples of the loss against given or drawn answers."""
    import torch
    import torch.nn.functional as F

    total = torch.zeros(())
    for head, out in zip(heads, outputs, strict=True):
        if is_class_head(head, out):
            rows = out.reshape(-1, out.shape[-1])
            aims = labels
            if aims is None or len(aims) != len(rows):
                aims = torch.multinomial(torch.softmax(rows.detach(), 1), 1, generator=generator)[:, 0]
            total = total + F.cross_entropy(rows, aims, reduction="sum")
        elif head.kind == "sigmoid":
            aim = torch.bernoulli(torch.sigmoid(out.detach()), generator=generator)
            total = total + F.binary_cross_entropy_with_logits(out, aim, reduction="sum")
        else:
            spread = out.detach().std().clamp(min=1e-12)
            total = total + (out * torch.randn(out.shape, generator=generator)).sum() / spread
    return total
