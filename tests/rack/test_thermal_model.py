"""The thermal model behaves as a phone does, and the same way each time."""

from __future__ import annotations

from xnncc.rack.thermal_model import Chip, ThermalModel


def _load(model: ThermalModel, seconds: float) -> float:
    """Return the time of a kernel of 1 ms at the end of so long a load."""
    end, took = model.now_s + seconds, 0.0
    while model.now_s < end:
        took = model.run(1000.0)
    return took


def test_heats_throttles_and_recovers() -> None:
    model = ThermalModel(Chip(hiccups=0.0), seed=1)
    assert model.celsius == 25.0 and not model.throttled
    assert 950 < _load(model, 5) < 1050
    warm = model.celsius
    assert 50 < warm < 68
    assert _load(model, 120) > 1100 and model.throttled and model.khz < model.chip.khz[0]
    model.wait(240)
    assert model.celsius < 32 and not model.throttled
    assert 950 < _load(model, 1) < 1050


def test_the_clock_is_the_models_own() -> None:
    model = ThermalModel(seed=1)
    model.wait(3.5)
    took = model.run(2500.0)
    assert abs(model.now_s - 3.5 - took / 1e6) < 1e-9


def test_memory_does_not_wait_for_the_clock() -> None:
    model = ThermalModel(Chip(watts=9.0, hiccups=0.0, jitter=0.0), seed=1)
    _load(model, 120)
    assert model.throttled
    assert model.run(100.0, clock_share=0.0) < 100.1 < model.run(100.0, clock_share=1.0)


def test_the_same_seed_gives_the_same_numbers() -> None:
    first, second, other = (ThermalModel(seed=seed) for seed in (3, 3, 4))
    runs = [[model.run(500.0) for _ in range(2000)] for model in (first, second, other)]
    assert runs[0] == runs[1] != runs[2]
    assert first.celsius == second.celsius


def test_one_that_does_not_throttle_keeps_its_clock() -> None:
    model = ThermalModel(Chip(throttles=False, watts=9.0), seed=1)
    _load(model, 60)
    assert model.celsius > 80 and not model.throttled
