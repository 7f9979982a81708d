"""quantise_small: biases become integers, grids and weights do not."""

from __future__ import annotations

import calibration_network as small
import numpy as np
import pytest

from xnncc.compress.constants import constant_arrays
from xnncc.compress.layers import weight_layers
from xnncc.compress.quantise_small import quantise_small, small_step
from xnncc.compress.result import Data
from xnncc.ir.coded import digest


def test_biases_of_the_small_network_take_seven_bits() -> None:
    squeezed = quantise_small(small.state(), small.config(bits=8), Data(), 0, small.quiet)
    assert len(squeezed.report.layers) == 4
    assert all(line.bits_per_weight <= 8 for line in squeezed.report.layers)
    assert small.divergence(squeezed.mod) <= 1e-3  # 2026-11: 3e-5


def test_with_samples_the_loss_sets_the_step() -> None:
    fine, coarse = (
        quantise_small(small.state(), small.config(loss=loss), small.data(), 0, small.quiet) for loss in (1e-6, 1e-2)
    )
    assert small.total_bytes(coarse) < small.total_bytes(fine)
    assert small.divergence(coarse.mod) <= 0.05


def test_every_constant_is_what_its_integers_say_and_weights_are_left() -> None:
    state = small.state()
    squeezed = quantise_small(state, small.config(), Data(), 0, small.quiet)
    values = {digest(array): array for array in constant_arrays(squeezed.mod).values()}
    assert all(np.array_equal(values[key], tensor.values()) for key, tensor in squeezed.coded.items())
    assert [a.digest for a in weight_layers(state.mod)] == [b.digest for b in weight_layers(squeezed.mod)]


def test_the_same_seed_gives_the_same_integers() -> None:
    first, again = (quantise_small(small.state(), small.config(), small.data(), 3, small.quiet) for _ in range(2))
    assert list(first.coded) == list(again.coded)


def test_an_empty_choice_of_layers_changes_nothing() -> None:
    state = small.state()
    assert quantise_small(state, small.config(layers=()), Data(), 0, small.quiet).mod is state.mod


@pytest.mark.parametrize("array", [np.zeros(8, "f"), np.full(8, 1e-45, "f")], ids=["zeros", "smaller than any step"])
def test_a_constant_without_size_gets_step_one(array: np.ndarray) -> None:
    assert small_step(array, None, 1.0, 8) == 1
