"""The training loop that every method with gradients shares: steps, learning rate, checkpoints, resumption.

A run that was stopped with Ctrl-C and started again ends with the same bits as one that was not stopped: the order of
samples follows from the seed and the step, checkpoints are taken between steps, and they hold the optimiser's state.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from .result import Progress

_SECONDS_BETWEEN_CHECKPOINTS = 30.0


@dataclass(frozen=True)
class Plan:
    """``lr`` falls as a cosine to ``floor`` of itself. ``every``: steps between which the method's own tables change,
    and after which a checkpoint may be taken. ``optimiser``: "adam" (betas 0.9, 0.99) or "sgd" (Nesterov, 0.9)."""

    name: str
    steps: int
    lr: float
    floor: float = 0.02
    every: int = 50
    optimiser: str = "adam"
    weight_decay: float = 0.0


@dataclass(frozen=True)
class Group:
    """Tensors that are trained at ``rate`` times the plan's learning rate."""

    tensors: Sequence[torch.Tensor]
    rate: float = 1.0


def fit(
    plan: Plan,
    groups: Sequence[Group],
    loss_of: Callable[[int], torch.Tensor],
    journal: str | None,
    progress: Progress,
    before: Callable[[int], None] | None = None,
    after: Callable[[int], None] | None = None,
    change: Callable[[], None] | None = None,
    kept: torch.Tensor | None = None,
) -> None:
    """Minimise ``loss_of(step)`` over the tensors of ``groups``, in place.

    ``before(step)`` runs every ``plan.every`` steps (tables), ``change()`` between gradients and update (shared
    values), ``after(step)`` after every update (masks). ``kept`` are numbers of the method's own that change in
    between: they go into checkpoints and come back in place.
    """
    import torch

    optimiser = _optimiser(plan, groups)
    checkpoint = _Checkpoint(plan, groups, optimiser, journal, kept)
    start = checkpoint.load()
    for step in range(start, plan.steps):
        if step % plan.every == 0:
            checkpoint.save(step)
            if before is not None:
                before(step)
            progress(plan.name, step, plan.steps)
        share = 0.5 * (1 + math.cos(math.pi * step / plan.steps))
        for row, group in zip(optimiser.param_groups, groups, strict=True):
            row["lr"] = plan.lr * group.rate * (plan.floor + (1 - plan.floor) * share)
        optimiser.zero_grad()
        loss = loss_of(step)
        loss.backward()
        with torch.no_grad():
            if change is not None:
                change()
            optimiser.step()
            if after is not None:
                after(step)
    checkpoint.save(plan.steps, is_last=True)
    progress(plan.name, plan.steps, plan.steps)


def _optimiser(plan: Plan, groups: Sequence[Group]) -> torch.optim.Optimizer:
    import torch

    rows: list[dict[str, Any]] = [{"params": list(g.tensors), "lr": plan.lr * g.rate} for g in groups]
    if plan.optimiser == "sgd":
        return torch.optim.SGD(rows, lr=plan.lr, momentum=0.9, nesterov=True, weight_decay=plan.weight_decay)
    return torch.optim.Adam(rows, lr=plan.lr, betas=(0.9, 0.99), weight_decay=plan.weight_decay)


class _Checkpoint:
    """State of one run in ``<journal>/<name>.pt``; one of another run (other start, other plan) is ignored."""

    def __init__(
        self,
        plan: Plan,
        groups: Sequence[Group],
        optimiser: torch.optim.Optimizer,
        journal: str | None,
        kept: torch.Tensor | None,
    ) -> None:
        self._tensors = [tensor for group in groups for tensor in group.tensors]
        self._tensors += [] if kept is None else [kept]
        self._optimiser = optimiser
        self._path = Path(journal) / f"{plan.name.replace(' ', '-')}.pt" if journal else None
        self._last = time.monotonic()
        if self._path is not None:
            start = sha256(repr((plan, [group.rate for group in groups])).encode())
            for tensor in self._tensors:
                start.update(tensor.detach().numpy().tobytes())
            self._key = start.hexdigest()

    def load(self) -> int:
        """Bring tensors and optimiser to the state of the checkpoint; returns the step to go on with."""
        import torch

        if self._path is None or not self._path.exists():
            return 0
        try:
            state = torch.load(self._path, weights_only=True)
        except (OSError, RuntimeError, ValueError, EOFError):  # cut off by a full disk or a crash: begin again
            return 0
        if state.get("key") != self._key:
            return 0
        with torch.no_grad():
            for tensor, value in zip(self._tensors, state["tensors"], strict=True):
                tensor.copy_(value)
        self._optimiser.load_state_dict(state["optimiser"])
        return int(state["step"])

    def save(self, step: int, is_last: bool = False) -> None:
        """Write the state when some time has gone by, or at the end."""
        import torch

        if self._path is None or not (is_last or time.monotonic() - self._last > _SECONDS_BETWEEN_CHECKPOINTS):
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        part = self._path.with_suffix(".part")
        tensors = [tensor.detach() for tensor in self._tensors]
        torch.save(
            {"key": self._key, "step": step, "tensors": tensors, "optimiser": self._optimiser.state_dict()}, part
        )
        os.replace(part, self._path)
        self._last = time.monotonic()
