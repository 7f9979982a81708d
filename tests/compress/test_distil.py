"""Distillation: the loss of each kind of head, batches with the teacher's answers, shifts, torch that is missing."""

from __future__ import annotations

import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs: pip install 'xnncc[train]'")

import training_data as task  # noqa: E402

from xnncc.compress.distil import Lesson, distillation_loss, uniform_loss  # noqa: E402
from xnncc.compress.result import Data  # noqa: E402
from xnncc.compress.torch_network import Head, require_torch  # noqa: E402
from xnncc.errors import CompressError  # noqa: E402

HEADS = {"softmax": (4, 3, 12), "sigmoid": (4, 1, 6), "values": (4, 2, 3)}


def logits(kind: str, seed: int) -> torch.Tensor:
    return torch.randn(HEADS[kind], generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("kind", HEADS)
def test_nothing_is_lost_by_who_answers_as_the_teacher(kind: str) -> None:
    head, goal = [Head("y", kind, "y")], [logits(kind, 0)]
    assert distillation_loss(head, goal, goal).item() == pytest.approx(0, abs=1e-6)
    assert distillation_loss(head, [logits(kind, 1)], goal).item() > 0.05


def test_the_loss_of_classes_is_that_of_the_paper() -> None:
    out, goal, labels = torch.tensor([[[1.0, 2, 0]]]), torch.tensor([[[0.0, 1, 3]]]), torch.tensor([2])
    p, q = (torch.softmax(x.flatten() / 2, 0).numpy().astype(float) for x in (goal, out))
    kl = float(np.sum(p * np.log(p / q)))
    cross = -float(torch.log_softmax(out.flatten(), 0)[2])
    got = distillation_loss([Head("y", "softmax", "y")], [out], [goal], labels, share=0.25, temperature=2.0)
    assert got.item() == pytest.approx(0.25 * 4 * kl + 0.75 * cross, rel=1e-5)


def test_a_network_that_knows_nothing_loses_the_logarithm_of_its_classes() -> None:
    assert uniform_loss([Head("y", "softmax", "y")], [torch.zeros(2, 1, 12)]) == pytest.approx(np.log(12))


def test_batches_follow_from_seed_and_step() -> None:
    one, same, other = (Lesson(task.data(), 32, seed, shift_px=1) for seed in (4, 4, 5))
    for step in (0, 40, 3):
        torch.testing.assert_close(one.draw(step)[0]["x"], same.draw(step)[0]["x"], rtol=0, atol=0)
    assert not torch.equal(one.draw(0)[0]["x"], other.draw(0)[0]["x"])


def test_an_epoch_shows_every_sample_once() -> None:
    lesson = Lesson(task.data(), 128, 0)
    assert lesson.steps_per_epoch == 8
    seen = torch.cat([lesson.draw(step)[0]["x"][:, 0, 0, 0, 0] for step in range(8)])
    torch.testing.assert_close(seen.sort().values, lesson.inputs["x"][:, 0, 0, 0, 0].sort().values)


def test_the_teacher_answers_for_the_shifted_image() -> None:
    lesson = Lesson(task.data(), 16, 1, shift_px=1)
    assert len(lesson.shifts) == 5
    for step in range(4):
        inputs, _, taught = lesson.draw(step)
        torch.testing.assert_close(lesson.teacher.run(inputs)[0], taught[0], rtol=1e-4, atol=1e-4)


def test_without_samples_it_says_which_flag() -> None:
    with pytest.raises(CompressError, match="--train"):
        Lesson(Data(original=task.trained()), 8, 0)


def test_without_torch_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(CompressError, match=r"pip install 'xnncc\[train\]'"):
        require_torch()
