"""Jobs, batches and leases without threads: an hour of simulated time, restarts, limits, nothing lost or done twice."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from fakes.served_broker import JOB, KEY

from xnncc.device.bench import Measurement
from xnncc.errors import BadInput, DeviceError
from xnncc.rack.blobs import Blobs
from xnncc.rack.dispatch import Dispatch, Seat
from xnncc.rack.events import EventHub
from xnncc.rack.jobs import Job, Jobs, Work
from xnncc.rack.leases import Leases
from xnncc.rack.phone import Description
from xnncc.rack.store import Store


class Clock:
    """Time that only the test advances."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Rack:
    """A dispatcher with free seats on a store that can be opened again."""

    def __init__(self, folder: Path, clock: Clock, seats: int = 2) -> None:
        self.clock = clock
        self.store = Store(folder)
        self.blobs = Blobs(self.store, folder / "blobs", 1 << 20)
        self.library = self.blobs.put(b"library")
        jobs = Jobs(self.store, self.blobs, keep_batches=100_000)
        self.dispatch = Dispatch(jobs, Leases(self.store, clock), EventHub(), clock)
        self.seats = []
        for number in range(seats):
            seat = Seat(Description(f"p{number}", "sim9000", "arm64-v8a", "test"), state="free")
            self.dispatch.seat(seat)
            self.seats.append(seat)

    def job(self, token: str, **more: Any) -> Job:
        """Return a job."""
        return self.dispatch.create_job("me", token, {**JOB, **more})

    def submit(self, job: Job, token: str, lease: str = "") -> str:
        """Submit a batch of two groups."""
        groups = [{"candidates": [n, n + 1], "floats": 1, "out_offset": 0, "out_bytes": 4} for n in (0, 2)]
        spec = {
            "kind": "measure", "target": "t", "files": {"library": self.library}, "groups": groups, "rounds": 1,
            "threads": 1, "core_mask": 0, "arguments": {},
        }  # fmt: skip
        return self.dispatch.submit(job, token, spec, lease)[0]

    def state(self, batch: str) -> str:
        """Return the state of a batch."""
        row = self.store.row("SELECT state FROM batches WHERE id=?", batch)
        assert row is not None
        return str(row["state"])


@pytest.fixture
def rack(tmp_path: Path) -> Rack:
    return Rack(tmp_path, Clock())


def take(rack: Rack, seat: int = 0) -> Work:
    work = rack.dispatch.take(rack.seats[seat])
    assert work is not None
    return work


def test_three_jobs_share_an_hour_by_their_weights(tmp_path: Path) -> None:
    rack = Rack(tmp_path, Clock(), seats=4)
    rack.store.run("PRAGMA synchronous=OFF")
    jobs = {weight_of: rack.job(weight_of, weight=float(weight_of[0])) for weight_of in ("1a", "1b", "2c")}
    for number in range(500):
        for job in jobs.values():
            rack.submit(job, str(number))
    random, running = Random(7), []
    end = rack.clock.now + 3600
    while rack.clock.now < end:
        for seat in rack.seats:
            if not seat.work:
                work = rack.dispatch.take(seat)
                assert work is not None
                running.append((rack.clock.now + random.uniform(5, 60), work, seat))
        running.sort(key=lambda one: one[0])
        at, work, seat = running.pop(0)
        rack.clock.now = at
        rack.dispatch.finish(work, seat, {}, {})
    used = {name: job.used_s for name, job in jobs.items()}
    total = sum(used.values())
    assert total > 4 * 3600 * 0.95
    for name, share in {"1a": 0.25, "1b": 0.25, "2c": 0.5}.items():
        assert abs(used[name] / total - share) <= 0.05 * share, used


def test_the_same_token_is_the_same_job_and_batch(rack: Rack) -> None:
    job = rack.job("t")
    assert rack.job("t") is job
    assert rack.submit(job, "b") == rack.submit(job, "b")
    assert job.waiting == 1
    assert rack.submit(rack.job("other"), "b") != rack.submit(job, "b")


def test_a_wrong_key_does_not_wait_for_ever(rack: Rack) -> None:
    with pytest.raises(BadInput, match="did you mean 'sim9000-arm64-v8a'"):
        rack.job("t", key="sim9000-arm64-v8")
    with pytest.raises(BadInput, match="Known: p0, p1"):
        rack.dispatch.lease("me", "t", "nothing", 10)


def test_a_priority_goes_first(rack: Rack) -> None:
    low, high = rack.job("low"), rack.job("high", priority=5)
    first = rack.submit(low, "1")
    second = rack.submit(high, "1")
    assert take(rack).id == second
    assert take(rack, 1).id == first


def test_no_more_devices_than_a_job_may_have(rack: Rack) -> None:
    job = rack.job("t", max_devices=1)
    rack.submit(job, "1")
    rack.submit(job, "2")
    work = take(rack)
    assert rack.dispatch.take(rack.seats[1]) is None
    rack.dispatch.finish(work, rack.seats[0], {}, {})
    assert take(rack, 1).id != work.id


def test_no_more_seconds_than_a_job_may_have(rack: Rack) -> None:
    job = rack.job("t", max_seconds=10.0)
    rack.submit(job, "1")
    left = rack.submit(job, "2")
    work = take(rack)
    assert rack.dispatch.stop_reason(work, rack.seats[0]) is None
    rack.clock.now += 11
    kind, error = rack.dispatch.stop_reason(work, rack.seats[0]) or ("", None)
    assert kind == "limit" and "10 s of device time" in str(error)
    rack.dispatch.fail(work, rack.seats[0], kind, error)  # type: ignore[arg-type]
    assert rack.dispatch.take(rack.seats[0]) is None
    assert rack.state(left) == "failed"


def test_a_restart_loses_nothing_and_measures_nothing_twice(tmp_path: Path) -> None:
    rack = Rack(tmp_path, Clock())
    job = rack.job("t")
    batch, later = rack.submit(job, "1"), rack.submit(job, "2")
    work = take(rack)
    rack.dispatch.jobs.keep(work, "p0", [Measurement(0, (5,), 0.0), Measurement(1, (6,), 0.0)], 1)
    again = Rack(tmp_path, Clock())  # the first one just ends
    assert again.state(batch) == again.state(later) == "queued"
    assert again.dispatch.jobs.all[job.id].waiting == 2
    work = take(again)
    assert (work.id, work.groups_done) == (batch, 1)
    rows = again.store.rows("SELECT n FROM results WHERE batch=?", batch)
    assert [row["n"] for row in rows] == [1, 2]


def test_a_fault_goes_elsewhere_and_ends_after_some_attempts(rack: Rack) -> None:
    job = rack.job("t")
    batch = rack.submit(job, "1")
    fault = DeviceError("device 'p0'", "it is gone")
    work = take(rack)
    rack.dispatch.give_back(work, rack.seats[0], fault)
    assert rack.dispatch.take(rack.seats[0]) is None, "another device is up: it goes there"
    work = take(rack, 1)
    rack.dispatch.give_back(work, rack.seats[1], fault)
    rack.seats[0].state = "offline"
    work = take(rack, 1)  # no other device is up
    rack.dispatch.give_back(work, rack.seats[1], fault)
    assert rack.state(batch) == "failed"
    row = rack.store.row("SELECT error FROM batches WHERE id=?", batch)
    assert row is not None and '"kind": "infrastructure"' in row["error"] and "it is gone" in row["error"]


def test_cancelling_fails_what_waits_and_stops_what_runs(rack: Rack) -> None:
    job = rack.job("t")
    rack.submit(job, "1")
    waits = rack.submit(job, "2")
    work = take(rack)
    rack.dispatch.cancel(job)
    assert rack.state(waits) == "failed"
    assert (rack.dispatch.stop_reason(work, rack.seats[0]) or ("",))[0] == "cancelled"
    rack.dispatch.give_back(work, rack.seats[0])
    assert rack.state(work.id) == "failed"
    with pytest.raises(BadInput, match="cancelled"):
        rack.submit(job, "3")


def test_a_lease_holds_a_device_and_only_its_batches_run_there(rack: Rack) -> None:
    job = rack.job("t")
    lease = rack.dispatch.lease("me", "l", "p0", 60)
    assert lease.device == "p0"
    assert rack.dispatch.lease("me", "l", "p0", 60) is lease
    rack.submit(job, "1")
    assert rack.dispatch.take(rack.seats[0]) is None
    mine = rack.submit(job, "2", lease.id)
    assert take(rack).id == mine
    with pytest.raises(BadInput, match="has ended, or is not yours"):
        rack.submit(job, "3", "another")


def test_a_lease_ends_with_its_time_and_a_waiting_one_gets_the_device(rack: Rack) -> None:
    first = rack.dispatch.lease("me", "1", "p0", 60)
    second = rack.dispatch.lease("you", "2", "p0", 60)
    job = rack.job("t")
    orphan = rack.submit(job, "1", first.id)
    assert not second.device
    rack.clock.now += 50
    rack.dispatch.leases.renew(second)
    rack.clock.now += 11
    assert rack.dispatch.expire() == [first]
    assert rack.state(orphan) == "failed"
    assert rack.dispatch.take(rack.seats[0]) is None
    assert second.device == "p0"


def test_a_waiting_lease_that_nobody_asks_for_is_dropped(rack: Rack) -> None:
    rack.dispatch.lease("me", "1", "p0", 3600)
    waiting = rack.dispatch.lease("you", "2", "p0", 60)
    rack.clock.now += 61
    assert rack.dispatch.expire() == [waiting]


def test_a_held_lease_outlives_a_restart(tmp_path: Path) -> None:
    lease = Rack(tmp_path, Clock()).dispatch.lease("me", "1", "p0", 60)
    again = Rack(tmp_path, Clock())
    assert again.seats[0].lease == lease.id
    assert again.dispatch.leases.all[lease.id].deadline == again.clock.now + 60


def test_leases_and_jobs_share_fairly(rack: Rack) -> None:
    rack.dispatch.unseat("p1")
    job = rack.job("t")
    for number in range(100):
        rack.submit(job, str(number))
    held = busy = 0.0
    lease = None
    for number in range(100):
        if lease is None:
            lease = rack.dispatch.lease("me", str(number), KEY, 10)
        rack.dispatch.leases.renew(lease)
        work = None if lease.device else rack.dispatch.take(rack.seats[0])
        rack.clock.now += 10
        if work is not None:
            busy += 10
            rack.dispatch.finish(work, rack.seats[0], {}, {})
        elif lease.device:
            held += 10
            rack.dispatch.release(lease)
            lease = None
    assert abs(held - busy) <= 60, (held, busy)


def test_old_batches_and_their_results_are_forgotten(tmp_path: Path) -> None:
    rack = Rack(tmp_path, Clock())
    rack.dispatch.jobs.keep_batches = 10
    job = rack.job("t")
    for number in range(128):
        rack.submit(job, str(number))
        work = take(rack)
        rack.dispatch.jobs.keep(work, "p0", [Measurement(0, (5,), 0.0)], 2)
        rack.dispatch.finish(work, rack.seats[0], {}, {})
    assert rack.store.rows("SELECT COUNT(*) AS c FROM batches")[0]["c"] == 10
    assert rack.store.rows("SELECT COUNT(*) AS c FROM results")[0]["c"] == 10
    assert rack.store.rows("SELECT COUNT(*) AS c FROM blob_uses")[0]["c"] == 0
