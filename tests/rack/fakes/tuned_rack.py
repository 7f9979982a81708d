"""A broker of known phones, and tuning runs through it that cost little: what is compiled once is compiled for all.

rack = Rack(folder, "p1", "p2");  with rack.serving(): ...
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes.faults import FaultyWire
from fakes.known_phone import KEY, KnownPhone

from xnncc.device.rack_client import RackClient
from xnncc.rack.broker import Broker
from xnncc.rack.open_phone import open_phone
from xnncc.rack.phone import Phone
from xnncc.rack.server import listen, running
from xnncc.rack.settings import Settings
from xnncc.schedule.records import read_folder

TRIALS = 20  # the first batch of its six kernels has twelve
SPEC = f"rack:{KEY}"


class Rack:
    """``phones`` by name; further devices may be added as ``tcp:`` specs, opened by ``opener``."""

    def __init__(self, folder: Path, *names: str) -> None:
        self.folder = folder
        self.phones = {name: KnownPhone(name) for name in names}
        self.wrap: Callable[[Phone], Phone] = lambda phone: phone
        self.url, self.token = "", ""
        self.broker: Broker

    def open(self, spec: str, token: bytes, may_reboot: bool) -> Phone:
        """See Settings.open_phone."""
        kind, _, name = spec.partition(":")
        return self.phones[name] if kind == "known" else self.wrap(open_phone(spec, token, may_reboot))

    @contextmanager
    def serving(self, patch: pytest.MonkeyPatch, port: int = 0) -> Iterator[RackClient]:
        """Serve; clients of this process find the rack by themselves, over a wire that can be cut."""
        settings = Settings(
            self.folder / "state", self.open, None, finds_adb=False, probe_s=0.2, most_probe_s=0.5, rungs=()
        )
        self.broker = Broker(settings)
        self.token = self.token or self.broker.tokens.create("tests", "admin")
        with running(self.broker, listen("127.0.0.1", port)) as self.url:
            self.wire = FaultyWire(int(self.url.rpartition(":")[2]))
            patch.setenv("XNNCC_RACK", f"http://127.0.0.1:{self.wire.port}")
            patch.setenv("XNNCC_RACK_TOKEN", self.token)
            try:
                with RackClient(self.url, self.token) as client:
                    known = {device["serial"] for device in client.devices()}
                    for name in self.phones:
                        if name not in known:
                            client.add_device(f"known:{name}")
                    yield client
            finally:
                self.wire.close()


def small_model(folder: Path) -> Path:
    """Return ``x [1, 16, 8, 8] -> conv 1x1 (24) + relu -> conv 1x1 (16) -> y``."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    weights = {"w1": (24, 16, 1, 1), "w2": (16, 24, 1, 1)}
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w2"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 16, 8, 8]) for name in ("x", "y")]
    stored = [numpy_helper.from_array(rng.standard_normal(s).astype(np.float32), n) for n, s in weights.items()]
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:], stored)
    path = folder / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def share_work(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let every run of the tuner take what another one has collected, compiled and computed already."""
    from xnncc.tune import candidates, confirm, tasks

    done: dict[Any, Any] = {}
    collected: list[Any] = []
    outputs: dict[str, np.ndarray] = {}
    collect, reference, honest = tasks.collect_tasks, confirm.reference_output, candidates.Workshop

    class SharedWorkshop(honest):  # type: ignore[misc, valid-type]
        """Its objects lie in ``folder``; its libraries are its own."""

        def __init__(self, target: Any, scratch: Path, jobs: int) -> None:
            super().__init__(target, scratch, jobs, done)

        def _compile(self, task: Any, index: int, number: int) -> Any:
            return honest(self.target, folder, self.jobs)._compile(task, index, number)

    def collect_once(*arguments: Any) -> Any:
        if not collected:
            collected.append(collect(*arguments))
        return collected[0]

    def compute_once(task: Any) -> np.ndarray:
        if task.key not in outputs:
            outputs[task.key] = reference(task)
        return outputs[task.key]

    patch.setattr(candidates, "Workshop", SharedWorkshop)
    patch.setattr(tasks, "collect_tasks", collect_once)
    patch.setattr(confirm, "reference_output", compute_once)


def records_of(folder: Path) -> list[tuple[Any, ...]]:
    """Return what a folder's records say, without the date."""
    notes: list[str] = []
    found = read_folder(folder, notes)
    assert notes == []
    return sorted((r.kernel, json.dumps(r.choice), r.us, r.analytic_us, r.device) for r in found)


def entries_of(folder: Path) -> list[tuple[Any, ...]]:
    """Return what a journal says, sorted: phones finish in any order."""
    lines = (folder / "journal" / "net.jsonl").read_text().splitlines()
    read = [json.loads(line) for line in lines]
    return sorted((e["kernel"], json.dumps(e["config"], sort_keys=True), e["us"], e["fault"]) for e in read)
