"""Emulated phones in a broker: found by themselves, at work in parallel, lost and found again; no result is lost."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from fakes.batches import kernels
from fakes.emulated_phone import SOC

from xnncc.rack.broker import Broker
from xnncc.rack.cooling import CoolingLimits
from xnncc.rack.phone import Batch
from xnncc.rack.settings import Settings

KEY = f"{SOC}-arm64-v8a"
SECONDS = 120.0  # a busy machine needs a fraction of it


@pytest.fixture
def broker(tmp_path: Path, adb_server: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    """Return a broker that looks often, and takes an emulator's times as they come."""
    monkeypatch.setattr("xnncc.rack.adb_phone._BACK_SECONDS", 1.0)
    often = {"watch_s": 0.2, "probe_s": 0.5, "most_probe_s": 1.0, "cooling": CoolingLimits(poll_s=0.2)}
    broker = Broker(Settings(tmp_path / "state", reference_of=None, **often))  # type: ignore[arg-type]
    broker.start()
    yield broker
    broker.stop()


def wait_for(claim: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not claim():
        assert time.monotonic() < deadline, f"it never came true: {what}"
        time.sleep(0.05)


def submitted(broker: Broker, batch: Batch, blobs: dict[str, Path], count: int) -> list[str]:
    """Return the ids of ``count`` equal batches of a new job."""
    for path in blobs.values():
        broker.blobs.put(path.read_bytes())
    values = {"name": "test", "key": KEY, "priority": 0, "weight": 1.0, "max_seconds": None, "max_devices": None}
    job = broker.dispatch.create_job("me", "job", values)
    spec = json.loads(json.dumps(asdict(batch)))
    return [broker.dispatch.submit(job, f"batch {i}", spec)[0] for i in range(count)]


def batch_of(broker: Broker, batch: str) -> dict[str, Any]:
    row = broker.store.row("SELECT * FROM batches WHERE id=?", batch)
    assert row is not None
    return dict(row)


def results_of(broker: Broker, batch: str) -> list[dict[str, Any]]:
    return [
        json.loads(row["body"]) for row in broker.store.rows("SELECT body FROM results WHERE batch=? ORDER BY n", batch)
    ]


def are_done(broker: Broker, batches: list[str]) -> bool:
    states = [batch_of(broker, batch) for batch in batches]
    assert not any(s["state"] == "failed" for s in states), [s["error"] for s in states]
    return all(s["state"] == "done" for s in states)


def state_of(broker: Broker, serial: str) -> str:
    return broker.workers[serial].seat.state if serial in broker.workers else ""


def test_four_phones_share_the_work_and_adb_ones_are_found(
    broker: Broker, emulated_phones: Callable[..., list[Any]], tmp_path: Path
) -> None:
    for board in emulated_phones(boards=2, androids=2)[:2]:
        broker.add(board.spec, board.token)
    names = [f"phone-{i}" for i in range(1, 5)]
    wait_for(lambda: all(state_of(broker, name) == "free" for name in names), "all four are in the rack, and free")
    batch, blobs = kernels(tmp_path, "android-arm64", crash=[1], wrong=[2])
    ids = submitted(broker, batch, blobs, 12)
    wait_for(lambda: are_done(broker, ids), "all batches are done")
    assert len({batch_of(broker, i)["device"] for i in ids}) >= 2
    for one in ids:
        found = {r["candidate"]: r for r in results_of(broker, one)}
        assert sorted(found) == [0, 1, 2, 3] and found[1]["type"] == "fault"
        assert found[0]["error"] == 0 and found[2]["error"] > 0.01
        assert "outputs.bin" in json.loads(batch_of(broker, one)["files"])


def test_a_phone_that_is_unplugged_and_one_whose_agent_is_killed_lose_nothing(
    broker: Broker, emulated_phones: Callable[..., list[Any]], tmp_path: Path
) -> None:
    one, two = emulated_phones(boards=0, androids=2)
    wait_for(lambda: state_of(broker, "phone-1") == state_of(broker, "phone-2") == "free", "both are free")
    batch, blobs = kernels(tmp_path, "android-arm64")
    ids = submitted(broker, batch, blobs, 16)
    wait_for(lambda: state_of(broker, "phone-1") == "busy", "it works")
    one.daemon.unplug()
    two.kill()
    wait_for(lambda: state_of(broker, "phone-1") in ("offline", "quarantined"), "it is missed")
    one.daemon.plug()
    wait_for(lambda: are_done(broker, ids), "all batches are done")
    for i in ids:
        assert sorted(r["candidate"] for r in results_of(broker, i)) == [0, 1, 2, 3]
        assert all(r["type"] == "measurement" for r in results_of(broker, i))
    wait_for(lambda: state_of(broker, "phone-1") == "free", "it is back")


def test_a_hot_phone_cools_before_it_works(
    broker: Broker, emulated_phones: Callable[..., list[Any]], tmp_path: Path
) -> None:
    (board,) = emulated_phones(boards=1, androids=0)
    board.sysfs.celsius(80.0)
    broker.add(board.spec, board.token)
    wait_for(lambda: state_of(broker, "phone-1") == "cooling", "it cools")
    batch, blobs = kernels(tmp_path, "android-arm64")
    ids = submitted(broker, batch, blobs, 1)
    assert "80.0 °C" in broker.workers["phone-1"].seat.reason and not are_done(broker, ids)
    board.sysfs.celsius(30.0)
    wait_for(lambda: are_done(broker, ids), "it works when it is cool")
