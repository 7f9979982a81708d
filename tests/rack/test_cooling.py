"""Waiting until it is cool: hysteresis, the deadline, a device that cools no further, and whether waiting helps."""

from __future__ import annotations

import pytest

from xnncc.errors import DeviceError
from xnncc.rack.cooling import CoolingBenefit, CoolingLimits, wait_until_cool
from xnncc.rack.phone import Status
from xnncc.rack.preflight import Limits
from xnncc.rack.thermal_model import Chip, ThermalModel

LIMITS = Limits(max_celsius=45.0)


def _hot(**chip: float) -> ThermalModel:
    model = ThermalModel(Chip(**chip), seed=1)  # type: ignore[arg-type]
    while model.now_s < 60:
        model.run(5000.0)
    return model


def _wait(model: ThermalModel, **how: float) -> tuple[float, float]:
    """Return the seconds that it took, and the temperature then."""
    read = lambda: Status(celsius=model.celsius)  # noqa: E731
    cooled = wait_until_cool(read, LIMITS, CoolingLimits(**how), clock=lambda: model.now_s, sleep=model.wait)
    assert cooled.status.celsius is not None
    return cooled.seconds, cooled.status.celsius


def test_waits_until_it_is_below_the_limit_by_the_hysteresis() -> None:
    model = _hot()
    assert model.celsius > 60
    seconds, celsius = _wait(model)
    assert 5 < seconds < 120 and celsius <= 40.0


def test_does_not_wait_just_below_the_limit() -> None:
    model = _hot()
    model.wait(1)
    while model.celsius > 44.9:
        model.wait(0.1)
    before = model.now_s
    assert _wait(model)[0] == 0.0 and model.now_s == before


def test_gives_up_at_the_deadline() -> None:
    model = _hot(body_seconds=3000.0, chip_kelvin_per_watt=2.0, body_kelvin_per_watt=100.0, watts=20.0)
    with pytest.raises(DeviceError, match=r"may start below 40 °C, after 30 s\. Move it to a cooler place"):
        _wait(model, deadline_s=30)


def test_gives_up_when_it_cools_no_further() -> None:
    model = _hot(room_celsius=48.0)
    before = model.now_s
    with pytest.raises(DeviceError, match="cools no further"):
        _wait(model, deadline_s=6000)
    assert model.now_s - before < 1200


def test_takes_what_it_gets_between_the_two_limits() -> None:
    model = _hot(room_celsius=40.0)
    _, celsius = _wait(model, deadline_s=6000)
    assert 40 < celsius < 45


def test_a_device_without_sensors_does_not_wait() -> None:
    assert not wait_until_cool(lambda: Status(), LIMITS, clock=lambda: 0.0).had_to_wait


def test_the_clock_may_count_more_than_the_sensor() -> None:
    model = _hot()
    cooled = wait_until_cool(
        lambda: Status(throttled=model.throttled), Limits(allow_throttled=True), CoolingLimits(poll_s=1.0),
        is_cool=lambda status: not status.throttled, clock=lambda: model.now_s, sleep=model.wait,
    )  # fmt: skip
    assert cooled.had_to_wait and not model.throttled


def test_waiting_in_vain_is_given_up_and_tried_again_later() -> None:
    benefit = CoolingBenefit()
    benefit.note(1.3, 1.299)
    benefit.note(1.3, 1.0)
    assert benefit.is_useful
    for _ in range(3):
        benefit.note(1.3, 1.3)
    assert not benefit.is_useful
    for _ in range(CoolingBenefit.AGAIN):
        assert not benefit.is_useful
        benefit.skip()
    assert benefit.is_useful
    benefit.note(1.3, 1.0)
    assert benefit.is_useful
