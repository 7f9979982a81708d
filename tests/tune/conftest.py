"""A small network, tuned on this machine; what the tests look at never depends on a clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xnncc.device.bench import Bench, Dump, Fault, Group, Library, Measurement


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``x [1, 16, 8, 8] -> conv 3x3 (32) + relu -> conv 1x1 (16) -> y``: a convolution with three algorithms, one with
    several register tiles."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    weights = {"w1": (32, 16, 3, 3), "w2": (16, 32, 1, 1)}
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w2"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 16, 8, 8])],
        [numpy_helper.from_array(rng.standard_normal(s).astype(np.float32), n) for n, s in weights.items()],
    )
    path = tmp_path_factory.mktemp("model") / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


class SteadyBench(Bench):
    """A real bench whose clock says what the test wants: ``ns(position in its group)``; everything else is real."""

    name = "steady"

    def __init__(self, real: Bench, ns: Callable[[int], int]) -> None:
        self.real, self.ns = real, ns

    def measure(
        self, library: Library, groups: Sequence[Group], rounds: int, threads: int = 1, dump: Dump | None = None
    ) -> Iterator[Measurement | Fault]:
        """See Bench."""
        position = {c: i for group in groups for i, c in enumerate(group.candidates)}
        for result in self.real.measure(library, groups, min(rounds, 1), threads, dump):
            yield replace(result, ns=(self.ns(position[result.candidate]),) * 3) if hasattr(result, "ns") else result

    @property
    def description(self) -> str:
        """See Bench."""
        return "a steady clock"


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[int], int]], None]:
    """Return ``steady(ns)``: from then on every bench is a ``SteadyBench``."""
    from xnncc.device import bench

    real = bench.open_bench

    def install(ns: Callable[[int], int]) -> None:
        monkeypatch.setattr(bench, "open_bench", lambda spec, target: SteadyBench(real(spec, target), ns))

    return install


@pytest.fixture
def sabotage(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, str], None]:
    """Return ``sabotage(index, body)``: the kernel of every candidate ``index`` is a C function of ``body``."""
    from xnncc.codegen.compile import compile_file
    from xnncc.tune.candidates import PREFIX, Compiled, Workshop

    honest = Workshop._compile

    def install(index: int, body: str) -> None:
        def compile_or_break(self: Workshop, task: Any, at: int, number: int) -> Compiled | str:
            compiled = honest(self, task, at, number)
            if at == index and isinstance(compiled, Compiled):
                source = self.folder / f"bad{number}.c"
                source.write_text(f"int {PREFIX}{number}(void);\nint {PREFIX}{number}(void) {{ {body} }}\n")
                compile_file(self.target, source, compiled.path, [])
            return compiled

        monkeypatch.setattr(Workshop, "_compile", compile_or_break)

    return install
