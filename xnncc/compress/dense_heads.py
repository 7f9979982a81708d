"""Losses of heads that answer at many places of one sample: detectors' anchors, time steps of a text line.

Nearly all places show nothing (background, the blank of CTC) and every network gets them right after a few updates, so
a plain mean hardly sees the rest. Half of the attention therefore goes to the places in proportion to what the teacher
sees there, half to all alike:

    w = 1/2 * v / sum(v) + 1/2 / places          v = 1 - teacher's probability of the commonest class

Boxes are judged by their overlap with the teacher's boxes, in proportion to v alone: a box where there is nothing has
no right place. Rezatofighi and others 2019, "Generalized Intersection over Union", algorithm 1: 1 - GIoU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_CORNERS = 4
_LEAST = 1e-6


def seen(aims: torch.Tensor) -> torch.Tensor:
    """Return v [places] from the teacher's logits [places, classes], all samples of a batch together."""
    import torch

    probabilities = torch.softmax(aims, 1)
    return 1 - probabilities[:, int(probabilities.mean(0).argmax())]


def attention(aims: torch.Tensor) -> torch.Tensor:
    """Return w [places], summing to 1, from the teacher's logits [places, classes]."""
    v = seen(aims)
    return 0.5 * v / v.sum().clamp(min=_LEAST) + 0.5 / len(v)


def are_boxes(goal: torch.Tensor, places: int) -> bool:
    """Return whether ``goal`` [M, ..., 4] is one box for each of ``places``: left, top, right, bottom, in order."""
    if goal.shape[-1] != _CORNERS or goal.numel() != _CORNERS * places:
        return False
    corners = goal.reshape(-1, _CORNERS)
    return bool((corners[:, 2:] >= corners[:, :2]).all())


def box_loss(out: torch.Tensor, goal: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return the mean of 1 - GIoU over places, weighted by ``v`` [places]; out, goal: [M, ..., 4]."""
    a, b = out.reshape(-1, _CORNERS), goal.reshape(-1, _CORNERS)
    inner = (a[:, 2:].minimum(b[:, 2:]) - a[:, :2].maximum(b[:, :2])).clamp(min=0).prod(1)
    outer = (a[:, 2:].maximum(b[:, 2:]) - a[:, :2].minimum(b[:, :2])).clamp(min=0).prod(1)
    areas = [(box[:, 2:] - box[:, :2]).clamp(min=0).prod(1) for box in (a, b)]
    union = areas[0] + areas[1] - inner
    overlap = inner / union.clamp(min=1e-12) - (outer - union) / outer.clamp(min=1e-12)
    return (v * (1 - overlap)).sum() / v.sum().clamp(min=_LEAST)
