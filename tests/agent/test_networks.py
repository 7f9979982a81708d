"""Whole networks through ``--device tcp:HOST:PORT``: run, time, trace, on this machine and under qemu."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from agents import TOKEN, Agent
from tiny import COUNT, EXPECTED, INPUT, WEIGHTS, tiny_artefact

from xnncc.device import open_device
from xnncc.device.agent_token import token_file
from xnncc.errors import DeviceError
from xnncc.pack import read_manifest


@pytest.fixture(scope="module", params=["host", "linux-arm64"])
def agent(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    agent = Agent(tmp_path_factory.mktemp(request.param), request.param)
    yield agent
    agent.stop()


def test_runs_times_and_traces(agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XNNCC_AGENT_TOKEN", TOKEN.decode())
    folder = tiny_artefact(agent.target, tmp_path)
    device = open_device(f"tcp:127.0.0.1:{agent.port}", read_manifest(folder))
    for threads in (0, 1, 2):
        (result,) = device.run(folder, [INPUT], threads)
        assert result.shape == (1, COUNT) and result.dtype == np.float32
        np.testing.assert_allclose(result, EXPECTED, rtol=1e-6)  # libms differ by a unit in the last place or two
    steps = [[INPUT], [INPUT[:, ::-1].copy()]]
    for (x,), (y,) in zip(steps, device.run_stream(folder, steps), strict=True):
        np.testing.assert_allclose(y, np.exp(x * WEIGHTS), rtol=1e-6)
    timings = device.time(folder, [INPUT], 1, repeat=5)
    assert len(timings.ms) == 5 and timings.min_ms > 0
    timings = device.time(folder, [INPUT], 1, repeat=3, per_op=True)
    assert timings.per_op_ms is not None and len(timings.per_op_ms) == 2
    traced = list(device.trace(folder, [INPUT], device.manifest["ops"]))
    np.testing.assert_array_equal(traced[0][1][0].view("float32"), (INPUT * WEIGHTS).ravel())


def test_a_crash_is_told(agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XNNCC_AGENT_TOKEN", TOKEN.decode())
    folder = tiny_artefact(agent.target, tmp_path, defines=("CRASH",))
    device = open_device(f"tcp:127.0.0.1:{agent.port}", read_manifest(folder))
    with pytest.raises(DeviceError, match=r"the network on tcp:127.0.0.1:\d+: it was ended by SIG(ILL|TRAP)"):
        device.run(folder, [INPUT])


def test_the_token_comes_from_a_file_too(agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XNNCC_AGENT_TOKEN", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tiny_artefact(agent.target, tmp_path)
    spec, manifest = f"tcp:127.0.0.1:{agent.port}", read_manifest(folder)
    with pytest.raises(DeviceError, match=r"no token for its agent is known. Set XNNCC_AGENT_TOKEN to .*--token-file"):
        open_device(spec, manifest)
    token_file().parent.mkdir(parents=True)
    token_file().write_bytes(TOKEN + b"\n")
    assert open_device(spec, manifest).run(folder, [INPUT])


@pytest.mark.parametrize("spec", ["tcp:phone", "tcp:", "tcp:h:0", "tcp:h:99999", "tcp:h:x", "tcp::5060"])
def test_a_spec_of_another_form_is_told(spec: str) -> None:
    with pytest.raises(DeviceError, match=r"not of the form tcp:HOST:PORT. Example: tcp:192.168.1.7:5060"):
        open_device(spec, {"target": "host"})


def test_code_for_another_processor_is_refused(agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XNNCC_AGENT_TOKEN", TOKEN.decode())
    with pytest.raises(DeviceError, match=r"it runs .* and not arm64-v8a. Build for its ABI"):
        open_device(f"tcp:127.0.0.1:{agent.port}", {"target": "android-arm64"})


def test_too_many_threads_are_told(agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XNNCC_AGENT_TOKEN", TOKEN.decode())
    folder = tiny_artefact(agent.target, tmp_path)
    device = open_device(f"tcp:127.0.0.1:{agent.port}", read_manifest(folder))
    with pytest.raises(DeviceError, match=r"no agent takes such a job: threads 257"):
        device.run(folder, [INPUT], 257)
