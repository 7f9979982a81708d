"""Rounding with a gradient. Importing this file imports torch."""

from __future__ import annotations

from typing import Any

import torch


class Rounded(torch.autograd.Function):
    """step * round(w / step), integers clipped to +-largest.

    The gradient passes to w where it was not clipped; to the step it is that of Esser and others 2020 (equations 3 and
    5): (integer - w / step) inside, the clipped integer outside, divided by the root of the number of weights.
    """

    @staticmethod
    def forward(ctx: Any, w: torch.Tensor, step: torch.Tensor, largest: int) -> torch.Tensor:
        """w: any shape; step: a scalar tensor."""
        z = w / step
        integers = z.round().clamp(-largest, largest)
        ctx.save_for_backward(z, integers)
        ctx.largest = largest
        return integers * step

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
        """Return the gradients of w and step."""
        (g,) = gradients
        z, integers = ctx.saved_tensors
        inside = (z.abs() <= ctx.largest + 0.5).to(g.dtype)
        by_step = torch.where(inside > 0, integers - z, integers)
        return g * inside, (g * by_step).sum() / z.numel() ** 0.5, None
