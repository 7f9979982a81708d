"""How far a trial's runs lie apart: median and MAD, what is thrown away, and which candidates are timed once more.

    spread = spread_of(ns)          median, MAD, and the runs that are no outliers
    trimmed(measurement)            the measurement without its outliers
    again = unsettled(results)      candidates whose spread is too large
    groups_of(groups, again)        their groups, each with its first candidate to compare with
    merged(old, new)                the runs of both

MAD is the median distance from the median; outliers have a modified z-score above 3.5: B. Iglewicz, D. Hoaglin, "How to
Detect and Handle Outliers", 1993, equation 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from xnncc.device.bench import Fault, Group, Measurement

OUTLIER_SCORE = 3.5
LEAST_RUNS = 5  # fewer say nothing of a spread
LARGE_SPREAD = 0.04  # of MAD to median
LEAST_KEPT = 0.6  # of the runs; when more than the rest are outliers there is no middle to trust
FLOOR_NS = 200  # clocks step by up to 52 ns, and a call of one costs as much: less than this is no spread


@dataclass(frozen=True)
class Spread:
    """The middle of some runs. ``kept``: the runs that are no outliers, in their order; ``rejected``: how many are."""

    median_ns: float
    mad_ns: float
    kept: tuple[int, ...]
    rejected: int

    @property
    def relative(self) -> float:
        """MAD divided by median."""
        return self.mad_ns / self.median_ns if self.median_ns else 0.0

    @property
    def is_large(self) -> bool:
        """The trial should be timed once more."""
        count = len(self.kept) + self.rejected
        if count < LEAST_RUNS or self.mad_ns <= FLOOR_NS:
            return False
        return self.relative > LARGE_SPREAD or len(self.kept) < LEAST_KEPT * count


def spread_of(ns: Sequence[int]) -> Spread:
    """Return the spread of at least one run (ns); median and MAD are those of the runs that are kept."""
    middle = median(ns)
    mad = median(abs(one - middle) for one in ns)
    # 0.6745: the share of a normal distribution's standard deviation that MAD is.
    reach = OUTLIER_SCORE * max(mad, FLOOR_NS / 2) / 0.6745
    kept = tuple(one for one in ns if abs(one - middle) <= reach)
    middle = median(kept)
    return Spread(middle, median(abs(one - middle) for one in kept), kept, len(ns) - len(kept))


def trimmed(result: Measurement) -> Measurement:
    """Return a measurement without its outliers; one of few runs as it is."""
    return result if len(result.ns) < LEAST_RUNS else replace(result, ns=spread_of(result.ns).kept)


def unsettled(results: Iterable[Measurement | Fault]) -> list[int]:
    """Return the candidates whose runs lie too far apart to be believed, in order."""
    return sorted(r.candidate for r in results if isinstance(r, Measurement) and spread_of(r.ns).is_large)


def groups_of(groups: Sequence[Group], candidates: Iterable[int]) -> list[Group]:
    """Return the groups of ``candidates`` with no others in them but their first ones, which they are compared with."""
    wanted = set(candidates)
    picked = []
    for group in groups:
        rest = tuple(c for c in group.candidates[1:] if c in wanted)
        if rest or group.candidates[0] in wanted:
            picked.append(replace(group, candidates=(group.candidates[0], *rest)))
    return picked


def merged(old: Measurement, new: Measurement) -> Measurement:
    """Return the runs of both, and the larger error."""
    return Measurement(old.candidate, old.ns + new.ns, max(old.error, new.error))


def divided(result: Measurement, factor: float) -> Measurement:
    """Return a measurement whose times are divided by ``factor`` (see drift)."""
    return result if factor == 1.0 else replace(result, ns=tuple(round(one / factor) for one in result.ns))
