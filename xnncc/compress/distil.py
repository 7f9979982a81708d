"""Distillation: the network as it came in teaches the one under compression. No labels are needed.

    loss = (1 - share) * cross entropy with the labels + share * T^2 * KL(teacher || student)      at temperature T

Hinton, Vinyals, Dean 2015, "Distilling the Knowledge in a Neural Network", section 2. Where we differ: a head that ends
in a sigmoid uses the binary KL, one with plain values the squared error divided by the teacher's variance; heads with
many places in a sample (detectors, lines of text) as in ``dense_heads.py``; without labels ``share`` is 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import CompressError
from .dense_heads import are_boxes, attention, box_loss, seen
from .torch_network import Head, TorchNetwork

if TYPE_CHECKING:
    import torch
    import tvm

    from .result import Data, Samples

_CACHE_ELEMENTS = 1 << 26  # teacher outputs kept in memory: 256 MiB
_AT_ONCE = 64  # samples that the teacher answers together
_CLASSES_FROM = 10  # a plain [1, K] output of that many values is taken for logits


class Lesson:
    """Training samples in batches, each with the teacher's outputs, in an order that follows from the seed.

    ``shift_px``: images are moved by up to that many pixels up, down, left or right, one shift for a batch, edges
    repeated. The teacher sees the same shift; its outputs are kept for all shifts when they fit into memory, because
    for a network that was cut to a tenth the teacher would cost more than the student.
    """

    def __init__(self, data: Data, batch: int, seed: int, shift_px: int = 0) -> None:
        self.samples = _train_samples(data)
        assert data.original is not None
        self.teacher = TorchNetwork(data.original)
        self.heads = self.teacher.heads
        self.batch = min(batch, len(self.samples))
        self.steps_per_epoch = len(self.samples) // self.batch
        moves = range(1, shift_px + 1)
        self.shifts = [(0, 0), *(at for d in moves for at in ((-d, 0), (d, 0), (0, -d), (0, d)))]
        self.inputs = self.teacher.tensors(self.samples)
        self.labels = class_labels(self.samples, self.heads)
        self._seed, self._kept = seed, _kept_outputs(data, shift_px)
        self._orders: dict[int, torch.Tensor] = {}
        self._keeps = self._fits()

    def _fits(self) -> bool:
        import torch

        first = {name: tensor[:1] for name, tensor in self.inputs.items()}
        with torch.no_grad():
            elements = sum(out.numel() for out in self.teacher.run(first))
        return elements * len(self.samples) * len(self.shifts) <= _CACHE_ELEMENTS

    def draw(self, step: int) -> tuple[dict[str, torch.Tensor], torch.Tensor | None, list[torch.Tensor]]:
        """Return inputs, labels (or None) and the teacher's outputs for one step."""
        import torch

        epoch, place = divmod(step, self.steps_per_epoch)
        if epoch not in self._orders:
            generator = torch.Generator().manual_seed(self._seed * 1_000_003 + epoch)
            self._orders = {epoch: torch.randperm(len(self.samples), generator=generator)}
        rows = self._orders[epoch][place * self.batch : (place + 1) * self.batch]
        which = int(np.random.default_rng((self._seed, step)).integers(len(self.shifts)))
        inputs = {name: _shifted(tensor[rows], *self.shifts[which]) for name, tensor in self.inputs.items()}
        labels = None if self.labels is None else self.labels[rows]
        if not self._keeps:
            with torch.no_grad():
                return inputs, labels, self.teacher.run(inputs)
        if which not in self._kept:
            self._kept[which] = self._taught(self.shifts[which])
        return inputs, labels, [out[rows] for out in self._kept[which]]

    def _taught(self, shift: tuple[int, int]) -> list[torch.Tensor]:
        """Return the teacher's outputs for every sample under one shift."""
        import torch

        parts: list[list[torch.Tensor]] = []
        with torch.no_grad():
            for start in range(0, len(self.samples), _AT_ONCE):
                rows = {name: tensor[start : start + _AT_ONCE] for name, tensor in self.inputs.items()}
                parts.append(self.teacher.run({name: _shifted(t, *shift) for name, t in rows.items()}))
        return [torch.cat(outs) for outs in zip(*parts, strict=True)]


_KEPT: list[Any] = []  # one slot: (original, train samples, shift_px, outputs by shift); methods of one run share it


def _kept_outputs(data: Data, shift_px: int) -> dict[int, Any]:
    """Return the teacher outputs that an earlier method of the same run left, or an empty table to fill."""
    if not (_KEPT and _KEPT[0] is data.original and _KEPT[1] is data.train and _KEPT[2] == shift_px):
        _KEPT[:] = [data.original, data.train, shift_px, {}]
    return _KEPT[3]


def _train_samples(data: Data) -> Samples:
    if data.train is None or data.original is None or not len(data.train):
        raise CompressError("this method trains", "there are no training samples", "Give them with --train.")
    return data.train


def class_labels(samples: Samples, heads: Sequence[Head]) -> Any:
    """Return labels [M] int64 when they are one class for each sample, else None: then only the teacher is followed."""
    import torch

    labels = samples.labels
    if labels is None or labels.dtype.kind not in "iu" or labels.ndim != 1 or len(heads) != 1:
        return None
    return torch.from_numpy(labels.astype(np.int64))


def _shifted(x: Any, down: int, right: int) -> Any:
    """Move images [M, ..., H, W] by whole pixels; other tensors come back as they are."""
    import torch

    if (down == 0 and right == 0) or x.ndim < 4 or not x.is_floating_point():
        return x
    rows = (torch.arange(x.shape[-2]) + down).clamp(0, x.shape[-2] - 1)
    columns = (torch.arange(x.shape[-1]) + right).clamp(0, x.shape[-1] - 1)
    return x.index_select(-2, rows).index_select(-1, columns)


def is_class_head(head: Head, logits: Any) -> bool:
    """A softmax, or plain values of shape [M, 1, K] with K of at least 10: logits of K classes."""
    return head.kind == "softmax" or (head.kind == "values" and logits.ndim == 3 and logits.shape[-1] >= _CLASSES_FROM)


def distillation_loss(
    heads: Sequence[Head],
    outputs: Sequence[Any],
    taught: Sequence[Any],
    labels: Any = None,
    share: float = 0.5,
    temperature: float = 2.0,
) -> Any:
    """Return the loss of a batch, summed over heads. outputs, taught: [M, *shape of the head]."""
    import torch
    import torch.nn.functional as F

    total, places = torch.zeros(()), _places(heads, taught)
    for head, out, goal in zip(heads, outputs, taught, strict=True):
        if is_class_head(head, out):
            rows, aims = out.reshape(-1, out.shape[-1]), goal.reshape(-1, goal.shape[-1])
            soft, hard = F.log_softmax(rows / temperature, 1), F.log_softmax(aims / temperature, 1)
            by_row = F.kl_div(soft, hard, log_target=True, reduction="none").sum(1)
            part = temperature**2 * (by_row.mean() if len(rows) == len(out) else (attention(aims) * by_row).sum())
            if labels is not None and len(labels) == len(rows):
                part = share * part + (1 - share) * F.cross_entropy(rows, labels)
        elif head.kind == "sigmoid":
            aim = torch.sigmoid(goal)
            part = F.binary_cross_entropy_with_logits(out, aim) - F.binary_cross_entropy_with_logits(goal, aim)
        elif (v := next((v for v in places if are_boxes(goal, len(v))), None)) is not None:
            part = box_loss(out, goal, v)
        else:
            part = F.mse_loss(out, goal) / goal.var().clamp(min=1e-12)
        total = total + part
    return total


def _places(heads: Sequence[Head], taught: Sequence[Any]) -> list[Any]:
    """Return what the teacher sees at every place, [places], for each head of classes with several in a sample."""
    several = [t for h, t in zip(heads, taught, strict=True) if is_class_head(h, t) and t[0].numel() > t.shape[-1]]
    return [seen(goal.reshape(-1, goal.shape[-1])) for goal in several]


def uniform_loss(heads: Sequence[Head], outputs: Sequence[Any]) -> float:
    """Return about the loss of a network that has learnt nothing: what a rate term must never push it to."""
    pairs = zip(heads, outputs, strict=True)
    return sum(math.log(out.shape[-1]) if is_class_head(head, out) else 0.5 for head, out in pairs)


def copied(mod: tvm.IRModule) -> tuple[TorchNetwork, Mapping[str, Any]]:
    """Return a network and its weights as leaves that want gradients."""
    network = TorchNetwork(mod)
    return network, {name: tensor.requires_grad_() for name, tensor in network.weights.items()}
