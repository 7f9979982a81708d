"""Chains of elementwise steps that are a hard swish become one step: fewer passes over memory, forward and back.

    Given    t = x + 3; u = clip(t, 0, 6); v = x * u; y = v / 6         or any other spelling of it
    Result   y = hardswish(x)

Such chains take a third of a mobile network's training time otherwise. A chain is told by what it computes: elementwise
steps between one variable and y, nothing but scalars beside them, nothing in between read by others, and on a grid
equal to the function. Names in between are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .torch_network import Step

_ELEMENTWISE = {"add", "subtract", "multiply", "divide", "clip", "maximum", "minimum", "nn.relu"}
_LONGEST = 6  # steps of a chain

ValueOf = Callable[[Any, dict[Any, Any]], Any]  # an operand and tensors by variable -> what the step is called with


def fuse_hard_swish(steps: Sequence[Step], ends: Sequence[Any], value: ValueOf) -> list[Step]:
    """Return ``steps`` with every hard swish as one of them. ``ends``: variables that must stay."""
    import torch.nn.functional as F

    place = {step.result: i for i, step in enumerate(steps)}
    readers: dict[Any, set[int]] = {}
    for i, step in enumerate(steps):
        for var in step.variables():
            readers.setdefault(var, set()).add(i)
    for var in ends:
        readers.setdefault(var, set()).add(-1)  # nobody may take it away
    gone: set[int] = set()
    fused: dict[int, Step] = {}
    for i in reversed(range(len(steps))):
        found = None if i in gone else _chain(steps, i, place, readers, value)
        if found is not None:
            x, inner = found
            gone |= inner
            fused[i] = steps[i].calling(lambda call, one: F.hardswish(one), (x,))
    return [fused.get(i, step) for i, step in enumerate(steps) if i not in gone]


def _chain(
    steps: Sequence[Step], last: int, place: dict[Any, int], readers: dict[Any, set[int]], value: ValueOf
) -> tuple[Any, set[int]] | None:
    """Return the variable that a hard swish ending in step ``last`` reads and the steps before it, or None."""
    chain = {last}
    while len(chain) <= _LONGEST and all(steps[i].operator in _ELEMENTWISE for i in chain):
        outside = {var for i in chain for var in steps[i].variables() if place.get(var, -1) not in chain}
        if len(outside) == 1 and len(chain) > 1 and _is_hard_swish([steps[i] for i in sorted(chain)], outside, value):
            return next(iter(outside)), chain - {last}
        inner = [place[var] for var in outside if var in place and readers[var] <= chain]
        if not inner:
            return None
        chain.add(max(inner))
    return None


def _is_hard_swish(chain: list[Step], read: set[Any], value: ValueOf) -> bool:
    import torch
    import torch.nn.functional as F

    grid = torch.linspace(-8, 8, 257)
    values: dict[Any, Any] = dict.fromkeys(read, grid)
    for step in chain:
        operands = [value(operand, values) for operand in step.operands]
        if any(isinstance(one, torch.Tensor) and one.numel() not in (1, grid.numel()) for one in operands):
            return False
        values[step.result] = step.function(step.call, *operands).reshape(-1)
    got = values[chain[-1].result]
    return got.shape == grid.shape and torch.allclose(got, F.hardswish(grid), rtol=1e-6, atol=1e-6)
