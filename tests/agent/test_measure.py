"""Candidates on real agents: right, wrong, crashing and endless ones; each costs itself alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from agents import TOKEN, Agent
from fakes.known_kernels import known_kernels

from xnncc.device.agent_frames import Limits
from xnncc.device.bench import Dump, Fault, Measurement, filled, open_bench
from xnncc.errors import DeviceError
from xnncc.target import load_target

QUICK = Limits(line_cpu_ms=500)


@pytest.fixture(scope="module", params=["host", "linux-arm64", "android-arm64"])
def agent(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    agent = Agent(tmp_path_factory.mktemp(request.param), request.param)
    yield agent
    agent.stop()


def test_candidates_are_timed_and_compared(agent: Agent, tmp_path: Path) -> None:
    library, groups = known_kernels(agent.target, tmp_path, 3, wrong=[2])
    dump = Dump()
    with agent.connect() as client:
        files = client.put_all({"library": library.library.read_bytes(), "package": library.package.read_bytes()})
        results = list(client.measure(files, library.graph_symbol, groups, 4, dump=dump))
        assert set(client.before) == set(client.after) == set(client.status())
    assert [type(r) for r in results] == [Measurement] * 3
    assert [r.candidate for r in results] == [0, 1, 2]
    assert all(isinstance(r, Measurement) and 3 <= len(r.ns) <= 4 and min(r.ns) > 0 for r in results)
    errors = [r.error for r in results if isinstance(r, Measurement)]
    wanted = 2 * filled(64) + 1
    # Half of one too much, relative to the largest: in 1e-9, as float32 has it.
    assert errors == [0.0, 0.0, pytest.approx(0.5 / np.abs(wanted).max(), rel=1e-5)]
    np.testing.assert_array_equal(np.frombuffer(dump.data, "float32"), wanted)
    assert agent.jobs() == []


def test_a_crash_and_a_hang_cost_one_candidate_each(agent: Agent, tmp_path: Path) -> None:
    library, groups = known_kernels(agent.target, tmp_path, 5, crash=[1], hang=[3])
    with agent.connect() as client:
        files = client.put_all({"library": library.library.read_bytes(), "package": library.package.read_bytes()})
        results = list(client.measure(files, library.graph_symbol, groups, 3, limits=QUICK))
    faults = {r.candidate: (r.kind, r.words) for r in results if isinstance(r, Fault)}
    assert faults == {1: ("crash", "ended by SIGSEGV"), 3: ("hang", "no end after 0.5 s of processor time")}
    assert sorted(r.candidate for r in results if isinstance(r, Measurement)) == [0, 2, 4]
    assert agent.is_alive() and agent.jobs() == [] and agent.log == ""


def test_a_silent_candidate_is_given_up_by_the_clock(agent: Agent, tmp_path: Path) -> None:
    library, groups = known_kernels(agent.target, tmp_path, 2, hang=[1])
    with agent.connect() as client:
        files = client.put_all({"library": library.library.read_bytes(), "package": library.package.read_bytes()})
        limits = Limits(line_cpu_ms=0, line_wall_ms=700)
        results = list(client.measure(files, library.graph_symbol, groups, 3, limits=limits))
    assert results[0] == Fault(1, "hang", "silent for 0.7 s")


def test_a_group_whose_first_candidate_fails_is_lost(agent: Agent, tmp_path: Path) -> None:
    library, (group,) = known_kernels(agent.target, tmp_path, 4, crash=[0])
    first = type(group)((0, 1), group.floats, group.out_offset, group.out_bytes)
    second = type(group)((2, 3), group.floats, group.out_offset, group.out_bytes)
    with agent.connect() as client:
        files = client.put_all({"library": library.library.read_bytes(), "package": library.package.read_bytes()})
        results = list(client.measure(files, library.graph_symbol, [first, second], 1))
    assert results[0] == Fault(0, "crash", "ended by SIGSEGV")
    assert [r.candidate for r in results] == [0, 2, 3]


def test_a_library_that_does_not_load_is_no_candidates_fault(agent: Agent, tmp_path: Path) -> None:
    library, groups = known_kernels(agent.target, tmp_path, 2)
    with agent.connect() as client:
        files = client.put_all({"library": b"no library at all", "package": library.package.read_bytes()})
        with pytest.raises(DeviceError, match=r"the measuring program stopped: "):
            list(client.measure(files, library.graph_symbol, groups, 1))
        assert client.status()  # the session goes on


def test_who_stops_listening_ends_the_job(agent: Agent, tmp_path: Path) -> None:
    library, (group,) = known_kernels(agent.target, tmp_path, 4, hang=[3])
    alone = [type(group)((k,), group.floats, group.out_offset, group.out_bytes) for k in range(4)]
    with agent.connect() as client:
        files = client.put_all({"library": library.library.read_bytes(), "package": library.package.read_bytes()})
        results = client.measure(files, library.graph_symbol, alone, 2, limits=Limits(line_cpu_ms=0))
        assert next(results).candidate == 0
        results.close()  # type: ignore[attr-defined]
        assert agent.jobs() == [] and client.has(files["library"])


def test_tune_reaches_it_by_its_spec(agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XNNCC_AGENT_TOKEN", TOKEN.decode())
    library, groups = known_kernels(agent.target, tmp_path, 2)
    bench = open_bench(f"tcp:127.0.0.1:{agent.port}", agent.target)
    assert bench.description
    assert [r.candidate for r in bench.measure(library, groups, 1, threads=2)] == [0, 1]
    other = "linux-arm64" if agent.target.name != "linux-arm64" else "android-arm64"
    bench.close()  # type: ignore[attr-defined]
    with pytest.raises(DeviceError, match=r"it runs .* and not arm64"):
        open_bench(f"tcp:127.0.0.1:{agent.port}", load_target(other))
