"""Rounding with a gradient. Importing this file imports torch."""

from __future__ import annotations

from typing import Any

import torch


class Rounded(torch.autograd.Function):
    """step * round(w / step), integers clipped to +-largest.

    The gradient passes to w where it was not clipped; to the step it is that of Esser and others 2020 (equations 3 and
    5): (integer - w / step) inside, the clipped integer outside, divided by the root of the number of its weights.
    """

    @staticmethod
    def forward(ctx: Any, w: torch.Tensor, step: torch.Tensor, largest: int) -> torch.Tensor:
        """w: any shape; step: a scalar tensor, or one that fits ``w`` with a step for each row."""
        z = w / step
        integers = z.round().clamp(-largest, largest)
        ctx.save_for_backward(z, integers)
        ctx.largest, ctx.rows, ctx.steps = largest, tuple(step.shape), step.numel()
        return integers * step

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
        """Return the gradients of w and step."""
        (g,) = gradients
        z, integers = ctx.saved_tensors
        inside = (z.abs() <= ctx.largest + 0.5).to(g.dtype)
        by_step = torch.where(inside > 0, integers - z, integers)
        along = [axis for axis in range(z.ndim) if ctx.rows == () or ctx.rows[axis] == 1]
        return g * inside, (g * by_step).sum(along).reshape(ctx.rows) / (z.numel() / ctx.steps) ** 0.5, None
