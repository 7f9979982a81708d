"""Commands run in this process, through the same door as the program's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    stdout: str
    stderr: str


@pytest.fixture
def xnncc(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Ended]:
    """Return ``xnncc("build", "m.onnx", ...) -> Ended``, run in an empty folder."""
    from xnncc.cli.main import app
    from xnncc.cli.messages import run_to_exit_code

    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Ended:
        code = run_to_exit_code(app, [str(a) for a in arguments])
        captured = capsys.readouterr()
        return Ended(code, captured.out, captured.err)

    return run


MANIFEST: dict[str, Any] = {
    "format": 1, "name": "net", "target": "linux-x86-64", "build_id": 7, "graph_symbol": "xnn_net_graph",
    "inputs": [{"name": "data", "shape": [1, 4], "dtype": "float32"}],
    "outputs": [{"name": "prob", "shape": [1, 2], "dtype": "float32"}],
    "op_count": 2, "arena_bytes": 4096, "thread_scratch_bytes": 0, "weights_bytes": 2048,
    "files": [
        {"path": "libnet.so", "bytes": 20480, "sha256": "a" * 64, "role": "library"},
        {"path": "net.xnn", "bytes": 3000, "sha256": "b" * 64, "role": "package"},
    ],
    "tools": {"xnncc": "0.1.0", "tvm": "0.27.0.post1"}, "source": {"file": "net.onnx", "sha256": "c" * 64},
    "ops": [
        {"index": 0, "kernel": "dense", "rule": "gemv", "source": ["hidden"], "outputs": [
            {"space": "arena", "offset": 0, "size": 16, "shape": [1, 4], "dtype": "float32", "layout": "plain"}
        ]},
        {"index": 1, "kernel": "softmax", "rule": "rowwise", "source": ["prob"], "outputs": [
            {"space": "output", "offset": 0, "size": 8, "shape": [1, 2], "dtype": "float32", "layout": "plain"}
        ]},
    ],
}  # fmt: skip


@pytest.fixture
def manifest() -> dict[str, Any]:
    """The manifest of a network with one input, one output and two operators."""
    import copy

    return copy.deepcopy(MANIFEST)


@pytest.fixture
def artefact(tmp_path: Path, manifest: dict[str, Any]) -> Path:
    """A folder with that manifest and nothing else in it."""
    from xnncc.pack import write_manifest

    folder = tmp_path / "net-host"
    folder.mkdir()
    write_manifest(folder / "manifest.json", manifest)
    return folder


@dataclass
class FakeBuild:
    """Stands for xnncc.build: notes what it was called with, then returns or raises what the test wants."""

    manifest: dict[str, Any]
    warnings: tuple[str, ...] = ()
    error: BaseException | None = None
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)

    def __call__(self, *arguments: Any, **keywords: Any) -> SimpleNamespace:
        self.calls.append((arguments, keywords))
        keywords["progress"]("compiling kernels", 1, 2)
        if self.error is not None:
            raise self.error
        return SimpleNamespace(directory=Path("net-host"), manifest=self.manifest, report={}, warnings=self.warnings)


@pytest.fixture
def fake_build(monkeypatch: pytest.MonkeyPatch, manifest: dict[str, Any]) -> FakeBuild:
    """``xnncc.build.build`` replaced by a FakeBuild."""
    import sys

    fake = FakeBuild(manifest)
    monkeypatch.setitem(sys.modules, "xnncc.build", SimpleNamespace(build=fake))
    return fake


class FakeDevice:
    """A device whose artefact computes ``answer``; every inference takes 1, 2, 3, ... ms."""

    name = "host"

    def __init__(self, answer: list[Any], traced: list[Any] | None = None) -> None:
        self.answer, self.traced = answer, traced or []

    def run(self, folder: Path, inputs: Any, threads: int = 1) -> list[Any]:
        return self.answer

    def run_stream(self, folder: Path, steps: Any, threads: int = 1) -> list[list[Any]]:
        return [self.answer for _ in steps]

    def time(self, folder: Path, inputs: Any, threads: int, repeat: int, per_op: bool) -> Any:
        from xnncc.device import Timings

        return Timings([float(i + 1) for i in range(repeat)], [0.25, 0.75] if per_op else None)

    def trace(self, folder: Path, inputs: Any, ops: Any) -> Any:
        yield from enumerate(self.traced)


@pytest.fixture
def fake_device(monkeypatch: pytest.MonkeyPatch) -> Callable[..., FakeDevice]:
    """Return ``fake_device(answer, traced)``: what ``open_device`` gives from then on."""
    import xnncc.device

    def install(answer: list[Any], traced: list[Any] | None = None) -> FakeDevice:
        device = FakeDevice(answer, traced)
        monkeypatch.setattr(xnncc.device, "open_device", lambda spec, manifest: device)
        return device

    return install
