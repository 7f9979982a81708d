"""Fine-tuning by distillation: every float32 weight is trained to follow the network as it came in.

A method of its own (``fine_tune``), and what other methods end their steps with (``fine_tuned``).
Strength has no effect here. See ``distil.py`` for the loss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import tvm

from .constants import rebuilt
from .result import Data, MethodReport, Progress, Squeezed, StepConfig

if TYPE_CHECKING:
    import torch

DEFAULTS: dict[str, bool | int | float | str | tuple] = {
    "epochs": 2,
    "steps": 0,  # updates, instead of epochs
    "batch": 512,
    "lr": 1e-3,
    "shift_px": 0,
    "share": 0.5,
    "temperature": 2.0,
}
NEEDS = "train"


def fine_tune(state: Squeezed, config: StepConfig, data: Data, seed: int, progress: Progress) -> Squeezed:
    """Return the network with its float weights trained; what was coded before is floats again.

    Raises:
        CompressError: torch is missing, or there are no training samples.
    """
    mod = fine_tuned(state.mod, config, data, seed, "fine-tune", progress)
    return Squeezed(mod, {}, MethodReport("fine_tune"))


def fine_tuned(
    mod: tvm.IRModule, config: StepConfig, data: Data, seed: int, name: str, progress: Progress
) -> tvm.IRModule:
    """Return ``mod`` trained for the parameters ``epochs`` or ``steps``, ``batch``, ``lr``... of ``config``."""
    from .distil import Lesson, distillation_loss
    from .fit import Group, Plan, fit
    from .torch_network import TorchNetwork

    p, network = config.params, TorchNetwork(mod)
    lesson = Lesson(data, int(p["batch"]), seed, int(p["shift_px"]))
    for weight in network.weights.values():
        weight.requires_grad_()

    def loss(step: int) -> torch.Tensor:
        inputs, labels, taught = lesson.draw(step)
        outputs = network.run(inputs)
        return distillation_loss(lesson.heads, outputs, taught, labels, float(p["share"]), float(p["temperature"]))

    steps = int(p["steps"]) or int(p["epochs"]) * lesson.steps_per_epoch
    fit(
        Plan(name, steps, float(p["lr"]), floor=0.1),
        [Group(list(network.weights.values()))],
        loss,
        config.journal,
        progress,
    )
    return rebuilt(mod, {key: weight.detach().numpy() for key, weight in network.weights.items()})
