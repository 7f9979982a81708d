"""The reference kernel: when what lies between two readings counts, by which factor, and when it does not."""

from __future__ import annotations

import pytest

from xnncc.rack.drift import DriftWatch, Reading, change_within, reading


def _watch() -> DriftWatch:
    return DriftWatch(baseline_us=1000.0)


def test_the_same_speed_is_steady() -> None:
    verdict = _watch().judge(Reading(0, 1001.0), Reading(5, 1004.0))
    assert verdict.is_steady and not verdict.is_throttled
    assert verdict.factor == pytest.approx(1.0025, abs=1e-4)


def test_slow_but_steady_is_divided_by_a_factor() -> None:
    verdict = _watch().judge(Reading(0, 1050.0), Reading(5, 1052.0))
    assert verdict.is_steady and verdict.factor == pytest.approx(1.051, abs=1e-3)


@pytest.mark.parametrize(
    ("before", "after", "within", "words"),
    [
        (Reading(0, 1000.0), Reading(5, 1120.0), 1.0, "took 1000.0 us before and 1120.0 us after"),
        (Reading(0, 1120.0), Reading(5, 1000.0), 1.0, "took 1120.0 us before and 1000.0 us after"),
        (Reading(0, 1120.0), Reading(5, 1121.0), 1.0, "12 % slower than at full speed"),
        (Reading(0, 1000.0), Reading(5, 1000.0, spread=0.05), 1.0, "runs lie 5 % apart"),
        (Reading(0, 1000.0), Reading(5, 1000.0), 1.12, "changed by 12 %"),
    ],
)
def test_what_was_measured_while_it_changed_is_refused(
    before: Reading, after: Reading, within: float, words: str
) -> None:
    verdict = _watch().judge(before, after, within)
    assert not verdict.is_steady and words in verdict.words


def test_throttling_is_told_from_noise() -> None:
    watch = _watch()
    assert watch.judge(Reading(0, 1000.0), Reading(1, 1120.0)).is_throttled
    assert not watch.judge(Reading(0, 1000.0), Reading(1, 1040.0)).is_throttled


def test_the_baseline_is_the_fastest_steady_reading() -> None:
    watch = DriftWatch()
    assert watch.slowness(Reading(0, 1500.0)) == 1.0
    for one in (Reading(0, 1200.0), Reading(1, 1000.0), Reading(2, 700.0, spread=0.2), Reading(3, 1100.0)):
        watch.note(one)
    assert watch.baseline_us == 1000.0
    assert watch.slowness(Reading(4, 1100.0)) == pytest.approx(1.1)


def test_a_reading_leaves_the_warm_up_out() -> None:
    one = reading(7.0, [9_000_000, 5_000_000, 2_000_000, *[1_000_000] * 9])
    assert one == Reading(7.0, 1000.0, 0.0)
    assert reading(0.0, [3000]).us == 3.0


def test_a_clock_that_goes_down_and_up_again_shows_in_the_thirds() -> None:
    steady = [[100, 101, 99, 100, 100, 101, 99, 100, 101], [200, 202, 199, 201, 200, 200, 199, 202, 200]]
    dipped = [[100, 101, 99, 112, 112, 113, 99, 100, 101], [200, 202, 199, 224, 225, 224, 199, 202, 200]]
    assert change_within(steady) < 1.02 < 1.1 < change_within(dipped)
    one_disturbed = [*steady, [300, 299, 301, 400, 390, 410, 300, 300, 299]]
    assert change_within(one_disturbed) < 1.02, "it is that candidate's, not the device's"
    assert change_within([[100] * 5 + [150] * 3]) == 1.0 == change_within([]), "too few runs"
