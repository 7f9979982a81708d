"""Compiles small Relax networks with the project's own stages and runs them through the real runtime.

Guards: the arena and the outputs are NaN before a run, so that whatever is read before it is written shows; canaries
stand behind the arena and every output, so that whatever is written too far shows.
"""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import tvm
from tvm import relax, tirx

from xnncc import pack
from xnncc.codegen.emit import Emitted, KernelNote, Names, Scheduled, emit
from xnncc.codegen.link import link_library
from xnncc.ir.plan import Region
from xnncc.kernels.packing import reference_unpack
from xnncc.schedule import schedule_kernel
from xnncc.target import Machine, Target, load_target
from xnncc.transform.pipeline import LoweredGraph, lower_graph, prepare

Build = Callable[..., relax.Var | list[relax.Var]]

SYMBOL = "xnn_net_graph"
CANARY = 64  # bytes
STEPS = ("packed", "phases", "padded", "copied")  # what PlanLayouts calls values that are no tensor of the model


class Options(ctypes.Structure):
    """xnnrt_options."""

    _fields_ = [
        ("threads", ctypes.c_int),
        ("arena", ctypes.c_void_p),
        ("arena_bytes", ctypes.c_size_t),
        ("core_mask", ctypes.c_uint64),
    ]


@dataclass
class Network:
    """A compiled network: what the stages made of it, and its outputs for the inputs it was built with."""

    graph: LoweredGraph
    emitted: Emitted
    outputs: list[np.ndarray]
    traced: dict[str, np.ndarray]  # tensor of the model -> what the operator that completes it left behind

    @property
    def kernels(self) -> list[str]:
        """Kernels in the order they run."""
        return [op.kernel for op in self.emitted.ops]

    @property
    def rules(self) -> list[str]:
        """Schedule rules in the order their kernels run."""
        return [op.rule for op in self.emitted.ops]


def target_of(lanes: int) -> Target:
    """Return this machine with vectors of ``lanes`` floats."""
    machine = Machine(lanes=8, registers=16, fma_latency=5) if lanes == 8 else Machine(lanes=lanes, registers=32)
    return replace(load_target("host"), machine=machine)


def emit_network(mod: tvm.IRModule, target: Target, folder: Path, jobs: int = 1) -> tuple[LoweredGraph, Emitted]:
    """Return ``mod`` lowered, scheduled and emitted into ``folder``, by the same stages as ``xnncc build``."""
    graph = lower_graph(prepare(mod), target.machine, target.tvm_target())
    kernels, notes = {}, {}
    for var, func in graph.mod.functions.items():
        if isinstance(func, tirx.PrimFunc):
            done = schedule_kernel(func, target.machine)
            kernels[var.name_hint], notes[var.name_hint] = done.func, KernelNote(done.rule, done.reason)
    kernels = dict(sorted(kernels.items()))
    names = Names(graph.sources, graph.packed, {})
    network = Scheduled(graph.mod["main"], kernels, notes, names)
    return graph, emit([network], target.tvm_target(), SYMBOL, folder, jobs)


def compile_and_run(mod: tvm.IRModule, *inputs: np.ndarray, lanes: int = 8, threads: int = 1) -> Network:
    """Compile ``mod`` for this machine and run it on ``inputs``."""
    target = target_of(lanes)
    with tempfile.TemporaryDirectory(prefix="xnncc-test-") as scratch:
        folder = Path(scratch)
        graph, emitted = emit_network(mod, target, folder)
        (library,) = (
            p for p in link_library(target, list(emitted.objects), SYMBOL, "net", folder) if p.suffix == ".so"
        )
        outputs, traced = _run(ctypes.CDLL(str(library)), mod["main"], emitted, inputs, threads)
    return Network(graph, emitted, outputs, traced)


def _run(
    dll: ctypes.CDLL, main: relax.Function, emitted: Emitted, inputs: Sequence[np.ndarray], threads: int
) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    ret = main.body.body.ty if hasattr(main.body, "body") else main.ret_ty
    out_types = list(ret.fields) if not isinstance(ret, relax.TensorType) else [ret]
    outs = [(tuple(int(d) for d in t.shape), str(t.dtype)) for t in out_types]
    package = _aligned_copy(
        pack.encode(
            pack.Package(
                name="net", target="host", build_id=emitted.build_id, arena_bytes=emitted.memory.arena_bytes,
                thread_scratch_bytes=emitted.memory.thread_scratch_bytes, prepared_bytes=emitted.memory.prepared_bytes,
                op_count=len(emitted.ops),
                inputs=tuple(pack.Tensor(f"in{i}", x.shape, str(x.dtype)) for i, x in enumerate(inputs)),
                outputs=tuple(pack.Tensor(f"out{i}", shape, dtype) for i, (shape, dtype) in enumerate(outs)),
                weights=emitted.weights,
            )
        )
    )  # fmt: skip
    size = ctypes.c_size_t()
    where = ctypes.c_void_p(package.ctypes.data), ctypes.c_size_t(package.nbytes)
    assert dll.xnnrt_arena_size(*where, threads, ctypes.byref(size)) == 0
    arena = _aligned_copy(bytes([255]) * (size.value + CANARY))
    net, options = ctypes.c_void_p(), Options(threads, arena.ctypes.data, size.value, 0)
    status = dll.xnnrt_open_memory(ctypes.byref(net), getattr(dll, SYMBOL), *where, ctypes.byref(options))
    assert status == 0, f"xnnrt_open_memory: status {status}"
    arena[:] = 255  # open may use it
    given = [np.ascontiguousarray(x) for x in inputs]
    buffers = [np.full(np.dtype(dtype).itemsize * int(np.prod(shape)) + CANARY, 255, "u1") for shape, dtype in outs]
    whole = [b.copy() for b in buffers]
    assert dll.xnnrt_run(net, _pointers(given), _pointers(whole)) == 0
    arena[: size.value] = 255
    traced = {}
    for i, op in enumerate(emitted.ops):  # once more, one operator at a time
        assert dll.xnnrt_run_ops(net, _pointers(given), _pointers(buffers), i, i + 1) == 0
        if op.source and len(op.outputs) == 1:
            traced[op.source[-1]] = _content(op.outputs[0], arena, buffers)
    dll.xnnrt_close(net)
    for i, (once, stepped) in enumerate(zip(whole, buffers, strict=True)):
        assert np.array_equal(once, stepped), f"output {i} differs when operators run one at a time"
    for what, buffer in (("the arena", arena), *((f"output {i}", b) for i, b in enumerate(buffers))):
        assert (buffer[-CANARY:] == 255).all(), f"a kernel wrote beyond {what}"
    for before, after in zip(inputs, given, strict=True):
        assert np.array_equal(before, after, equal_nan=before.dtype.kind == "f"), "a kernel wrote into an input"
    arrays = [b[:-CANARY].view(dtype).reshape(shape).copy() for b, (shape, dtype) in zip(buffers, outs, strict=True)]
    return arrays, traced


def _content(region: Region, arena: np.ndarray, outputs: list[np.ndarray]) -> np.ndarray:
    """Return the tensor in ``region`` in its logical shape."""
    memory = arena if region.space == "arena" else outputs[region.index]
    data = memory[region.offset : region.offset + region.size].view(region.dtype)
    if region.layout == "plain":
        return data.reshape(region.shape).copy()
    lanes = int(region.layout.removeprefix("NCHW").removesuffix("c"))
    n, c, h, w = region.shape
    return reference_unpack(data.reshape(n, -1, h * w, lanes), c, h, w).copy()


def _aligned_copy(data: bytes | bytearray) -> np.ndarray:
    """Return ``data`` as bytes at an address that is a multiple of 64."""
    raw = np.zeros(len(data) + 64, "u1")
    start = -raw.ctypes.data % 64
    view = raw[start : start + len(data)]
    view[:] = np.frombuffer(data, "u1")
    return view


def _pointers(arrays: Sequence[np.ndarray]) -> ctypes.Array:
    return (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))


def run_reference(mod: tvm.IRModule, *inputs: np.ndarray) -> list[np.ndarray]:
    """Return the outputs of ``mod`` by TVM alone: its legaliser, its virtual machine, nothing of ours."""
    target = tvm.target.Target({**load_target("host").tvm, "opt-level": 0})
    seq = [relax.transform.LegalizeOps(), relax.transform.DeadCodeElimination()]
    with target:
        legal = tvm.ir.transform.Sequential(seq)(mod)
        executable = relax.build(legal, target, exec_mode="bytecode")
    vm = relax.VirtualMachine(executable, tvm.cpu())
    result = vm["main"](*(tvm.runtime.tensor(x) for x in inputs))
    return [r.numpy() for r in result] if not isinstance(result, tvm.runtime.Tensor) else [result.numpy()]


def module(
    build: Build, *inputs: relax.Var, recorded: dict[str, relax.Var] | None = None, tuples: set[str] | None = None
) -> tvm.IRModule:
    """Return the module whose ``main(inputs)`` is what ``build(emit, *inputs)`` returns, as a tuple.

    ``emit(expr, name)`` adds a binding. With ``recorded`` every named tensor is an output too, after the real ones,
    and is noted there in that order; ``tuples`` gets the names of the other variables.
    """
    builder = relax.BlockBuilder()

    def add(expr: relax.Expr, name: str = "") -> relax.Var:
        var = builder.emit(expr, name)
        if recorded is not None and name and isinstance(var.ty, relax.TensorType):
            recorded[name] = var
        elif tuples is not None:
            tuples.add(name)
        return var

    with builder.function("main", list(inputs)):
        with builder.dataflow():
            results = build(add, *inputs)
            results = list(results) if isinstance(results, (list, tuple)) else [results]
            out = builder.emit_output(relax.Tuple([*results, *(recorded or {}).values()]))
        builder.emit_func_output(out)
    return builder.finalize()


def check(build: Build, *inputs: np.ndarray, lanes: int = 8, threads: int = 1, tolerance: float = 1e-5) -> Network:
    """Compile and run what ``build`` makes, and compare its outputs and every tensor that an operator claims to
    complete with TVM alone. ``tolerance`` bounds max |ours - theirs| / max |theirs|: float32 sums in another order
    over a few layers, and polynomials instead of libm."""
    variables = [variable(f"in{i}", x.shape, str(x.dtype)) for i, x in enumerate(inputs)]
    network = compile_and_run(module(build, *variables), *inputs, lanes=lanes, threads=threads)
    recorded: dict[str, relax.Var] = {}
    tuples: set[str] = set()
    expected = run_reference(module(build, *variables, recorded=recorded, tuples=tuples), *inputs)
    outputs = expected[: len(network.outputs)]
    assert len(expected) == len(outputs) + len(recorded)
    for i, (found, wanted) in enumerate(zip(network.outputs, outputs, strict=True)):
        _compare(f"output {i}", found, wanted, tolerance)
    tensors = dict(zip(recorded, expected[len(outputs) :], strict=True))
    for name, found in network.traced.items():
        # "lv" is what the block builder calls the inner parts of a nested expression
        known = {*tensors, *tuples, *STEPS}
        assert name in known or name.startswith(("in", "lv")), f"'{name}' is no tensor of the network"
        if name in tensors:
            _compare(f"tensor '{name}'", found.reshape(tensors[name].shape), tensors[name], tolerance)
    return network


def _compare(what: str, found: np.ndarray, wanted: np.ndarray, tolerance: float) -> None:
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), what
    if found.dtype.kind != "f":
        assert np.array_equal(found, wanted), what
        return
    scale = max(float(np.abs(wanted).max()), 1e-6) if wanted.size else 1.0
    error = float(np.abs(found.astype("f8") - wanted).max() / scale) if wanted.size else 0.0
    assert error <= tolerance, f"{what}: relative error {error}"  # a NaN fails too


def variable(name: str, shape: tuple[int, ...], dtype: str = "float32") -> relax.Var:
    """Return an input of ``module``."""
    return relax.Var(name, relax.TensorType(shape, dtype))
