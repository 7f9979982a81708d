"""Training with some weights held at zero: what pruning with gradients is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import tvm

from .constants import constant_names, rebuilt
from .layers import weight_layers
from .result import Data, Progress, StepConfig

if TYPE_CHECKING:
    import torch

Array = np.ndarray
TRAINING: dict[str, bool | int | float | str | tuple] = {
    "epochs": 2,  # after each stage
    "steps": 0,  # updates, instead of epochs
    "batch": 256,
    "lr": 1e-3,
    "optimiser": "adam",  # or "sgd"
    "weight_decay": 0.0,
    "shift_px": 0,
    "share": 0.5,
    "temperature": 2.0,
}
TRAINING_LIMITS = {"batch": (1, 1 << 20), "optimiser": ("adam", "sgd"), "shift_px": (0, 64), "share": (0.0, 1.0)}


class MaskedTraining:
    """A network in training. ``layers``: name of a constant -> its layer; ``importance``: mean of (w dL/dw)^2."""

    def __init__(self, mod: tvm.IRModule, config: StepConfig, data: Data, seed: int) -> None:
        from .distil import Lesson
        from .torch_network import TorchNetwork

        self.mod, self._params, self._journal = mod, config.params, config.journal
        self.network = TorchNetwork(mod)
        self.lesson = Lesson(data, int(self._params["batch"]), seed, int(self._params["shift_px"]))
        names = constant_names(mod)
        everything = {names[layer.call.args[layer.operand]]: layer for layer in weight_layers(mod)}
        self.layers = {n: layer for n, layer in everything.items() if n in self.network.weights}
        self.importance: dict[str, Array] = {}
        self._sums: dict[str, torch.Tensor] = {}
        self._updates = 0
        for weight in self.network.weights.values():
            weight.requires_grad_()

    def weights(self) -> dict[str, Array]:
        """Return the weights of the layers as they are."""
        return {name: self.network.weights[name].detach().numpy() for name in self.layers}

    def run(
        self,
        name: str,
        progress: Progress,
        masks: Mapping[str, Array],
        epochs: int | None = None,
        lr: float | None = None,
        change: Callable[[], None] | None = None,
        settle: Callable[[], None] | None = None,
    ) -> None:
        """Train with ``masks`` held. ``change`` may alter gradients before an update, ``settle`` weights after it."""
        import torch

        from .fit import Group, Plan, fit

        held = {key: torch.from_numpy(np.ascontiguousarray(mask, np.float32)) for key, mask in masks.items()}
        self._sums, self._updates = {}, 0

        def after(step: int) -> None:
            self._note()
            for key, mask in held.items():
                self.network.weights[key].mul_(mask)
            if settle is not None:
                settle()

        with torch.no_grad():
            for key, mask in held.items():
                self.network.weights[key].mul_(mask)
        p = self._params
        own = int(p["epochs"]) if epochs is None else epochs
        steps = int(p["steps"]) or own * self.lesson.steps_per_epoch
        rate, decay = lr or float(p["lr"]), float(p["weight_decay"])
        plan = Plan(name, steps, rate, optimiser=str(p["optimiser"]), weight_decay=decay)
        groups = [Group(list(self.network.weights.values()))]
        fit(plan, groups, self.loss, self._journal, progress, after=after, change=change)
        self.importance = {key: (total / max(self._updates, 1)).numpy() for key, total in self._sums.items()}

    def _note(self) -> None:
        """Add (w dL/dw)^2 of the batch: the loss of cutting w to first order, squared."""
        for key in self.layers:
            weight = self.network.weights[key]
            if weight.grad is not None:
                square = (weight * weight.grad).square()
                self._sums[key] = self._sums[key] + square if key in self._sums else square
        self._updates += 1

    def loss(self, step: int) -> torch.Tensor:
        """Return the loss of one batch."""
        from .distil import distillation_loss

        inputs, labels, taught = self.lesson.draw(step)
        share, temperature = float(self._params["share"]), float(self._params["temperature"])
        return distillation_loss(self.lesson.heads, self.network.run(inputs), taught, labels, share, temperature)

    def result(self) -> tvm.IRModule:
        """Return the module with the weights as they are."""
        return rebuilt(self.mod, {key: weight.detach().numpy() for key, weight in self.network.weights.items()})
