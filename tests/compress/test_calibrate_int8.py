"""calibrate_int8 and activation_ranges: what 8 bits of both cost on the small network."""

from __future__ import annotations

import calibration_network as small
import numpy as np
import pytest

from xnncc.compress.activation_ranges import RANGES, Histogram, activation_steps, rounded
from xnncc.compress.calibrate_int8 import calibrate_int8
from xnncc.compress.result import Data
from xnncc.errors import CompressError


# "kl" cuts off what is rare, and the small network's samples have no tails to cut: 2026-11 14.4 dB
@pytest.mark.parametrize("ranges, least_db", [("minmax", 25), ("percentile", 25), ("mse", 25), ("kl", 12)])
def test_error_of_eight_bits_of_weights_and_activations(ranges: str, least_db: float) -> None:
    squeezed = calibrate_int8(small.state(), small.config(ranges=ranges), small.data(), 0, small.quiet)
    assert float(squeezed.report.facts["sqnr_db"]) >= least_db
    assert all(line.error < 0.4 for line in squeezed.report.layers)
    assert sum(name.startswith("step of ") for name in squeezed.report.facts) == 5


def test_weights_are_eight_bits_and_quarter_the_size() -> None:
    squeezed = calibrate_int8(small.state(), small.config(), small.data(), 0, small.quiet)
    assert all(np.abs(tensor.integers).max() <= 127 for tensor in squeezed.coded.values())
    assert small.divergence(squeezed.mod) <= 1e-3


def _filled(values: np.ndarray) -> Histogram:
    h = Histogram.empty()
    h.add(values)
    return h


def test_outliers_widen_minmax_only() -> None:
    rng = np.random.default_rng(0)
    h = _filled(np.concatenate([rng.normal(size=200_000), [100.0]]))
    found = {how: RANGES[how](h, 127) for how in RANGES}
    assert found["minmax"] == pytest.approx(100, rel=1e-3)
    assert 3 < found["percentile"] < 6
    assert 3 < found["kl"] < 10
    assert 40 < found["mse"] < 60  # where (100 - r)^2 / 200,000 and the noise of 127 steps balance


def test_a_histogram_that_grows_keeps_every_element() -> None:
    h = _filled(np.full(10, 0.5))
    h.add(np.full(20, 37.0))
    assert h.counts.sum() == 30 and h.largest >= 37
    assert h.counts[: int(2048 / h.largest) + 1].sum() == 10  # those below 1


def test_values_that_are_no_numbers_are_left_out_and_zeros_get_step_one() -> None:
    h = _filled(np.array([np.nan, np.inf, 0.0]))
    assert activation_steps({"x": h}, "mse") == {"x": (1.0, False)}


def test_unsigned_tensors_have_twice_the_levels() -> None:
    x = np.linspace(0, 1, 1000)
    signed, unsigned = (activation_steps({"x": _filled(v)}, "minmax")["x"][0] for v in (x - 0.5, x))
    assert signed == pytest.approx(0.5 / 127, rel=1e-2) and unsigned == pytest.approx(1 / 255, rel=1e-2)
    assert np.abs(rounded(x, unsigned, False) - x).max() <= unsigned


def test_the_same_seed_gives_the_same_integers() -> None:
    first, again = (calibrate_int8(small.state(), small.config(), small.data(), 3, small.quiet) for _ in range(2))
    assert first.report.facts == again.report.facts and list(first.coded) == list(again.coded)


def test_an_empty_choice_of_layers_changes_nothing() -> None:
    state = small.state()
    assert calibrate_int8(state, small.config(layers=()), small.data(), 0, small.quiet).mod is state.mod


def test_refuses_a_way_that_does_not_exist() -> None:
    with pytest.raises(CompressError, match="There are kl, minmax, mse, percentile"):
        calibrate_int8(small.state(), small.config(ranges="entropy"), small.data(), 0, small.quiet)


def test_without_samples_it_says_what_to_give() -> None:
    with pytest.raises(CompressError, match="Give some with --calib"):
        calibrate_int8(small.state(), small.config(), Data(), 0, small.quiet)
