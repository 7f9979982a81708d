"""quantise_codebook: k-means in one dimension, pruned zeros, sizes and losses on the small network."""

from __future__ import annotations

import calibration_network as small
import numpy as np
import pytest

from xnncc.compress.layers import weight_layers
from xnncc.compress.quantise_codebook import quantise_codebook, shared_values
from xnncc.compress.result import Data


@pytest.mark.parametrize("bits, most", [(6, 0.1), (4, 0.3)])
def test_loss_of_each_size(bits: int, most: float) -> None:
    # 2026-11: 0.054 and 0.19 nats; the stem's 216 weights share at most 27 values
    squeezed = quantise_codebook(small.state(), small.config(bits=bits), small.data(), 0, small.quiet)
    assert small.divergence(squeezed.mod) <= most
    assert all(np.array_equal(w.weights, squeezed.coded[w.digest].values()) for w in weight_layers(squeezed.mod))


def test_fisher_information_helps_at_four_bits() -> None:
    config = small.config(bits=4)
    without, with_samples = (
        small.divergence(quantise_codebook(small.state(), config, d, 0, small.quiet).mod)
        for d in (Data(), small.data())
    )
    assert with_samples < without


def test_finds_the_values_that_are_there() -> None:
    values = np.array([-3.0, -0.75, 2.0, 4.0], "f")
    w = np.random.default_rng(0).choice(values, (30, 20))
    tensor = shared_values(w, 4, None, 50)
    np.testing.assert_array_equal(tensor.values(), w)
    np.testing.assert_array_equal(tensor.codebook, values)


def test_zeros_of_a_pruned_weight_stay_zeros() -> None:
    rng = np.random.default_rng(0)
    w = np.where(rng.random((40, 40)) < 0.8, 0, rng.normal(size=(40, 40))).astype("f")
    tensor = shared_values(w, 16, None, 50)
    assert not tensor.values()[w == 0].any()
    assert np.mean(tensor.values() == 0) <= 0.83  # of the others only those nearest to zero join
    assert tensor.codebook is not None and len(tensor.codebook) <= 16


def test_a_codebook_has_at_most_an_eighth_as_many_values_as_weights() -> None:
    tensor = shared_values(np.random.default_rng(0).normal(size=(10, 8)).astype("f"), 256, None, 20)
    assert tensor.codebook is not None and len(tensor.codebook) == 10


def test_all_zeros_are_one_value() -> None:
    tensor = shared_values(np.zeros((8, 8), "f"), 16, None, 20)
    assert tensor.codebook is not None and tensor.codebook.tolist() == [0] and not tensor.values().any()


def test_an_empty_choice_of_layers_changes_nothing() -> None:
    state = small.state()
    assert quantise_codebook(state, small.config(layers=()), small.data(), 0, small.quiet).mod is state.mod


def test_the_same_seed_gives_the_same_codebooks() -> None:
    first, again = (quantise_codebook(small.state(), small.config(), small.data(), 3, small.quiet) for _ in range(2))
    assert list(first.coded) == list(again.coded)
