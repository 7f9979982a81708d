"""search: how hard to compress so that a contract holds; one strength for all, gentler where a layer costs most.

Two contracts. ``max_loss``: the smallest file whose loss on the selection samples is at most that. ``target_bytes``:
the least strength whose file is at most that large.

    1. bisect the strength: loss and bytes are taken as monotone in it, which is all that bisection asks
    2. max_loss only: half as hard again as what broke it, or at strength 0 if nothing held: halve the strength of the
       layer that costs most, at last leave it alone, until it holds; kept if that is smaller than what held before

What a layer costs is measured: the loss when that layer alone is put back. Everything is deterministic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

STEPS = 7  # of the bisection: strength to 1/128
HARDER = 1.5  # than what does not hold any more: the strength at which layers are softened
SOFTENINGS = 6  # rounds of softening
SUSPECTS = 6  # layers that are measured in a round: those with the largest error


@dataclass(frozen=True)
class Candidate:
    """One trial. ``loss`` is None where there is no data to measure it on."""

    strength: float
    gentler: Mapping[str, float]
    file_bytes: int
    loss: float | None
    errors: Mapping[str, float] = field(default_factory=dict)  # layer -> error, as its method reports it


@dataclass(frozen=True)
class Contract:
    """What must hold; one of the two."""

    max_loss: float | None = None
    target_bytes: int | None = None

    def holds(self, candidate: Candidate) -> bool:
        """Whether ``candidate`` fulfils it."""
        if self.max_loss is not None:
            return candidate.loss is not None and candidate.loss <= self.max_loss
        return self.target_bytes is None or candidate.file_bytes <= self.target_bytes

    def miss(self, candidate: Candidate) -> float:
        """Return what to compare trials by that do not hold: less is nearer."""
        if self.max_loss is not None:
            return candidate.loss if candidate.loss is not None else float("inf")
        return float(candidate.file_bytes)


@dataclass(frozen=True)
class Outcome:
    """``best``: what to deliver, or, where ``holds`` is false, the nearest there is. ``trials``: all, in order.

    ``costly``: layer -> loss that it alone causes, where that was measured, the largest first.
    """

    best: Candidate
    holds: bool
    trials: tuple[Candidate, ...]
    costly: Mapping[str, float] = field(default_factory=dict)


Try = Callable[[float, Mapping[str, float]], Candidate]  # strength, gentler -> the candidate
WithoutLayer = Callable[[Candidate, str], float]  # loss of a candidate in which one layer is put back


def search(attempt: Try, without: WithoutLayer, contract: Contract) -> Outcome:
    """Return the best trial under ``contract``."""
    trials: list[Candidate] = []

    def tried(strength: float, gentler: Mapping[str, float]) -> Candidate:
        trials.append(attempt(strength, gentler))
        return trials[-1]

    costly: dict[str, float] = {}
    if contract.max_loss is None:
        good, _ = _bisect(tried, contract, towards=0.0)
    else:
        good, bad = _bisect(tried, contract, towards=1.0)
        if good is not None and bad is not None:
            bad = _harder(tried, bad, trials)
        softened = _soften(tried, without, contract, bad, costly) if bad is not None else None
        if softened is not None and (good is None or softened.file_bytes < good.file_bytes):
            good = softened
    ranked = dict(sorted(costly.items(), key=lambda item: -item[1]))
    if good is not None:
        return Outcome(good, True, tuple(trials), ranked)
    return Outcome(min(trials, key=contract.miss), False, tuple(trials), ranked)


def _bisect(tried: Try, contract: Contract, towards: float) -> tuple[Candidate | None, Candidate | None]:
    """Return the trial nearest to strength ``towards`` that holds, and the nearest to that one that does not.

    ``towards`` 1: a loss is asked for, which holds below some strength; 0: a size, which holds above one.
    """
    wanted, safe = tried(towards, {}), None
    if contract.holds(wanted):
        return wanted, None
    safe = tried(1 - towards, {})
    if not contract.holds(safe):
        return None, safe
    for _ in range(STEPS):
        middle = tried((wanted.strength + safe.strength) / 2, {})
        if contract.holds(middle):
            safe = middle
        else:
            wanted = middle
    return safe, wanted


def _harder(tried: Try, bad: Candidate, trials: list[Candidate]) -> Candidate:
    """Return a trial ``HARDER`` than ``bad``: softening must win more than it gives up."""
    strength = min(1.0, HARDER * bad.strength)
    return next((one for one in trials if one.strength == strength and not one.gentler), None) or tried(strength, {})


def _soften(
    tried: Try, without: WithoutLayer, contract: Contract, bad: Candidate, costly: dict[str, float]
) -> Candidate | None:
    """Return a trial at ``bad``'s strength that holds because layers are gentler, or None; fills ``costly``."""
    gentler: dict[str, float] = {}
    for _ in range(SOFTENINGS):
        left = {name: error for name, error in bad.errors.items() if gentler.get(name, 1.0) > 0}
        suspects = sorted(left, key=lambda name: (-left[name], name))[:SUSPECTS]
        if not suspects or bad.loss is None:
            return None
        gain = {name: bad.loss - without(bad, name) for name in suspects}
        for name, cost in gain.items():
            costly[name] = max(costly.get(name, 0.0), cost)
        worst = max(suspects, key=lambda name: gain[name])
        gentler[worst] = gentler.get(worst, 1.0) / 2 if bad.strength and gentler.get(worst, 1.0) > 0.25 else 0.0
        bad = tried(bad.strength, dict(gentler))
        if contract.holds(bad):
            return bad
    return None
