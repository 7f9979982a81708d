"""Twenty kernels of known speed on a phone that heats: with discipline their ranking is right, without it it is not."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest
from fakes.thermal_phone import REFERENCE, ThermalPhone

from xnncc.device.bench import Group, Measurement
from xnncc.rack.cooling import CoolingLimits, wait_until_cool
from xnncc.rack.phone import Batch, Phone, Status
from xnncc.rack.preflight import Limits
from xnncc.rack.steady import SteadyPhone
from xnncc.rack.thermal_model import Chip, ThermalModel

SEEDS = range(6)
KERNELS = 20
STEP = 1.025  # each kernel takes so many times as long as the one before it; a step of the clock is 1.12 and more
HOT = Chip(watts=7.0)
COOL = Chip(throttles=False)


def kendall_tau(truth: list[float], found: list[float]) -> float:
    """Return the share of pairs in the right order minus that of pairs in the wrong one (M. Kendall, 1938)."""
    signs = [(a - b) * (c - d) for (a, c), (b, d) in combinations(zip(truth, found, strict=True), 2)]
    return sum((sign > 0) - (sign < 0) for sign in signs) / len(signs)


def _phone(chip: Chip, seed: int) -> tuple[ThermalPhone, list[float]]:
    random = Random(seed)
    truth = [4000 * STEP**k for k in range(KERNELS)]
    random.shuffle(truth)
    model = ThermalModel(chip, seed)
    return ThermalPhone(model, {k: (us, random.uniform(0.9, 1.0)) for k, us in enumerate(truth)}), truth


def _steady(phone: ThermalPhone, celsius: float | None = None) -> SteadyPhone:
    """Return the phone with discipline; ``celsius``: what its thermometer says all the time."""
    model = phone.model

    def cool() -> None:
        # No sensor is asked whether it throttles: the reference kernel has to notice.
        limits, how = Limits(max_celsius=50.0, allow_throttled=True), CoolingLimits(deadline_s=1800)
        read = phone.status if celsius is None else lambda: Status(celsius=celsius)
        wait_until_cool(read, limits, how, clock=lambda: model.now_s, sleep=model.wait)

    return SteadyPhone(phone, REFERENCE, cool, clock=lambda: model.now_s, rest=model.wait)


def _measured(phone: Phone) -> tuple[list[float], list[str]]:
    """Measure all kernels in five batches of four groups; return their fastest runs (us), which records have, and the
    reasons why pieces were measured again."""
    found: dict[int, Measurement] = {}
    reasons: list[str] = []
    for first in range(0, KERNELS, 4):
        groups = tuple(Group((k,), 1, 4, 4) for k in range(first, first + 4))
        batch = Batch("measure", "host", {}, groups, rounds=300, arguments={"graph_symbol": "candidates"})
        found |= {r.candidate: r for r in phone.measure(batch, {}) if isinstance(r, Measurement)}
        reasons += phone.facts.get("reference", {}).get("reasons", [])  # type: ignore[attr-defined]
    return [found[k].us for k in range(KERNELS)], reasons


@pytest.mark.parametrize("seed", SEEDS)
def test_without_discipline_throttling_spoils_the_ranking(seed: int) -> None:
    phone, truth = _phone(HOT, seed)
    assert kendall_tau(truth, _measured(phone)[0]) < 0.95


@pytest.mark.parametrize("seed", SEEDS)
def test_with_discipline_the_ranking_is_right_and_throttling_was_noticed(seed: int) -> None:
    phone, truth = _phone(HOT, seed)
    found, reasons = _measured(_steady(phone))
    assert kendall_tau(truth, found) >= 0.95
    assert any("took" in words and "before and" in words for words in reasons), "by the reference kernel alone"
    # Not only the order: these are the times of full speed. The fastest of 300 is 2 to 3 % below the mean.
    assert all(0.95 < a / b < 1.01 for a, b in zip(found, truth, strict=True))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_phone_that_never_throttles_is_measured_once(seed: int) -> None:
    phone, truth = _phone(COOL, seed)
    found, reasons = _measured(_steady(phone))
    assert kendall_tau(truth, found) >= 0.95
    assert reasons == []


@pytest.mark.parametrize("seed", SEEDS)
def test_a_thermometer_that_lies_spoils_nothing(seed: int) -> None:
    phone, truth = _phone(HOT, seed)
    assert kendall_tau(truth, _measured(_steady(phone, celsius=31.0))[0]) >= 0.95
