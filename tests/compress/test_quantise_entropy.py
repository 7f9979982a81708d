"""quantise_entropy: few bits at little loss, the table of code lengths, guards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs: pip install 'xnncc[train]'")

import training_data as task  # noqa: E402

from xnncc.compress import fit as fitting  # noqa: E402
from xnncc.compress import quantise_round as rounding  # noqa: E402
from xnncc.compress.constants import constant_arrays  # noqa: E402
from xnncc.compress.layers import weight_layers  # noqa: E402
from xnncc.compress.quantise_entropy import DEFAULTS, code_lengths, coded_vector, quantise_entropy  # noqa: E402
from xnncc.compress.result import Data, Squeezed, StepConfig  # noqa: E402
from xnncc.compress.straight_through import Rounded  # noqa: E402
from xnncc.errors import CompressError  # noqa: E402
from xnncc.ir.coded import digest  # noqa: E402


def config(layers: tuple[str, ...] = ("*",), strength: float = 0.5, **params: Any) -> StepConfig:
    return StepConfig({**DEFAULTS, "batch": 64, "epochs": 10, "lr": 5e-3, **params}, strength, layers)


def bits(found: Squeezed) -> float:
    """Return bits a weight, by entropy."""
    lines = found.report.layers
    return 8 * sum(line.bytes_after for line in lines) / sum(line.weights for line in lines)


def test_two_bits_a_weight_at_little_loss() -> None:
    # 2026-12: 2.17 bits, 0.996 of the samples right, as many as the network
    found = quantise_entropy(task.state(), config(rate=0.5), task.data(), 0, task.quiet)
    assert bits(found) <= 2.3 and task.accuracy(found.mod) >= 0.98
    for layer in weight_layers(found.mod):
        np.testing.assert_array_equal(found.coded[layer.digest].values(), layer.weights)


def test_a_higher_rate_gives_fewer_bits() -> None:
    low, high = (quantise_entropy(task.state(), config(rate=r), task.data(), 0, task.quiet) for r in (0.02, 5.0))
    assert bits(high) < 0.9 * bits(low)


def test_biases_are_coded_with_eight_bits() -> None:
    found = quantise_entropy(task.state(), config(steps=5), task.data(), 0, task.quiet)
    bias = constant_arrays(found.mod)["a.1"]
    assert np.abs(found.coded[digest(bias)].integers).max() == 127


def test_the_same_seed_gives_the_same_bits() -> None:
    first, again = (
        constant_arrays(quantise_entropy(task.state(), config(steps=20), task.data(), 3, task.quiet).mod) for _ in "ab"
    )
    assert all(np.array_equal(first[name], again[name]) for name in first)


def test_a_rate_that_swamps_the_loss_is_lowered() -> None:
    found = quantise_entropy(task.state(), config(rate=200.0, epochs=12), task.data(), 0, task.quiet)
    assert int(found.report.facts["rate halved because it swamped the loss"]) >= 1


def coded_state() -> Squeezed:
    """Return the network with 4-bit integers and a step for each row."""
    params = {**rounding.DEFAULTS, "bits": 4, "sensitive_bits": 4}
    return rounding.quantise_round(task.state(), StepConfig(params), task.data(), 0, task.quiet)


def entropy(state: Squeezed) -> float:
    """Return bits for an integer of the layers, by each layer's histogram."""
    total, count = 0.0, 0
    for layer in weight_layers(state.mod):
        _, counts = np.unique(state.coded[layer.digest].integers, return_counts=True)
        total -= float(np.sum(counts * np.log2(counts / counts.sum())))
        count += int(counts.sum())
    return total / count


def test_integers_that_come_are_where_it_starts() -> None:
    start = coded_state()
    assert any(len(tensor.steps) > 1 for tensor in start.coded.values())  # by row: those stay so
    found = quantise_entropy(start, config(steps=1, cell_lr=0.0, step_lr=0.0), task.data(), 0, task.quiet)
    before, after = ({layer.name: s.coded[layer.digest] for layer in weight_layers(s.mod)} for s in (start, found))
    for name, tensor in before.items():
        np.testing.assert_array_equal(after[name].integers, tensor.integers)
        np.testing.assert_allclose(after[name].steps, tensor.steps, rtol=1e-5)


def test_bits_are_steered_to_their_goal() -> None:
    start, goal = coded_state(), 2.2
    params = {"bits": goal, "rate": 0.3, "steps": 240, "cell_lr": 0.05, "step_lr": 1e-3}
    found = quantise_entropy(start, config(**params), task.data(), 0, task.quiet)
    assert entropy(start) > 1.4 * goal
    assert entropy(found) == pytest.approx(goal, rel=0.1) and task.accuracy(found.mod) >= 0.97
    assert float(found.report.facts["rate steered by"]) != 1


def test_a_stopped_run_ends_with_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "_SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    start, steps = coded_state(), {"bits": 2.0, "steps": 40}

    def stop(text: str, done: int, total: int) -> None:
        if done == 20:
            raise KeyboardInterrupt

    whole = quantise_entropy(start, config(**steps), task.data(), 0, task.quiet)
    kept = replace(config(**steps), journal=str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        quantise_entropy(start, kept, task.data(), 0, stop)
    again = constant_arrays(quantise_entropy(start, kept, task.data(), 0, task.quiet).mod)
    assert all(np.array_equal(array, again[name]) for name, array in constant_arrays(whole.mod).items())


def test_an_empty_choice_of_layers_changes_nothing() -> None:
    found = quantise_entropy(task.state(), config(layers=()), task.data(), 0, task.quiet)
    assert found.mod is task.trained() and found.report.left_alone["a#1"] == "not in the recipe's layers"


def test_needs_training_samples() -> None:
    with pytest.raises(CompressError, match="--train"):
        quantise_entropy(task.state(), config(), Data(original=task.trained()), 0, task.quiet)


def test_code_lengths_rise_with_the_magnitude_even_without_zeros() -> None:
    lengths = code_lengths(torch.tensor([3.0] * 90 + [-3.0] * 90 + [1.0] * 5), 7).numpy()
    assert np.all(np.diff(lengths[7:]) >= -1e-6)
    np.testing.assert_allclose(lengths, lengths[::-1])
    assert np.sum(2.0**-lengths) == pytest.approx(1)


def test_code_lengths_of_wide_integers_are_finite() -> None:
    lengths = code_lengths(torch.tensor([0.0] * 1000 + [1.0]), 200).numpy()
    assert np.isfinite(lengths).all() and np.all(np.diff(lengths[200:]) >= 0) and lengths[-1] < 64


def test_vectors_of_zeros_have_a_step() -> None:
    tensor = coded_vector(np.zeros((1, 5), np.float32), 8)
    assert not tensor.values().any() and tensor.steps is not None and tensor.steps[0] == 1


def test_gradients_of_rounding() -> None:
    w = torch.tensor([0.26, -1.3, 9.0], requires_grad=True)
    step = torch.tensor(0.5, requires_grad=True)
    out = Rounded.apply(w, step, 3)
    assert out.tolist() == [0.5, -1.5, 1.5]
    out.sum().backward()
    assert w.grad.tolist() == [1, 1, 0]
    assert step.grad.item() == pytest.approx(((1 - 0.52) + (-3 + 2.6) + 3) / 3**0.5)


def test_gradients_of_rounding_with_a_step_for_each_row() -> None:
    w, rows = torch.tensor([[0.26, -1.3, 9.0], [0.26, 0.3, -0.2]]), torch.tensor([[0.5], [0.1]], requires_grad=True)
    Rounded.apply(w, rows, 3).sum().backward()
    for row in range(2):
        step = rows.detach()[row, 0].clone().requires_grad_()
        Rounded.apply(w[row], step, 3).sum().backward()
        assert rows.grad[row, 0].item() == pytest.approx(step.grad.item())
