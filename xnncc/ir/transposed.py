"""Names of tensors that hold a tensor of the model with its axes in another order: ``conv1@0312``."""

from __future__ import annotations

from collections.abc import Sequence


def transposed_name(name: str, axes: Sequence[int]) -> str:
    """Return the name of tensor ``name`` transposed by ``axes``; below ten axes only."""
    return f"{name}@{''.join(map(str, axes))}"


def untransposed(name: str) -> tuple[str, tuple[int, ...] | None]:
    """Return the model's tensor and the axes it is transposed by; None when ``name`` is a tensor as it is."""
    tensor, at, digits = name.rpartition("@")
    axes = tuple(int(digit) for digit in digits) if at and digits.isdecimal() else ()
    return (tensor, axes) if axes and sorted(axes) == list(range(len(axes))) else (name, None)
