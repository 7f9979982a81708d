"""A phone that is an agent on a port: the rack's batches on an emulated board, and what breaks around them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fakes.batches import kernels, network, stuck, timed
from fakes.emulated_phone import SOC, EmulatedBoard
from fakes.faults import FaultyWire
from fakes.known_kernels import SYMBOL
from tiny import EXPECTED

from xnncc.device.bench import Fault, Measurement
from xnncc.errors import DeviceError
from xnncc.rack.agent_phone import AgentPhone
from xnncc.rack.open_phone import open_phone
from xnncc.rack.phone import Batch, JobFailed


@pytest.fixture
def phone(board: EmulatedBoard) -> Iterator[AgentPhone]:
    phone = open_phone(board.spec, board.token)
    assert isinstance(phone, AgentPhone)
    yield phone
    phone.close()


def test_it_says_who_and_how_it_is(phone: AgentPhone, board: EmulatedBoard) -> None:
    who = phone.describe()
    assert (who.serial, who.soc, who.abi, who.key) == ("board-1", SOC, "arm64", f"{SOC}-arm64")
    assert who.core_khz == board.sysfs.core_khz
    how = phone.status()
    assert (how.celsius, how.battery_percent, how.governor, how.throttled) == (36.0, 90, "schedutil", False)
    board.sysfs.celsius(71.5)
    board.sysfs.speed(0.5)
    how = phone.status()
    assert (how.celsius, how.throttled, how.core_khz) == (71.5, True, (1_200_000, 900_000))


def test_candidates_are_measured_and_ranked(phone: AgentPhone, tmp_path: Path) -> None:
    batch, blobs = kernels(tmp_path, wrong=[2])
    results = list(phone.measure(batch, blobs))
    assert [r.candidate for r in results] == [0, 1, 2, 3]
    assert all(isinstance(r, Measurement) for r in results)
    assert [r.error > 0.01 for r in results if isinstance(r, Measurement)] == [False, False, True, False]
    fastest = [r.us for r in results if isinstance(r, Measurement)]
    assert fastest[0] == min(fastest)
    x = np.frombuffer(phone.outputs, "float32")
    assert x.size == 64 and -1 <= x.min() < x.max() < 3  # 2 x + 1 of numbers in [-1, 1)
    assert set(phone.facts) == {"before", "after"} and phone.facts["before"]["celsius"] == 36.0  # type: ignore[index]


def test_a_crash_and_a_hang_cost_one_candidate_each(phone: AgentPhone, tmp_path: Path) -> None:
    batch, blobs = kernels(tmp_path, crash=[1], hang=[3])
    results = {r.candidate: r for r in phone.measure(batch, blobs)}
    faults = {k: (r.kind, r.words) for k, r in results.items() if isinstance(r, Fault)}
    assert faults == {1: ("crash", "ended by SIGSEGV"), 3: ("hang", "no end after 1 s of processor time")}
    assert isinstance(results[0], Measurement) and isinstance(results[2], Measurement)


def test_a_whole_network_runs_and_is_timed(phone: AgentPhone, tmp_path: Path) -> None:
    batch, blobs = network(tmp_path)
    facts = phone.run(batch, blobs, tmp_path)
    found = np.frombuffer((tmp_path / "out.bin").read_bytes(), "float32")
    np.testing.assert_allclose(found, EXPECTED.ravel(), rtol=1e-6)
    assert "after" in facts
    facts = phone.run(timed(batch, 3), blobs, tmp_path)
    assert [line.split()[0] for line in str(facts["text"]).splitlines()] == ["run"] * 3


def test_a_broken_network_is_the_jobs_fault_and_the_phone_goes_on(phone: AgentPhone, tmp_path: Path) -> None:
    batch, blobs = network(tmp_path, defines=("CRASH",))
    with pytest.raises(JobFailed, match=r"SIGTRAP|SIGILL"):
        phone.run(batch, blobs, tmp_path)
    assert phone.status().celsius == 36.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"arguments": {}}, "does not name its graph_symbol"),
        ({"arguments": {"graph_symbol": SYMBOL, "run_seconds": -1}}, "run_seconds -1"),
        ({"threads": 1000}, "out of bounds"),
        ({"files": {}}, "the job lacks a file"),
    ],
)
def test_a_batch_that_no_agent_takes_is_the_jobs_fault(
    phone: AgentPhone, tmp_path: Path, change: dict[str, object], words: str
) -> None:
    batch, blobs = kernels(tmp_path)
    with pytest.raises(JobFailed, match=words):
        list(phone.measure(Batch(**{**vars(batch), **change}), blobs))  # type: ignore[arg-type]
    assert phone.status().celsius == 36.0


def test_a_network_batch_of_another_kind_or_without_words_is_told(phone: AgentPhone, tmp_path: Path) -> None:
    with pytest.raises(JobFailed, match="Known: run, time, trace"):
        phone.run(Batch("dance", "linux-arm64", {}, arguments={"graph_symbol": "x", "words": []}), {}, tmp_path)
    with pytest.raises(JobFailed, match="it has no words for the runner"):
        phone.run(Batch("run", "linux-arm64", {}, arguments={"graph_symbol": "x"}), {}, tmp_path)


def test_an_agent_that_was_started_anew_is_found_again(phone: AgentPhone, board: EmulatedBoard, tmp_path: Path) -> None:
    batch, blobs = kernels(tmp_path)
    assert len(list(phone.measure(batch, blobs))) == 4
    board.kill()
    with pytest.raises(DeviceError, match=rf"device '{board.spec}'"):
        phone.status()
    assert phone.recover("restart-agent") is False and phone.recover("reboot") is False
    with pytest.raises(DeviceError, match="Start the agent there"):
        phone.recover("reconnect")
    board.start()
    assert phone.recover("reconnect") is True
    assert len(list(phone.measure(batch, blobs))) == 4


def test_an_agent_that_is_killed_in_the_middle_is_the_devices_fault(
    phone: AgentPhone, board: EmulatedBoard, tmp_path: Path
) -> None:
    batch, blobs = stuck(tmp_path)
    results = phone.measure(batch, blobs)
    assert isinstance(next(results), Measurement)
    board.kill()
    with pytest.raises(DeviceError) as caught:
        list(results)
    assert not isinstance(caught.value, JobFailed)


def test_a_cut_wire_is_the_devices_fault_and_heals(board: EmulatedBoard, tmp_path: Path) -> None:
    wire = FaultyWire(board.port)
    phone = AgentPhone("127.0.0.1", wire.port, board.token, timeout=5.0)
    batch, blobs = kernels(tmp_path)
    assert phone.status().celsius == 36.0
    wire.cut()
    with pytest.raises(DeviceError):
        list(phone.measure(batch, blobs))
    wire.mend()
    assert len(list(phone.measure(batch, blobs))) == 4
    wire.drop_after = 2000
    with pytest.raises(DeviceError):
        for _ in range(20):
            list(phone.measure(batch, blobs))
    assert len(list(phone.measure(batch, blobs))) == 4
    wire.close(), phone.close()


def test_reconnecting_waits_for_the_session_of_a_client_that_was_cut_off(
    phone: AgentPhone, board: EmulatedBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = open_phone(board.spec, board.token)
    other.status()
    monkeypatch.setattr("xnncc.rack.agent_phone._CUT_SECONDS", 0.2)
    with pytest.raises(DeviceError, match="it is busy with another client"):
        phone.recover("reconnect")
    monkeypatch.setattr("xnncc.rack.agent_phone._CUT_SECONDS", 30.0)
    threading.Timer(0.3, other.close).start()
    assert phone.recover("reconnect") is True
    assert phone.status().celsius == 36.0


def test_a_hanging_agent_costs_the_timeout_and_is_found_again(board: EmulatedBoard) -> None:
    phone = AgentPhone("127.0.0.1", board.port, board.token, timeout=0.5)
    assert phone.status().celsius == 36.0
    board.kill(signal.SIGSTOP)
    with pytest.raises(DeviceError, match=rf"device '{board.spec}'"):
        phone.status()
    board.kill(signal.SIGCONT)
    assert phone.recover("reconnect") is True
    phone.close()


def test_a_wrong_token_is_told(board: EmulatedBoard) -> None:
    with pytest.raises(DeviceError, match="the token is wrong"):
        open_phone(board.spec, b"0" * 64).status()


def test_a_full_disk_is_the_devices_fault_until_it_has_room(tmp_path: Path) -> None:
    try:
        board = EmulatedBoard(tmp_path / "board", "board-2", disk_kib=256)
    except (LookupError, AssertionError) as error:
        pytest.skip(f"no disk of its own: {error}")
    phone = open_phone(board.spec, board.token)
    batch, blobs = kernels(tmp_path)
    board.fill()
    with pytest.raises(DeviceError, match=r"space|written|full") as caught:
        list(phone.measure(batch, blobs))
    assert not isinstance(caught.value, JobFailed)
    board.free()
    assert len(list(phone.measure(batch, blobs))) == 4
    phone.close(), board.close()
