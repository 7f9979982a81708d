"""``tvm-rpc:HOST:PORT:KEY``: candidates of ours on devices of TVM's tracker, and what our watchdog tells."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.known_kernels import known_kernels
from tvm_rack import KEY, Tracker, TvmAgent

from xnncc.device import tvm_rpc
from xnncc.device.bench import Bench, Dump, Fault, Measurement, filled, open_bench
from xnncc.device.tvm_rpc import TvmRpcBench, split_spec
from xnncc.errors import DeviceError
from xnncc.target import load_target
from xnncc.tune import tune

pytest.importorskip("tornado", reason="tornado is missing: pip install 'xnncc[tvm-rpc]'")
OTHER_KEY = "board-of-the-tests-0123456789"
HOST = load_target("host")


@pytest.fixture(scope="module")
def tracker() -> Iterator[Tracker]:
    tracker = Tracker()
    yield tracker
    tracker.stop()


@pytest.fixture(scope="module")
def agent(tracker: Tracker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TvmAgent]:
    agent = TvmAgent(tmp_path_factory.mktemp("agent"), tracker)
    yield agent
    assert agent.is_alive()
    agent.stop()


@pytest.fixture
def bench(tracker: Tracker, agent: TvmAgent) -> Bench:
    tracker.wait_free()
    return open_bench(f"tvm-rpc:127.0.0.1:{tracker.port}:{KEY}", HOST)


def test_ranks_known_kernels(bench: Bench, tmp_path: Path) -> None:
    library, groups = known_kernels(HOST, tmp_path, count=3, laps=20000)
    results = list(bench.measure(library, groups, 6))
    assert [r.candidate for r in results] == [0, 1, 2]
    assert all(isinstance(r, Measurement) and r.error == 0.0 for r in results)
    first, _, third = (r for r in results if isinstance(r, Measurement))
    assert 1.5 < third.us / first.us < 6
    assert bench.description == f"TVM key {KEY}"


def test_kernels_faults_are_told_from_the_racks(
    bench: Bench, tracker: Tracker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tvm_rpc, "_BUSY_S", 1)
    library, (group,) = known_kernels(HOST, tmp_path, count=5, crash=[1], hang=[3], wrong=[2])
    results = {r.candidate: r for r in bench.measure(library, [group], 4)}
    assert sorted(results) == [0, 1, 2, 3, 4]
    assert results[1] == Fault(1, "crash", "ended by SIGSEGV")
    assert results[3] == Fault(3, "hang", "no end after 1 s of processor time")
    wrong = results[2]
    assert isinstance(wrong, Measurement) and wrong.error > 0.1
    tracker.wait_free()


def test_outputs_come_back(bench: Bench, tmp_path: Path) -> None:
    library, groups = known_kernels(HOST, tmp_path, count=1)
    dump = Dump()
    list(bench.measure(library, groups * 10, 0, dump=dump))
    assert dump.data == (filled(64) * 2 + 1).tobytes() * 10


def test_an_empty_batch_asks_for_no_device(bench: Bench, tmp_path: Path) -> None:
    library, _ = known_kernels(HOST, tmp_path)
    assert list(bench.measure(library, [], 1)) == []


def test_a_key_that_nobody_serves_is_told_at_once(tracker: Tracker, agent: TvmAgent) -> None:
    tracker.wait_free()
    with pytest.raises(DeviceError, match=f"no server is registered for it; did you mean '{KEY}'"):
        TvmRpcBench(HOST, f"tvm-rpc:127.0.0.1:{tracker.port}:{KEY}x")
    assert set(tracker.summary()["queue_info"]) <= {KEY}, "asking left nothing behind"


def test_devices_that_are_all_taken_are_waited_for_with_a_deadline(
    bench: Bench, tracker: Tracker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tvm_rpc, "_REQUEST_S", 0.5)
    library, groups = known_kernels(HOST, tmp_path)
    held = tvm_rpc.Tracker("127.0.0.1", tracker.port)
    host, port, match = held.request(KEY, 10)
    words = r"none of its devices became free within 0\.5 s"
    with tvm_rpc.TvmSession(host, port, match, 60), pytest.raises(DeviceError, match=words):
        list(bench.measure(library, groups, 1))
    tracker.wait_free()
    monkeypatch.setattr(tvm_rpc, "_REQUEST_S", 20.0)
    assert len(list(bench.measure(library, groups, 1))) == 4


def test_a_device_that_goes_is_no_kernels_fault(tracker: Tracker, tmp_path: Path) -> None:
    library, groups = known_kernels(HOST, tmp_path, hang=[0])
    agent = TvmAgent(tmp_path / "second", tracker, key=OTHER_KEY)
    try:
        tracker.wait_free(OTHER_KEY)
        bench = TvmRpcBench(HOST, f"tvm-rpc:127.0.0.1:{tracker.port}:{OTHER_KEY}")
        threading.Timer(1.0, agent.stop).start()
        with pytest.raises(DeviceError, match=r"closed the connection|connection broke"):
            list(bench.measure(library, groups, 1))
    finally:
        agent.stop()


def test_no_tracker_is_told() -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
        with pytest.raises(DeviceError, match=f"tracker '127.0.0.1:{port}': it cannot be reached"):
            TvmRpcBench(HOST, f"tvm-rpc:127.0.0.1:{port}:{KEY}")


@pytest.mark.parametrize(
    "spec", ["tvm-rpc:", "tvm-rpc:h:1", "tvm-rpc:h:x:k", "tvm-rpc:h:0:k", "tvm-rpc::9190:k", "tvm-rpc:h:1:k:l"]
)
def test_another_form_is_told(spec: str) -> None:
    with pytest.raises(DeviceError, match="it is not of the form tvm-rpc:HOST:PORT:KEY"):
        split_spec(spec)


def test_a_target_without_elf_is_told() -> None:
    with pytest.raises(DeviceError, match="not measured through TVM's RPC"):
        TvmRpcBench(load_target("web-wasm"), "tvm-rpc:127.0.0.1:9190:key")


def _network(folder: Path) -> Path:
    """Return an ONNX file with one convolution: x [1, 16, 8, 8] -> y [1, 32, 8, 8]."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    weight = numpy_helper.from_array(np.random.default_rng(0).standard_normal((32, 16, 3, 3)).astype("float32"), "w")
    tensor = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])], "net",
        [tensor("x", TensorProto.FLOAT, [1, 16, 8, 8])], [tensor("y", TensorProto.FLOAT, [1, 32, 8, 8])], [weight],
    )  # fmt: skip
    path = folder / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_a_network_is_tuned_through_tvms_tracker(tracker: Tracker, agent: TvmAgent, tmp_path: Path) -> None:
    tracker.wait_free()
    spec = f"tvm-rpc:127.0.0.1:{tracker.port}:{KEY}"
    outcome = tune(_network(tmp_path), "host", devices=[spec], trials=8, output=tmp_path / "records")
    assert outcome.trials >= 8 and not outcome.faults["wrong"] and not any("lost" in w for w in outcome.warnings)
    lines = (tmp_path / "records" / "journal" / "net.jsonl").read_text().splitlines()
    assert len(lines) == outcome.trials and all(f'"TVM key {KEY}"' in line for line in lines)
