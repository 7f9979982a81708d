"""One fixed kernel, timed before and after each piece of work, tells whether the device was the same all the while.

    watch = DriftWatch()                                  one for each device; give it the baseline that was kept
    before, after = Reading(t0, us0), Reading(t1, us1)    the reference kernel's median and spread
    verdict = watch.judge(before, after, change_within(runs of what was measured together))
    verdict.is_steady       False: throw away what was measured in between and measure it again
    verdict.factor          divide the times in between by it: what they would be at the device's full speed
    verdict.is_throttled    let it cool first

A clock that steps down between two references makes everything in between a mixture, which no factor repairs. One that
steps down and up again in between shows in the runs themselves: their first, middle and last third differ. A device
that is slow but steady can be used, since a common factor changes no ranking. What does not wait for the clock (memory)
is not slowed as much as the reference, so beyond ``most_factor`` the numbers are refused all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import median

from xnncc.rack.spread import spread_of

_LEAST_IN_THIRD = 6  # runs


@dataclass(frozen=True)
class DriftLimits:
    """What counts as the same speed. All are ratios of the reference kernel's times."""

    most_change: float = 1.03  # between two references; a step of a phone's clock is 8 to 20 %
    throttled: float = 1.06  # against the baseline: slower than this the device is not at full speed
    most_factor: float = 1.06  # slower than this the numbers in between are not worth a correction
    most_change_within: float = 1.05  # between the thirds of what was measured
    most_spread: float = 0.03  # of one reference: its median distance from the median


@dataclass(frozen=True)
class Reading:
    """The reference kernel, timed once: when (seconds of any clock), how long (median, us), how far apart (ratio)."""

    at_s: float
    us: float
    spread: float = 0.0


@dataclass(frozen=True)
class Verdict:
    """What two readings say of what was measured between them. ``words`` is for people."""

    is_steady: bool
    is_throttled: bool
    factor: float
    words: str


def reading(at_s: float, ns: Sequence[int]) -> Reading:
    """Return the reading of the reference kernel's runs (ns, at least one; the first three are the warm-up if there
    are more than six)."""
    spread = spread_of(ns[3:] if len(ns) > 6 else ns)
    return Reading(at_s, spread.median_ns / 1e3, spread.relative)


def change_within(together: Sequence[Sequence[int]]) -> float:
    """Return by what ratio the device changed while the runs (ns, in their order) of some interleaved candidates were
    made: that of the slowest third's time to the fastest's; 1 when the runs are too few to tell."""
    thirds: list[list[float]] = [[], [], []]
    for ns in together:
        whole, size = max(median(ns), 1), len(ns) // 3
        for number, found in enumerate(thirds):
            found += [one / whole for one in ns[number * size : (number + 1) * size]]
    if len(thirds[0]) < _LEAST_IN_THIRD:
        return 1.0
    ratios = [median(found) for found in thirds]
    return max(ratios) / max(min(ratios), 1e-9)


class DriftWatch:
    """The speed of one device over time. ``baseline_us``: the reference at full speed, None when it is not known yet.

    The baseline is the fastest steady reading so far: a device can only be slower than it is able to.
    """

    def __init__(self, limits: DriftLimits | None = None, baseline_us: float | None = None) -> None:
        self.limits = limits or DriftLimits()
        self.baseline_us = baseline_us

    def note(self, one: Reading) -> None:
        """Take a reading into account for the baseline."""
        if one.spread <= self.limits.most_spread and (self.baseline_us is None or one.us < self.baseline_us):
            self.baseline_us = one.us

    def slowness(self, one: Reading) -> float:
        """Return how many times slower than its full speed the device is; 1 while that is not known."""
        return one.us / self.baseline_us if self.baseline_us else 1.0

    def judge(self, before: Reading, after: Reading, within: float = 1.0) -> Verdict:
        """Return the verdict on everything that was measured between two readings; ``within``: see change_within."""
        limits = self.limits
        self.note(before)
        self.note(after)
        factor = max(sqrt(self.slowness(before) * self.slowness(after)), 1.0)
        change = max(before.us, after.us) / max(min(before.us, after.us), 1e-9)
        throttled = max(self.slowness(before), self.slowness(after)) > limits.throttled
        unsteady = max(before.spread, after.spread)
        if change > limits.most_change:
            words = f"the reference kernel took {before.us:.1f} us before and {after.us:.1f} us after"
        elif within > limits.most_change_within:
            words = f"between two readings of the reference kernel its speed changed by {100 * (within - 1):.0f} %"
        elif unsteady > limits.most_spread:
            words = f"the reference kernel's own runs lie {100 * unsteady:.0f} % apart"
        elif factor > limits.most_factor:
            words = f"the reference kernel is {100 * (factor - 1):.0f} % slower than at full speed"
        else:
            return Verdict(True, throttled, factor, "steady")
        return Verdict(False, throttled, factor, words)
