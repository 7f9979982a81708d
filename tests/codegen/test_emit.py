"""Objects of a whole small network: the same bytes every time, clean symbols, honest sizes."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tvm
from network_running import SYMBOL, emit_network, module, target_of, variable
from tvm import relax
from tvm.relax import op

from xnncc.codegen.emit import Emitted
from xnncc.codegen.lower_kernel import lower_kernel
from xnncc.schedule import schedule_kernel

nn = op.nn
# What a kernel may want from the C library; everything else it brings along.
LIBC = {"memcpy", "memset"}
LIBM = {"expf", "logf", "powf", "tanhf", "erff", "sinf", "cosf", "sqrtf", "fmodf", "floorf", "ceilf", "roundf"}
# Weak in every object: pointers that the runtime sets, and conversions of half floats.
WEAK = {"__TVMBackendParallelLaunch", "__TVMBackendAllocWorkspace", "__TVMBackendFreeWorkspace",
        "__truncsfhf2", "__extendhfsf2"}  # fmt: skip


def _network(scale: float = 1.0, bias: bool = False) -> tvm.IRModule:
    """A convolution with padded input, a depthwise one, a mean, powf, softmax."""
    rng = np.random.default_rng(0)
    w = relax.const((scale * rng.standard_normal((16, 3, 3, 3))).astype("float32"))
    d = relax.const(rng.standard_normal((16, 1, 3, 3)).astype("float32"))

    def build(emit: Callable, x: relax.Var) -> list[relax.Var]:
        y = emit(nn.relu(emit(nn.conv2d(x, w, padding=1), "y")), "r")
        z = emit(nn.relu(emit(nn.conv2d(y, d, padding=1, groups=16), "d")), "z")
        m = emit(op.mean(z, [2, 3]), "m")
        p = emit(op.power(emit(op.abs(m), "a"), relax.const(np.float32(1.3))), "p")
        return [emit(nn.softmax(p, -1), "s"), *([emit(op.exp(m), "e")] if bias else [])]

    return module(build, variable("x", (1, 3, 10, 12)))


@pytest.fixture(scope="module")
def emitted(tmp_path_factory: pytest.TempPathFactory) -> Emitted:
    return emit_network(_network(), target_of(8), tmp_path_factory.mktemp("objects"))[1]


def test_two_builds_give_the_same_bytes(emitted: Emitted, tmp_path: Path) -> None:
    _, again = emit_network(_network(), target_of(8), tmp_path, jobs=2)
    assert [p.name for p in again.objects] == [p.name for p in emitted.objects]
    for one, two in zip(emitted.objects, again.objects, strict=True):
        assert one.read_bytes() == two.read_bytes(), one.name
    assert (again.build_id, again.weights, again.ops) == (emitted.build_id, emitted.weights, emitted.ops)
    assert again.memory == emitted.memory


def test_the_build_id_tells_networks_apart(emitted: Emitted, tmp_path: Path) -> None:
    """Other weights in the same kernels, another output, other vectors: each another id, in 63 bits."""
    ids = {emitted.build_id}
    for i, (mod, lanes) in enumerate(((_network(scale=2.0), 8), (_network(bias=True), 8), (_network(), 4))):
        folder = tmp_path / str(i)
        folder.mkdir()
        ids.add(emit_network(mod, target_of(lanes), folder)[1].build_id)
    assert len(ids) == 4 and all(0 <= i < 1 << 63 for i in ids)


def _symbols(path: Path) -> list[tuple[str, str]]:
    """Return (kind as nm prints it, name) of each symbol."""
    nm = shutil.which("nm") or shutil.which("llvm-nm")
    if nm is None:
        pytest.skip("nm is missing: install binutils")
    text = subprocess.run([nm, str(path)], capture_output=True, text=True, check=True).stdout
    return [tuple(line.split()[-2:]) for line in text.splitlines()]  # type: ignore[misc]


def test_symbols_start_with_the_models_prefix(emitted: Emitted) -> None:
    for path in emitted.objects:
        defined = {name for kind, name in _symbols(path) if kind not in "Ur" and not name.startswith(".L")}
        own = {name for name in defined if name.startswith("xnn_net_")}
        assert len(own) == 1 and defined - own <= WEAK, (path.name, defined)
    assert f"{emitted.objects[-1].stem.split('_', 1)[1]}" == "graph"


def test_nothing_is_wanted_but_the_c_library(emitted: Emitted) -> None:
    kernels = {name for path in emitted.objects for kind, name in _symbols(path) if kind == "T"}
    wanted = {name for path in emitted.objects for kind, name in _symbols(path) if kind == "U"}
    assert wanted - kernels <= LIBC | LIBM, wanted
    assert SYMBOL in kernels


def test_no_object_names_this_machine(emitted: Emitted) -> None:
    for path in emitted.objects:
        data = path.read_bytes()
        assert str(Path.home()).encode() not in data and str(path.parent).encode() not in data, path.name


def test_thread_scratch_is_the_most_that_any_kernel_asks_for(emitted: Emitted) -> None:
    from xnncc.transform.pipeline import lower_graph, prepare

    target = target_of(8)
    graph = lower_graph(prepare(_network()), target.machine, target.tvm_target())
    asked = []
    for func in graph.mod.functions.values():
        if isinstance(func, tvm.tirx.PrimFunc):
            lowered = lower_kernel(schedule_kernel(func, target.machine).func, "k", target.tvm_target())
            text = lowered.module.script()
            sizes = [int(n) for n in re.findall(r"AllocWorkspace\(\d+, \d+, T\.uint64\((\d+)\)", text)]
            assert text.count("TVMBackendAllocWorkspace") == len(sizes), "a request that was not counted"
            asked.append(sum(-(-n // 64) * 64 for n in sizes))
    assert emitted.memory.thread_scratch_bytes == max(asked) > 0


def test_operators_say_what_they_compute(emitted: Emitted) -> None:
    assert [op.index for op in emitted.ops] == list(range(len(emitted.ops)))
    by_source = {op.source[-1]: op for op in emitted.ops if op.source}
    conv = by_source["r"]
    assert conv.source == ("y", "r") and conv.rule == "conv2d" and conv.reason.startswith("analytic Config(")
    (out,) = conv.outputs
    assert (out.space, out.layout, out.shape) == ("arena", "NCHW8c", (1, 16, 10, 12)) and out.size == 16 * 120 * 4
    assert by_source["s"].outputs[0].space == "output" and by_source["s"].outputs[0].layout == "plain"


def test_macs_are_counted_once(tmp_path: Path) -> None:
    from xnncc.codegen.emit import KernelNote, Names, Scheduled, emit
    from xnncc.ir.cost import macs_by_tensor
    from xnncc.transform.pipeline import lower_graph, prepare

    mod, target = prepare(_network()), target_of(8)
    graph = lower_graph(mod, target.machine, target.tvm_target())
    kernels = {v.name_hint: schedule_kernel(f, target.machine) for v, f in graph.mod.functions.items()
               if isinstance(f, tvm.tirx.PrimFunc)}  # fmt: skip
    network = Scheduled(
        graph.mod["main"], {n: k.func for n, k in kernels.items()},
        {n: KernelNote(k.rule, k.reason) for n, k in kernels.items()},
        Names(graph.sources, graph.packed, macs_by_tensor(mod)),
    )  # fmt: skip
    done = emit([network], target.tvm_target(), SYMBOL, tmp_path)
    assert sum(op.macs for op in done.ops) == 16 * 120 * 27 + 16 * 120 * 9


def test_every_region_lies_inside_its_memory(emitted: Emitted) -> None:
    sizes = {"arena": emitted.memory.arena_bytes, "weights": emitted.memory.weights_bytes}
    for record in emitted.ops:
        for region in (*record.inputs, *record.outputs, *record.scratch):
            assert region.offset % 64 == 0
            if region.space in sizes:
                assert region.offset + region.size <= sizes[region.space], record.kernel
    assert len(emitted.weights) == emitted.memory.weights_bytes
    assert emitted.memory.peak_live_bytes <= emitted.memory.arena_bytes <= 1.1 * emitted.memory.peak_live_bytes
