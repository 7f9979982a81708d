"""The bench of a rack, on kernels whose times and faults are known beforehand; agents are real, under an emulator."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from conftest import emulated
from fakes.emulated_phone import EmulatedBoard
from fakes.known_kernels import known_kernels
from fakes.known_phone import KEY, KnownTimes
from fakes.tuned_rack import Rack

from xnncc.device.agent_frames import MAGIC
from xnncc.device.bench import Dump, Fault, Group, Library, Measurement, open_bench
from xnncc.device.bench_rack import RackBench
from xnncc.device.rack_devices import read_wish
from xnncc.errors import BadInput, DeviceError
from xnncc.target import load_target

COUNT = 8
Work = tuple[Library, list[Group]]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Work:
    """Four groups of two candidates, of which number 5 crashes."""
    library, (group,) = known_kernels(load_target("host"), tmp_path_factory.mktemp("known"), COUNT, crash=[5])
    return library, _pairs(group)


def _pairs(group: Group) -> list[Group]:
    return [Group((0, one), group.floats, group.out_offset, group.out_bytes) for one in range(1, COUNT)]


def summary(results: Any) -> list[tuple[int, str]]:
    """Return (candidate, what it did), sorted: phones finish in any order."""
    return sorted(
        (r.candidate, r.kind if isinstance(r, Fault) else "right" if r.error == 0 else "wrong") for r in results
    )


def test_several_phones_share_the_work(tmp_path: Path, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    rack = Rack(tmp_path, "p1", "p2")
    library, groups = work
    with rack.serving(monkeypatch) as client, closing(open_bench(f"rack:{KEY}", load_target("host"))) as bench:
        found = list(bench.measure(library, groups, 3))
        assert summary(found) == sorted([(0, "right")] * 7 + [(k, "crash" if k == 5 else "right") for k in range(1, 8)])
        assert all(phone.measured for phone in rack.phones.values())
        assert {r.ns for r in found if isinstance(r, Measurement)} == {(2000,) * 3, (1001,) * 3}
        assert bench.description == "known1"
        bench.show("measuring", 3, 9, 123.4, 60.0)
        (job,) = client.jobs()
        assert job["progress"]["best"] == 123.4 and job["progress"]["done"] == 3
        dump = Dump()
        assert len(list(bench.measure(library, groups[:2], 0, 1, dump))) == 4
        assert len(dump.data) == 2 * groups[0].out_bytes


def test_a_group_that_comes_again_stays_on_its_phone(
    tmp_path: Path, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Rack(tmp_path, "p1", "p2").serving(monkeypatch):
        bench = RackBench(load_target("host"), KEY)
        shares = bench._shares(work[1][:3] * 3)
        bench.close()
    assert sorted(len(share) for share in shares) == [3, 3, 3]
    assert all(len(set(share)) == 1 for share in shares)


def test_higher_priority_goes_first(tmp_path: Path, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    rack = Rack(tmp_path, "p1")
    library, groups = work
    order: list[str] = []
    begun, both_wait = threading.Event(), threading.Event()

    def hold(result: object) -> None:
        begun.set()
        assert both_wait.wait(60)

    rack.phones["p1"].before = hold

    def measure(name: str, wish: str) -> None:
        with closing(RackBench(load_target("host"), wish)) as bench:
            for _ in bench.measure(library, groups[:2], 1):
                order.append(name)

    with rack.serving(monkeypatch) as client:
        low = threading.Thread(target=measure, args=("low", KEY))
        low.start()
        assert begun.wait(60)  # the first of its two batches is on the phone
        high = threading.Thread(target=measure, args=("high", f"{KEY},priority=5"))
        high.start()
        while sum(job["batches"]["queued"] for job in client.jobs()) < 3:
            threading.Event().wait(0.02)
        both_wait.set()
        low.join()
        high.join()
    assert order == ["low"] * 2 + ["high"] * 4 + ["low"] * 2


@pytest.mark.parametrize("wish", ["", "k,speed=3", "k,priority=11", "k,weight=0", "k,priority=high"])
def test_refuses_what_is_no_wish(wish: str) -> None:
    with pytest.raises(BadInput, match="priority=5"):
        read_wish(wish)


class OtherVersion:
    """What listens where an agent should, and speaks version 999 of its protocol."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            with peer:
                peer.sendall(MAGIC + struct.pack("<II", 999, 1) + bytes(32))
                peer.recv(4096)

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()


@pytest.fixture(scope="module")
def arm_work(tmp_path_factory: pytest.TempPathFactory) -> Work:
    library, (group,) = known_kernels(load_target("linux-arm64"), tmp_path_factory.mktemp("known"), COUNT, crash=[5])
    return library, _pairs(group)


@pytest.fixture
def boards(tmp_path: Path) -> Iterator[Callable[..., EmulatedBoard]]:
    made: list[EmulatedBoard] = []

    def board(name: str, disk_kib: int = 0) -> EmulatedBoard:
        made.append(emulated(EmulatedBoard, tmp_path / name, name, disk_kib=disk_kib))
        return made[-1]

    yield board
    for one in made:
        one.close()


def measured_on(
    rack: Rack, boards: list[EmulatedBoard], work: Work, patch: pytest.MonkeyPatch, act: Callable[[int], None]
) -> tuple[list[Any], list[dict[str, Any]]]:
    """Return the results of ``work`` on ``boards`` and what became of them; ``act(n)`` before the n-th result."""
    rack.wrap = KnownTimes
    found: list[Any] = []
    with rack.serving(patch) as client:
        for board in boards:
            client.add_device(board.spec, board.token.decode(), is_steady=False)
        key = client.devices()[0]["key"]
        with closing(open_bench(f"rack:{key}", load_target("linux-arm64"))) as bench:
            for result in bench.measure(*work, 1):
                found.append(result)
                act(len(found))
        return found, client.devices()


EXPECTED = sorted([(0, "right")] * 7 + [(k, "crash" if k == 5 else "right") for k in range(1, 8)])


def test_agent_killed(
    tmp_path: Path, arm_work: Work, boards: Callable[..., EmulatedBoard], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = boards("b1"), boards("b2")

    def kill(count: int) -> None:
        if count == 2:
            first.kill()
        if count == 8:
            first.start()

    found, _ = measured_on(Rack(tmp_path), [first, second], arm_work, monkeypatch, kill)
    assert summary(found) == EXPECTED


def test_disk_full_on_the_phone(
    tmp_path: Path, arm_work: Work, boards: Callable[..., EmulatedBoard], monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        full, good = boards("b1", disk_kib=2048), boards("b2")
    except AssertionError as error:
        pytest.skip(f"no disk of its own can be mounted here: {error}")
    full.fill()
    found, devices = measured_on(Rack(tmp_path), [full, good], arm_work, monkeypatch, lambda count: None)
    assert summary(found) == EXPECTED
    assert any(device["serial"].endswith("b1") and device["faults"] for device in devices)


def test_version_mismatch(tmp_path: Path, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """A phone that was updated meanwhile is put aside with a reason; the others do its work."""
    rack = Rack(tmp_path, "p1", "p2")
    library, groups = work
    with closing(OtherVersion()) as other, rack.serving(monkeypatch) as client:
        with pytest.raises(DeviceError, match="speaks version 999 of the protocol and this xnncc speaks"):
            client.add_device(f"tcp:127.0.0.1:{other.port}", "0" * 64)

        def update() -> None:
            raise DeviceError("agent", "its agent speaks version 999 of the protocol and this xnncc speaks 1")

        rack.phones["p1"].need = update  # type: ignore[method-assign]
        with closing(open_bench(f"rack:{KEY}", load_target("host"))) as bench:
            assert summary(bench.measure(library, groups, 3)) == EXPECTED
        states = {device["serial"]: (device["state"], device["reason"]) for device in client.devices()}
    assert states["p1"][0] in ("offline", "quarantined") and "version 999" in states["p1"][1]
