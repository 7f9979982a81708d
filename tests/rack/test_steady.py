"""A phone with discipline: faults, dumps, bounds, and the reference kernel as a library of this machine."""

from __future__ import annotations

import pytest
from fakes.thermal_phone import REFERENCE, ThermalPhone

from xnncc.device.bench import Fault, Group, Measurement, open_bench
from xnncc.device.reference_kernel import reference_kernel
from xnncc.errors import DeviceError
from xnncc.rack.phone import Batch
from xnncc.rack.steady import SteadyPhone, reference_job
from xnncc.rack.thermal_model import Chip, ThermalModel
from xnncc.target import load_target

HANG = Fault(2, "hang", "no end after 5 s of processor time")


def _steady(chip: Chip, truth: dict[int, tuple[float, float] | Fault]) -> tuple[SteadyPhone, ThermalPhone]:
    phone = ThermalPhone(ThermalModel(chip, seed=1), truth)
    return SteadyPhone(phone, REFERENCE, lambda: phone.model.wait(60), clock=lambda: phone.model.now_s), phone


def _batch(*groups: tuple[int, ...], rounds: int = 8, **arguments: object) -> Batch:
    found = tuple(Group(candidates, 1, 4, 4) for candidates in groups)
    return Batch("measure", "host", {}, found, rounds, arguments={"graph_symbol": "candidates", **arguments})


def test_every_candidate_is_answered_once_with_all_its_rounds() -> None:
    steady, _ = _steady(Chip(hiccups=0.0, jitter=0.001), {k: (1000.0 + 50 * k, 1.0) for k in range(6)})
    results = list(steady.measure(_batch((0, 1), (2, 3), (4, 5), rounds=20), {}))
    assert [r.candidate for r in results] == [0, 1, 2, 3, 4, 5]
    assert all(isinstance(r, Measurement) and len(r.ns) >= 18 for r in results)


def test_a_hang_is_told_once_and_not_tried_again() -> None:
    truth: dict[int, tuple[float, float] | Fault] = {0: (1000.0, 1.0), 1: (1000.0, 1.0), 2: HANG, 3: (1000.0, 1.0)}
    steady, phone = _steady(Chip(watts=7.0), truth)
    results = list(steady.measure(_batch((0, 1, 2), (3,), rounds=8), {}))
    assert sorted(r.candidate for r in results) == [0, 1, 2, 3]
    assert [r for r in results if isinstance(r, Fault)] == [HANG]
    assert phone.measured.count(2) == 0 and phone.model.now_s < 400


def test_a_group_whose_first_candidate_fails_has_no_other_result() -> None:
    steady, _ = _steady(Chip(), {2: HANG, 3: (1000.0, 1.0), 4: (900.0, 1.0)})
    results = list(steady.measure(_batch((2, 3), (4,)), {}))
    assert Fault in map(type, results) and 4 in [r.candidate for r in results]


def test_outputs_are_those_of_each_group_once() -> None:
    steady, _ = _steady(Chip(watts=7.0), dict.fromkeys(range(5), (5000.0, 1.0)))
    list(steady.measure(_batch((0,), (1, 2), (3, 4), rounds=200, dumps=True), {}))
    assert steady.outputs == bytes([0, 1, 3])
    list(steady.measure(_batch((3,), rounds=0, dumps=True), {}))
    assert steady.outputs == bytes([3])


def test_facts_tell_the_factors() -> None:
    steady, _ = _steady(Chip(), {0: (1000.0, 1.0)})
    list(steady.measure(_batch((0,)), {}))
    facts = steady.facts["reference"]
    assert facts["baseline_us"] == steady.watch.baseline_us  # type: ignore[index]
    assert facts["reasons"] == [] and all(1.0 <= f < 1.02 for f in facts["factors"])  # type: ignore[index]
    assert set(steady.facts) == {"before", "after", "reference"}


def test_a_device_that_never_holds_its_speed_is_an_infrastructure_fault() -> None:
    chip = Chip(jitter=0.2)
    steady, _ = _steady(chip, {0: (1000.0, 1.0)})
    with pytest.raises(DeviceError, match="the device is not steady"):
        list(steady.measure(_batch((0,)), {}))


def test_a_device_slower_than_its_kept_baseline_does_not_count() -> None:
    steady, phone = _steady(Chip(), {0: (1000.0, 1.0)})
    steady.watch.baseline_us = 700.0
    with pytest.raises(DeviceError, match="slower than at full speed"):
        list(steady.measure(_batch((0,)), {}))
    assert not steady.benefit.is_useful, "waiting has not helped three times"
    assert phone.model.now_s < 600


def test_a_reference_kernel_that_fails_is_the_devices_fault() -> None:
    steady, phone = _steady(Chip(), {0: (1000.0, 1.0)})
    phone.measure = lambda batch, blobs: iter([Fault(0, "crash", "SIGILL")])  # type: ignore[method-assign]
    with pytest.raises(DeviceError, match="reference kernel"):
        list(steady.measure(_batch((0,)), {}))


def test_the_reference_kernel_runs_here() -> None:
    target = load_target("host")
    library, group = reference_kernel(target)
    (found,) = list(open_bench("host", target).measure(library, [group], 6))
    assert isinstance(found, Measurement) and found.error == 0.0 and 50 < found.us < 50_000
    job = reference_job(target)
    assert job.blobs[job.files["library"]] == library.library and job.graph_symbol == library.graph_symbol
