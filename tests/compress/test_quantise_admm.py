"""quantise_admm: few bits with a scale a channel, with and without samples."""

from __future__ import annotations

import calibration_network as small
import numpy as np
import pytest

from xnncc.compress.layers import weight_layers, with_constants
from xnncc.compress.quantise_admm import project, quantise_admm
from xnncc.compress.result import Data, Squeezed


@pytest.mark.parametrize("bits, most", [(8, 2e-4), (4, 0.3), (2, 0.45)])
def test_loss_of_each_width(bits: int, most: float) -> None:
    # 2026-11: 9e-5, 0.25 and 0.40 nats
    config = small.config(bits=bits, bits_depthwise=bits)
    assert small.divergence(quantise_admm(small.state(), config, small.data(), 0, small.quiet).mod) <= most


def test_samples_help_at_four_bits() -> None:
    config = small.config(bits=4, bits_depthwise=4)
    without, with_samples = (
        small.divergence(quantise_admm(small.state(), config, d, 0, small.quiet).mod) for d in (Data(), small.data())
    )
    assert with_samples < without


@pytest.mark.parametrize("bits", [1, 2, 3, 5, 8])
def test_integers_keep_within_their_bits(bits: int) -> None:
    squeezed = quantise_admm(small.state(), small.config(bits=bits, bits_depthwise=bits), Data(), 0, small.quiet)
    limit = max((1 << (bits - 1)) - 1, 1)
    assert all(np.abs(tensor.integers).max() <= limit for tensor in squeezed.coded.values())
    assert all(np.array_equal(w.weights, squeezed.coded[w.digest].values()) for w in weight_layers(squeezed.mod))


def test_projection_finds_integers_that_are_there() -> None:
    rng = np.random.default_rng(0)
    q = rng.integers(-3, 4, (5, 40)).astype(float)
    q[:, 0] = 3
    steps = np.array([1e-12, 0.1, 1.0, 7.0, 1e9])
    found, scales = project(q * steps[:, None], 3)
    np.testing.assert_array_equal(found, q)
    np.testing.assert_allclose(scales, steps, rtol=1e-9)


def test_a_row_of_zeros_has_step_one() -> None:
    q, steps = project(np.zeros((2, 6)), 4)
    assert not q.any() and steps.tolist() == [1, 1]


def test_one_bit_is_the_sign_and_the_mean() -> None:
    q, steps = project(np.array([[1.0, -3.0, 2.0]]), 1)
    assert q.tolist() == [[1, -1, 1]] and steps.tolist() == [2]


def test_an_empty_choice_of_layers_changes_nothing() -> None:
    state = small.state()
    squeezed = quantise_admm(state, small.config(layers=()), small.data(), 0, small.quiet)
    assert squeezed.mod is state.mod and not squeezed.coded


def test_the_same_seed_gives_the_same_integers() -> None:
    first, again = (quantise_admm(small.state(), small.config(), small.data(), 3, small.quiet) for _ in range(2))
    assert list(first.coded) == list(again.coded)


def test_leaves_infinite_weights_alone_and_says_so() -> None:
    state = small.state()
    head = next(layer for layer in weight_layers(state.mod) if layer.name == "head")
    broken = Squeezed(with_constants(state.mod, {head.digest: np.where(head.weights > 3, np.inf, head.weights)}))
    squeezed = quantise_admm(broken, small.config(), Data(), 0, small.quiet)
    assert squeezed.report.left_alone == {"head": "it has NaN or infinite values"}
