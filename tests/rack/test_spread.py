"""Median, MAD, outliers, and which candidates are timed once more."""

from __future__ import annotations

from xnncc.device.bench import Fault, Group, Measurement
from xnncc.rack.spread import divided, groups_of, merged, spread_of, trimmed, unsettled

CALM = (100_000, 101_000, 99_500, 100_200, 100_900, 99_800)


def test_an_interrupted_run_is_left_out() -> None:
    spread = spread_of((*CALM, 350_000))
    assert spread.rejected == 1 and 350_000 not in spread.kept
    assert spread.median_ns == 100_100 and not spread.is_large
    assert trimmed(Measurement(1, (*CALM, 350_000), 0.0)) == Measurement(1, CALM, 0.0)


def test_a_run_that_is_too_fast_to_be_true_is_left_out() -> None:
    assert trimmed(Measurement(1, (12, *CALM), 0.0)).us == 99.5


def test_runs_that_lie_apart_are_unsettled() -> None:
    wild = (100_000, 140_000, 90_000, 160_000, 120_000, 80_000)
    assert spread_of(wild).is_large
    results = [
        Measurement(3, wild, 0.0), Measurement(1, CALM, 0.0), Measurement(2, wild[:4], 0.0), Fault(4, "crash", ""),
    ]  # fmt: skip
    assert unsettled(results) == [3], "four runs say nothing of a spread"


def test_the_clocks_grain_is_no_spread() -> None:
    assert not spread_of((400, 500, 300, 450, 600, 350)).is_large
    assert spread_of((0, 0, 0, 0, 0)).relative == 0.0


def test_groups_keep_their_first_candidate_to_compare_with() -> None:
    groups = [Group((0, 1, 2, 3), 1, 4, 4), Group((4, 5), 1, 4, 4), Group((6, 7), 1, 4, 4)]
    assert groups_of(groups, [3, 6]) == [Group((0, 3), 1, 4, 4), Group((6,), 1, 4, 4)]
    assert groups_of(groups, []) == []


def test_merging_keeps_all_runs_and_the_larger_error() -> None:
    assert merged(Measurement(1, (5, 6), 1e-7), Measurement(1, (7,), 1e-6)) == Measurement(1, (5, 6, 7), 1e-6)
    assert divided(Measurement(1, (1100, 2200), 0.5), 1.1) == Measurement(1, (1000, 2000), 0.5)
