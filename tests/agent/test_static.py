"""A device that loads no libraries: the agent and the candidates are static executables, linked with a GNU compiler."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from agents import TOKEN, Agent
from fakes.known_kernels import SYMBOL, known_kernels
from tiny import INPUT, tiny_artefact

from xnncc.codegen.link_static import static_twin
from xnncc.device import open_device
from xnncc.device.bench import Fault, Library, Measurement, open_bench
from xnncc.device.static_program import static_measure
from xnncc.errors import DeviceError, ToolchainError
from xnncc.pack import read_manifest
from xnncc.target import load_target


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setattr("xnncc.codegen.link_static._zig", lambda target: [])  # its first use takes half a minute
        try:
            agent = Agent(tmp_path_factory.mktemp("agent"), is_static=True)
        except ToolchainError as error:
            pytest.skip(str(error))
    yield agent
    agent.stop()


def test_candidates_come_as_a_program(agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XNNCC_AGENT_TOKEN", TOKEN.decode())
    library, groups = known_kernels(agent.target, tmp_path, 4, crash=[1])
    library = Library(library.library, library.package, SYMBOL, (tmp_path / "known.o",))
    bench = open_bench(f"tcp:127.0.0.1:{agent.port}", agent.target)
    try:
        results = list(bench.measure(library, groups, 2, threads=2))
    finally:
        bench.close()
    assert results[0] == Fault(1, "crash", "ended by SIGSEGV")
    assert [(r.candidate, r.error) for r in results[1:] if isinstance(r, Measurement)] == [(0, 0), (2, 0), (3, 0)]


def test_a_network_cannot_run_there_and_that_is_said(
    agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XNNCC_AGENT_TOKEN", TOKEN.decode())
    folder = tiny_artefact(agent.target, tmp_path)
    device = open_device(f"tcp:127.0.0.1:{agent.port}", read_manifest(folder))
    with pytest.raises(DeviceError, match=r"this agent loads no libraries: the job must bring a program"):
        device.run(folder, [INPUT])


def test_a_program_for_phones_stands_on_no_c_library_of_theirs(tmp_path: Path) -> None:
    target = load_target("android-arm64")
    if shutil.which("aarch64-linux-gnu-gcc") is None:
        pytest.skip("aarch64-linux-gnu-gcc is missing: apt-get install gcc-aarch64-linux-gnu")
    assert (static_twin(target).toolchain.libc, static_twin(target).toolchain.triple) == ("glibc", "aarch64-linux-gnu")
    assert static_twin(load_target("linux-arm64")) == load_target("linux-arm64")
    known_kernels(target, tmp_path, 2)
    program = static_measure(target, [tmp_path / "known.o"], SYMBOL)
    (headers,) = struct.unpack_from("<Q", program, 32)
    size, count = struct.unpack_from("<HH", program, 54)
    kinds = {struct.unpack_from("<I", program, headers + i * size)[0] for i in range(count)}
    assert program[:4] == b"\x7fELF" and kinds.isdisjoint({2, 3})  # PT_DYNAMIC, PT_INTERP


def test_what_links_none_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("xnncc.codegen.link_static._zig", lambda target: [])
    monkeypatch.setattr("xnncc.codegen.link_static._gnu", lambda target: [])
    with pytest.raises(ToolchainError, match=r"nothing here links static executables for it. Install one: apt-get"):
        static_measure(load_target("linux-arm64"), [], SYMBOL)
