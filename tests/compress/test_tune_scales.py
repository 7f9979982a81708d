"""tune_scales: integers stay, the loss of a coarse quantisation falls."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs: pip install 'xnncc[train]'")

import training_data as task  # noqa: E402

from xnncc.compress import quantise_round  # noqa: E402
from xnncc.compress.distil import Lesson, distillation_loss  # noqa: E402
from xnncc.compress.layers import weight_layers  # noqa: E402
from xnncc.compress.result import StepConfig  # noqa: E402
from xnncc.compress.torch_network import TorchNetwork  # noqa: E402
from xnncc.compress.tune_scales import DEFAULTS, tune_scales  # noqa: E402


def distance(mod: object) -> float:
    """Return the distillation loss on a batch of 512."""
    lesson = Lesson(task.data(), 512, 9)
    inputs, _, taught = lesson.draw(0)
    with torch.no_grad():
        return float(distillation_loss(lesson.heads, TorchNetwork(mod).run(inputs), taught, None, 1.0, 1.0))


def test_the_loss_falls_and_integers_stay() -> None:
    coarse = StepConfig({**quantise_round.DEFAULTS, "bits": 3})
    before = quantise_round.quantise_round(task.state(), coarse, task.data(), 0, task.quiet)
    step = StepConfig({**DEFAULTS, "batch": 64, "epochs": 3, "lr": 3e-3, "vector_lr": 3e-3})
    after = tune_scales(before, step, task.data(), 0, task.quiet)
    assert distance(after.mod) < 0.6 * distance(before.mod)  # 2026-12: a third
    for old, new in zip(weight_layers(before.mod), weight_layers(after.mod), strict=True):
        np.testing.assert_array_equal(before.coded[old.digest].integers, after.coded[new.digest].integers)
        np.testing.assert_array_equal(after.coded[new.digest].values(), new.weights)
