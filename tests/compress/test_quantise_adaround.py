"""quantise_adaround: learnt rounding is never worse than plain, and better at few bits."""

from __future__ import annotations

import calibration_network as small
import numpy as np
import pytest

from xnncc.compress.compensate import output_error
from xnncc.compress.quantise_adaround import DEFAULTS, learnt_rounding, quantise_adaround
from xnncc.compress.quantise_admm import project, quantise_admm
from xnncc.compress.result import Data
from xnncc.errors import CompressError


def test_rounding_against_correlated_inputs_halves_the_error() -> None:
    rng = np.random.default_rng(0)
    rows, mix = rng.normal(size=(1, 12, 20)), rng.normal(size=(20, 6))
    second = (mix @ mix.T + 0.05 * np.eye(20))[None]
    integers, steps = learnt_rounding(rows, second, 4, dict(DEFAULTS))
    plain, _ = project(rows[0], 4)
    learnt, nearest = (output_error(rows - q * steps[None, :, None], second) for q in (integers, plain[None]))
    assert learnt < 0.5 * nearest
    assert np.abs(integers - rows / steps[None, :, None]).max() < 2 and np.abs(integers).max() <= 7


def test_four_bits_lose_less_than_nearest_rounding() -> None:
    config = small.config(bits=4, bits_depthwise=8)
    learnt = quantise_adaround(small.state(), config, small.data(), 0, small.quiet)
    nearest = quantise_admm(small.state(), config, Data(), 0, small.quiet)
    assert small.divergence(learnt.mod) < small.divergence(nearest.mod)


def test_a_transposed_convolution_is_left_and_said_so() -> None:
    squeezed = quantise_adaround(small.state(), small.config(), small.data(), 0, small.quiet)
    assert squeezed.report.left_alone == {"up": "rows of a conv2d_transpose are no outputs"}


def test_the_same_seed_gives_the_same_integers() -> None:
    first, again = (quantise_adaround(small.state(), small.config(), small.data(), 3, small.quiet) for _ in range(2))
    assert list(first.coded) == list(again.coded)


def test_an_empty_choice_of_layers_changes_nothing() -> None:
    state = small.state()
    assert quantise_adaround(state, small.config(layers=()), small.data(), 0, small.quiet).mod is state.mod


def test_without_samples_it_says_what_to_give() -> None:
    with pytest.raises(CompressError, match="Give some with --calib"):
        quantise_adaround(small.state(), small.config(), Data(), 0, small.quiet)
