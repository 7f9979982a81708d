"""The search on a made-up network whose layers' costs are known."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from xnncc.compress.search import Candidate, Contract, Outcome, search

LAYERS = {"stem": 8.0, "body": 1.0, "head": 1.0}  # loss of each layer at strength 1


class _Network:
    """Loss sum(cost * strength^2), 1000 bytes less 250 for each layer's strength; ``floor``: loss at strength 0."""

    def __init__(self, floor: float = 0.0) -> None:
        self.floor, self.calls = floor, 0

    def _strength(self, name: str, candidate: Candidate) -> float:
        return candidate.strength * candidate.gentler.get(name, 1.0)

    def _cost(self, name: str, strength: float, gentler: Mapping[str, float]) -> float:
        factor = gentler.get(name, 1.0)
        return LAYERS[name] * (strength * factor) ** 2 + (self.floor if name == "stem" and factor else 0.0)

    def attempt(self, strength: float, gentler: Mapping[str, float]) -> Candidate:
        self.calls += 1
        errors = {name: strength * gentler.get(name, 1.0) for name in LAYERS}
        size = 1000 - round(sum(250 * error for error in errors.values()))
        return Candidate(strength, gentler, size, sum(self._cost(n, strength, gentler) for n in LAYERS), errors)

    def without(self, candidate: Candidate, name: str) -> float:
        return (candidate.loss or 0.0) - self._cost(name, candidate.strength, candidate.gentler)

    def search(self, **contract: float) -> Outcome:
        return search(self.attempt, self.without, Contract(**contract))  # type: ignore[arg-type]


def test_a_loss_that_is_always_met_takes_the_hardest() -> None:
    outcome = _Network().search(max_loss=10.0)
    assert outcome.holds and outcome.best.strength == 1.0 and len(outcome.trials) == 1


def test_softening_the_costly_layer_beats_bisection() -> None:
    outcome = _Network().search(max_loss=0.4)  # 10 s^2 = 0.4 at s = 0.2: 850 bytes
    assert outcome.holds
    assert outcome.best.loss is not None and outcome.best.loss <= 0.4
    assert outcome.best.file_bytes < 854  # what bisection alone reaches
    assert outcome.best.gentler == {"stem": 0.5}
    assert next(iter(outcome.costly)) == "stem"


def test_softening_alone_saves_a_contract_that_strength_0_breaks() -> None:
    outcome = _Network(floor=0.5).search(max_loss=0.1)
    assert outcome.holds
    assert outcome.best.gentler == {"stem": 0.0}
    assert outcome.costly["stem"] == pytest.approx(0.5)


def test_a_contract_that_cannot_be_met_gives_the_nearest() -> None:
    outcome = _Network().search(max_loss=-1.0)
    assert not outcome.holds
    assert outcome.best.loss == min(trial.loss for trial in outcome.trials if trial.loss is not None)


def test_a_size_takes_the_gentlest_that_fits() -> None:
    outcome = _Network().search(target_bytes=700)  # 1000 - 750 s = 700 at s = 0.4
    assert outcome.holds
    assert 0.4 <= outcome.best.strength <= 0.4 + 1 / 128
    assert _Network().search(target_bytes=5000).best.strength == 0.0


def test_a_size_that_cannot_be_met_gives_the_smallest() -> None:
    outcome = _Network().search(target_bytes=100)
    assert not outcome.holds
    assert outcome.best.file_bytes == 250


def test_the_same_search_makes_the_same_trials() -> None:
    assert _Network().search(max_loss=0.4) == _Network().search(max_loss=0.4)
