"""fit: learning rate, order of hooks, and a stopped run that ends with the bits of one that was not stopped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs: pip install 'xnncc[train]'")

from xnncc.compress import fit as fitting  # noqa: E402
from xnncc.compress.fit import Group, Plan, fit  # noqa: E402

PLAN = Plan("line", 60, 0.1, every=5)


def quiet(text: str, done: int, total: int) -> None:
    """Say nothing."""


def run(journal: Path | None, stop_at: int | None = None) -> np.ndarray:
    """Fit two numbers to their targets; raise KeyboardInterrupt in one step."""
    tensor = torch.zeros(2, requires_grad=True)
    noise = np.random.default_rng(0).normal(size=(60, 2))

    def loss(step: int) -> torch.Tensor:
        if step == stop_at:
            raise KeyboardInterrupt
        return ((tensor - torch.tensor([1.0, -2.0]) - torch.from_numpy(noise[step])) ** 2).sum()

    fit(PLAN, [Group([tensor])], loss, str(journal) if journal else None, quiet)
    return tensor.detach().numpy()


def test_finds_the_minimum() -> None:
    np.testing.assert_allclose(run(None), [1, -2], atol=0.3)


def test_a_stopped_run_ends_with_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "_SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, stop_at=37)
    steps = []
    fit(PLAN, [Group([tensor := torch.zeros(2, requires_grad=True)])],
        lambda step: (steps.append(step), (tensor**2).sum())[1], str(tmp_path), quiet)  # fmt: skip
    assert steps[0] == 35
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "again", stop_at=37)
    np.testing.assert_array_equal(run(tmp_path / "again"), run(None))


def test_a_checkpoint_of_another_run_is_not_taken(tmp_path: Path) -> None:
    run(tmp_path)
    steps = []
    other = torch.ones(2, requires_grad=True)
    fit(PLAN, [Group([other])], lambda step: (steps.append(step), (other**2).sum())[1], str(tmp_path), quiet)
    assert steps[0] == 0


def test_a_checkpoint_that_is_cut_off_is_not_taken(tmp_path: Path) -> None:
    want = run(tmp_path)
    path = tmp_path / "line.pt"
    path.write_bytes(path.read_bytes()[:200])
    np.testing.assert_array_equal(run(tmp_path), want)


def test_hooks_run_in_order() -> None:
    seen: list[str] = []
    tensor = torch.zeros(1, requires_grad=True)
    fit(
        Plan("hooks", 2, 0.1, every=1), [Group([tensor])],
        lambda step: (seen.append("loss"), tensor.sum())[1], None, quiet,
        before=lambda step: seen.append("before"), after=lambda step: seen.append("after"),
        change=lambda: seen.append("change"),
    )  # fmt: skip
    assert seen == ["before", "loss", "change", "after"] * 2


def test_the_rate_falls_as_a_cosine() -> None:
    moves = []
    tensor = torch.zeros(1, requires_grad=True)
    last = [0.0]

    def after(step: int) -> None:
        moves.append(abs(tensor.item() - last[0]))
        last[0] = tensor.item()

    plan = Plan("sgd", 40, 0.1, floor=0.0, optimiser="sgd")
    fit(plan, [Group([tensor], 0.5)], lambda step: tensor.sum(), None, quiet, after=after)
    assert moves[0] == pytest.approx(0.1 * 0.5 * 1.9) and moves[-1] < moves[20]


def test_numbers_of_the_method_come_back_with_the_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "_SECONDS_BETWEEN_CHECKPOINTS", 0.0)

    def count(journal: Path | None, stop_at: int | None = None) -> tuple[float, float]:
        tensor, own = torch.zeros(1, requires_grad=True), torch.zeros(1, dtype=torch.float64)

        def loss(step: int) -> torch.Tensor:
            if step == stop_at:
                raise KeyboardInterrupt
            own.add_(step + float(tensor.detach()))
            return ((tensor - own.float().detach()) ** 2).sum()

        fit(PLAN, [Group([tensor])], loss, str(journal) if journal else None, quiet, kept=own)
        return own.item(), tensor.item()

    with pytest.raises(KeyboardInterrupt):
        count(tmp_path, stop_at=37)
    assert count(tmp_path) == count(None)
