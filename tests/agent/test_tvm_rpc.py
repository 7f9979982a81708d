"""TVM's own client, tracker and runner against our agent: 32 trials, kernels that crash or hang, who may come in."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tvm_kernels import SIZE, fault_kernel, tvm_kernel
from tvm_rack import KEY, Tracker, TvmAgent

pytest.importorskip("tornado", reason="tornado is missing: pip install 'xnncc[tvm-rpc]'")
import tvm
from tvm import rpc

TRIALS = 32


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tvm")


@pytest.fixture(scope="module")
def agent(folder: Path) -> Iterator[TvmAgent]:
    agent = TvmAgent(folder / "agent")
    yield agent
    assert agent.is_alive()
    agent.stop()


@pytest.fixture(scope="module")
def tracker() -> Iterator[Tracker]:
    tracker = Tracker()
    yield tracker
    tracker.stop()


@pytest.fixture
def session(agent: TvmAgent) -> Any:
    return rpc.connect("127.0.0.1", agent.port, KEY, session_timeout=60)


def _load(session: Any, library: Path) -> Any:
    session.upload(str(library))
    return session.load_module(library.name)


def _runner(tracker: Tracker, seconds: int = 20) -> Any:
    from tvm.s_tir import meta_schedule as ms

    place = ms.runner.RPCConfig("127.0.0.1", tracker.port, KEY, 1, seconds)
    return ms.runner.RPCRunner(place, ms.runner.EvaluatorConfig(1, 3, 1), max_workers=1)


def _trials(runner: Any, *libraries: Path) -> list[Any]:
    from tvm.s_tir.meta_schedule.arg_info import TensorInfo
    from tvm.s_tir.meta_schedule.runner import RunnerInput

    shapes = [TensorInfo("float32", [SIZE, SIZE])] * 3
    futures = runner.run([RunnerInput(str(library), "cpu", shapes) for library in libraries])
    return [future.result() for future in futures]


def test_stock_runner_and_tracker_finish_32_trials_and_faults_cost_one_trial_each(
    folder: Path, tracker: Tracker
) -> None:
    kernels = [tvm_kernel(folder, parts) for parts in (1, 4, 8, 16)]
    agent = TvmAgent(folder / "registered", tracker)
    try:
        tracker.wait_free()
        runner = _runner(tracker)
        results = _trials(runner, *(kernels * TRIALS)[:TRIALS])
        assert [r.error_msg for r in results] == [None] * TRIALS
        assert all(len(r.run_secs) == 3 and all(0 < float(s) < 0.1 for s in r.run_secs) for r in results)
        crash, good, fails, again = _trials(
            runner, fault_kernel(folder, "crash"), kernels[0], fault_kernel(folder, "fails"), kernels[1]
        )
        assert "ended by signal 11" in crash.error_msg and good.error_msg is None
        assert "too warm" in fails.error_msg and again.error_msg is None
        late, after = _trials(_runner(tracker, seconds=5), fault_kernel(folder, "hang"), kernels[0])
        assert late.error_msg is not None and after.error_msg is None
        tracker.wait_free()
        assert agent.is_alive() and agent.sessions() == []
    finally:
        agent.stop()


def test_numbers_are_right_on_all_cores(folder: Path, session: Any) -> None:
    x, y = (np.random.default_rng(n).standard_normal((SIZE, SIZE), "float32") for n in (1, 2))
    kernel, cpu = _load(session, tvm_kernel(folder, 2)), session.cpu(0)
    a, b = (tvm.runtime.tensor(n, cpu) for n in (x, y))
    c = tvm.runtime.empty((SIZE, SIZE), "float32", cpu)
    kernel["main"](a, b, c)
    assert np.abs(c.numpy() - x @ y).max() < 1e-4
    d = tvm.runtime.empty((SIZE, SIZE), "float32", cpu)
    c.copyto(d)
    assert (d.numpy() == c.numpy()).all()
    with pytest.raises(tvm.error.RPCError, match="Expected 3 arguments"):
        kernel["main"](a, b)


def test_kernels_get_threads_and_a_word_when_scratch_is_short(folder: Path, session: Any) -> None:
    assert _load(session, fault_kernel(folder, "threads"))["main"]() is None
    with pytest.raises(tvm.error.RPCError, match="wants more scratch memory than a thread has"):
        _load(session, fault_kernel(folder, "scratch"))["main"]()


def test_files_stay_in_the_sessions_folder(folder: Path, session: Any, agent: TvmAgent) -> None:
    session.upload(bytearray(b"content"), "../../../up/there")
    assert session.download("there") == b"content"
    inside = agent.folder / "data" / agent.sessions()[0] / "there"
    assert inside.read_bytes() == b"content"
    session.remove("there")
    assert not inside.exists()
    for name in ("..", "a/..", ".hidden", "a/"):
        with pytest.raises(tvm.error.RPCError, match="does not begin with a dot"):
            session.upload(bytearray(b"x"), name)
    with pytest.raises(tvm.error.RPCError, match="no such file"):
        session.download("missing")
    with pytest.raises(tvm.error.RPCError, match="cannot be loaded"):
        session.load_module("missing.so")


def test_what_it_does_not_have_is_told(folder: Path, session: Any) -> None:
    with pytest.raises((ValueError, AttributeError)):
        session.get_function("tvm.contrib.cublas.matmul")
    with pytest.raises(Exception, match=r"CPU alone|not exist"):
        tvm.runtime.empty((4,), "float32", session.device("opencl", 0))
    good = _load(session, fault_kernel(folder, "good"))
    with pytest.raises(Exception, match=r"no such function|Cannot find"):
        good.time_evaluator("other", session.cpu(0))()
    with pytest.raises(tvm.error.RPCError, match="f_preproc"):
        good.time_evaluator("main", session.cpu(0), f_preproc="mine")()


def test_filling_gives_numbers_that_are_safe(session: Any) -> None:
    fill = session.get_function("tvm.contrib.random.random_fill_for_measure")
    for dtype, low, high in [("float32", 1, 2), ("float64", 1, 2), ("float16", 1, 2), ("int32", 0, 1), ("uint8", 0, 1)]:
        tensor = tvm.runtime.empty((64,), dtype, session.cpu(0))
        fill(tensor)
        found = tensor.numpy()
        assert found.min() >= low and found.max() <= high and len(set(found.tolist())) > 1, dtype


def _hello(port: int, words: bytes) -> bytes:
    """Return the agent's answer to a client's first words."""
    with socket.create_connection(("127.0.0.1", port), 20) as sock:
        sock.sendall(struct.pack("<ii", 0xFF271, len(words)) + words)
        return sock.recv(8)


@pytest.mark.parametrize(
    "words", [b"client:", b"client:" + KEY[:-1].encode(), KEY.encode(), b"client:" + KEY.encode() + b"x", b"\0" * 40]
)
def test_who_does_not_know_the_key_is_turned_away(agent: TvmAgent, words: bytes) -> None:
    assert _hello(agent.port, words) == struct.pack("<i", 0xFF273)


def test_with_a_tracker_the_key_alone_does_not_do(folder: Path, tracker: Tracker) -> None:
    agent = TvmAgent(folder / "guarded", tracker)
    try:
        tracker.wait_free()
        assert _hello(agent.port, b"client:" + KEY.encode()) == struct.pack("<i", 0xFF273)
        remote = rpc.connect_tracker("127.0.0.1", tracker.port).request(KEY, session_timeout=20)
        assert remote.get_function("tvm.rpc.server.upload") is not None
        del remote
        tracker.wait_free()
    finally:
        agent.stop()


def test_an_arm64_agent_runs_arm64_kernels(folder: Path, tracker: Tracker) -> None:
    target = {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "num-cores": 4}
    kernels = [tvm_kernel(folder, parts, target, "aarch64-linux-gnu-gcc") for parts in (3, 6)]
    agent = TvmAgent(folder / "arm64", tracker, "linux-arm64")
    try:
        tracker.wait_free(seconds=60)
        results = _trials(_runner(tracker, seconds=120), *kernels, *kernels)
        assert [r.error_msg for r in results] == [None] * 4
    finally:
        agent.stop()
