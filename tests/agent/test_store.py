"""The agent's store: what it is sent lies under the name of its content, the oldest goes, and a full disk is told."""

from __future__ import annotations

import os
import shutil
from hashlib import sha256
from pathlib import Path

import pytest
from agents import Agent

from xnncc.device.agent_frames import Trouble
from xnncc.device.agent_wire import AgentRefusal
from xnncc.errors import DeviceError

KIB = 1024


def blob(seed: int, kib: int) -> tuple[str, bytes]:
    """Return bytes that nothing else has, and their name."""
    data = seed.to_bytes(8, "little") * (kib * KIB // 8)
    return sha256(data).hexdigest(), data


def test_it_keeps_what_it_was_sent(tmp_path: Path) -> None:
    first, empty = blob(1, 700), (sha256(b"").hexdigest(), b"")
    agent = Agent(tmp_path)
    try:
        with agent.connect() as client:
            assert not client.has(first[0])
            for sha, data in (first, empty, first):
                client.put(sha, data)
                assert client.has(sha)
        files = {p.name.partition(".")[0]: p for p in (agent.data / "blobs").iterdir()}
        assert set(files) == {first[0], empty[0]}
        assert files[first[0]].read_bytes() == first[1]
        with agent.connect() as client:
            assert client.has(first[0]) and client.has(empty[0])  # another session finds it, too
    finally:
        agent.stop()


def test_what_was_not_used_for_longest_goes(tmp_path: Path) -> None:
    blobs = [blob(seed, 400) for seed in range(4)]
    agent = Agent(tmp_path, "host", "--quota-mib", "1")
    try:
        with agent.connect() as client:
            for sha, data in blobs[:2]:
                client.put(sha, data)
            assert client.has(blobs[0][0])  # used: now the second is the oldest
            client.put(*blobs[2])
            assert [client.has(sha) for sha, _ in blobs] == [True, False, True, False]
        with agent.connect() as client:  # the order outlives the session: the first was used before the third
            client.put(*blobs[3])
            assert [client.has(sha) for sha, _ in blobs] == [False, False, True, True]
    finally:
        agent.stop()


def test_what_can_never_fit_is_told(tmp_path: Path) -> None:
    agent = Agent(tmp_path, "host", "--quota-mib", "1")
    try:
        with agent.connect() as client:
            with pytest.raises(
                DeviceError, match=r"larger than the agent's whole store .*larger --quota-mib"
            ) as refusal:
                client.put(*blob(1, 1100))
            assert isinstance(refusal.value, AgentRefusal) and refusal.value.kind == Trouble.TOO_LARGE
            client.put(*blob(2, 900))  # the session goes on
    finally:
        agent.stop()


@pytest.mark.parametrize("name", ["host", "linux-arm64"])
def test_a_full_disk_is_the_devices_fault_and_no_candidates(name: str, tmp_path: Path) -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("a disk of its own needs root and unshare")
    agent = Agent(tmp_path, name, disk_kib=512)
    try:
        with agent.connect() as client:
            client.put(*blob(1, 300))
            with pytest.raises(
                DeviceError, match=r"the device's disk is full. Free some space on the device"
            ) as refusal:
                client.put(*blob(2, 300))
            assert isinstance(refusal.value, AgentRefusal) and refusal.value.kind == Trouble.FULL
            assert client.has(blob(1, 300)[0]) and not client.has(blob(2, 300)[0])
            client.put(*blob(3, 100))
    finally:
        agent.stop()


def test_a_file_that_changed_on_the_disk_counts_as_lost(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    files = {"library": b"library", "package": b"package", "inputs": b"inputs"}
    try:
        with agent.connect() as client:
            names = client.put_all(files)
        (path,) = (agent.data / "blobs").glob(f"{names['package']}.*")
        path.chmod(0o600)
        path.write_bytes(b"Package")
        with agent.connect() as client:
            with pytest.raises(AgentRefusal, match=r"is not in the store; send it again") as refusal:
                client.run(names, "g", "0@1:1")
            assert refusal.value.kind == Trouble.MISSING
            assert not client.has(names["package"]) and client.has(names["library"])
    finally:
        agent.stop()


def test_strange_files_and_halves_are_cleared_away(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    try:
        with agent.connect() as client:
            client.put(*blob(1, 1))
        blobs = agent.data / "blobs"
        for name in ("upload", "x", "f" * 81, "0" * 64 + ".zzzzzzzzzzzzzzzz"):
            (blobs / name).write_bytes(b"?")
        with agent.connect() as client:
            assert client.has(blob(1, 1)[0])
        assert [p.name.partition(".")[0] for p in blobs.iterdir()] == [blob(1, 1)[0]]
    finally:
        agent.stop()


def test_a_fresh_agent_clears_the_jobs_of_a_dead_one(tmp_path: Path) -> None:
    inner = tmp_path / "data" / "job-12345" / "a" / "b"
    inner.mkdir(parents=True)
    (inner / "c").write_bytes(b"left behind")
    (tmp_path / "data" / "notes").write_bytes(b"not ours")
    agent = Agent(tmp_path)
    try:
        assert agent.jobs() == [] and (tmp_path / "data" / "notes").exists()
    finally:
        agent.stop()


def test_two_agents_in_one_folder_leave_each_other_alone(tmp_path: Path) -> None:
    first = Agent(tmp_path)
    try:
        with first.connect():
            (first.data / "job-1").mkdir()
            second = Agent(tmp_path)
            try:
                assert first.jobs() == ["job-1"]
                with pytest.raises(DeviceError, match=r"it is busy with another client"):
                    second.connect()
            finally:
                second.stop()
    finally:
        first.stop()
