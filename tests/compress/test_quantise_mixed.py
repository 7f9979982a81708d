"""quantise_mixed: widths follow the measured loss."""

from __future__ import annotations

import calibration_network as small
import pytest

from xnncc.compress.quantise_admm import quantise_admm
from xnncc.compress.quantise_mixed import quantise_mixed, shared_bits
from xnncc.compress.result import Data
from xnncc.errors import CompressError


def test_mixed_widths_lose_less_than_one_width_of_the_same_mean() -> None:
    mixed = quantise_mixed(small.state(), small.config(bits=5.0), small.data(), 0, small.quiet)
    even = quantise_admm(small.state(), small.config(bits=5, bits_depthwise=5), Data(), 0, small.quiet)
    assert small.divergence(mixed.mod) < small.divergence(even.mod)


def test_the_mean_width_is_kept() -> None:
    squeezed = quantise_mixed(small.state(), small.config(bits=4.5), small.data(), 0, small.quiet)
    sizes = {line.name: line.weights for line in squeezed.report.layers}
    bits = sum(int(squeezed.report.facts[f"bits of {name}"]) * size for name, size in sizes.items())
    assert bits <= 4.5 * sum(sizes.values())


def test_the_layer_that_costs_most_gets_most() -> None:
    assert shared_bits([100, 100, 100], [1.0, 1e-4, 1e-2], 4, 5.0) == [8, 2, 5]


def test_small_layers_fill_what_is_left() -> None:
    assert shared_bits([1000, 10], [1e-3, 1e-3], 4, 2.05) == [2, 7]


def test_an_empty_choice_of_layers_changes_nothing() -> None:
    state = small.state()
    assert quantise_mixed(state, small.config(layers=()), small.data(), 0, small.quiet).mod is state.mod


def test_the_same_seed_gives_the_same_integers() -> None:
    first, again = (quantise_mixed(small.state(), small.config(), small.data(), 3, small.quiet) for _ in range(2))
    assert list(first.coded) == list(again.coded)


def test_without_samples_it_says_what_to_give() -> None:
    with pytest.raises(CompressError, match="Give some with --calib"):
        quantise_mixed(small.state(), small.config(), Data(), 0, small.quiet)
