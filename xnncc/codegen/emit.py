"""Scheduled kernels and a flat ``main`` -> object files, the weights blob and the plan of the network.

Every kernel and the graph function become an object of their own: in one LLVM module with its callers a kernel is
unrolled differently, up to twice slower, and objects compile in parallel. A symbol starts with the model's prefix, so
that two models link into one binary.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import tvm
from tvm import relax, tirx

from ..ir.plan import MemoryPlan, OpRecord, Region
from .graph_function import graph_function, graph_module
from .lower_kernel import LoweredKernel, lower_kernel
from .plan_memory import Buffer, Call, Layout, Operand, plan_memory

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class KernelNote:
    """What the schedule stage says of a kernel."""

    rule: str
    reason: str


@dataclass(frozen=True)
class Emitted:
    """Everything that the linker and the package need. ``objects`` in a fixed order, the graph function last."""

    objects: tuple[Path, ...]
    weights: bytes
    build_id: int
    ops: tuple[OpRecord, ...]
    memory: MemoryPlan


@dataclass(frozen=True)
class Names:
    """What variables of ``main`` stand for: model tensors, their MACs, and packed shapes."""

    sources: Mapping[relax.Var, tuple[str, ...]]
    packed: Mapping[relax.Var, tuple[tuple[int, ...], int]]  # variable -> logical NCHW shape, lanes
    macs: Mapping[str, int]  # tensor of the model -> multiply-adds


def emit(
    main: relax.Function,
    kernels: Mapping[str, tirx.PrimFunc],
    notes: Mapping[str, KernelNote],
    names: Names,
    target: tvm.target.Target,
    symbol: str,
    out: Path,
    jobs: int = 2,
    progress: Progress = lambda text, done, total: None,
) -> Emitted:
    """Write an object for each of ``kernels`` and one for the graph function ``symbol`` into folder ``out``."""
    prefix = symbol.removesuffix("graph")
    total = len(kernels)

    def compile_kernel(item: tuple[int, str]) -> tuple[str, Path, LoweredKernel]:
        index, name = item
        lowered = lower_kernel(kernels[name], prefix + name, target)
        path = out / f"{index:04d}_{name}.o"
        _write_object(lowered.module, target, path)
        return name, path, lowered

    objects: list[Path] = []
    lowered: dict[str, LoweredKernel] = {}
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        for name, path, kernel in pool.map(compile_kernel, enumerate(kernels)):
            lowered[name] = kernel
            objects.append(path)
            progress("compiling kernels", len(objects), total)
    layout = plan_memory(main, lambda kernel: lowered[kernel].scratch_bytes)
    build_id = _build_id(layout, objects, str(target))
    func = graph_function(layout, len(main.params), prefix, symbol, build_id)
    objects.append(out / f"{total:04d}_graph.o")
    _write_object(graph_module(func, target), target, objects[-1])
    thread_scratch = max((k.thread_scratch_bytes for k in lowered.values()), default=0)
    memory = MemoryPlan(
        layout.arena_bytes,
        thread_scratch,
        len(layout.weights),
        layout.peak_live_bytes,
        layout.lives,
        layout.prepared_bytes,
    )
    macs = dict(names.macs)
    ops = tuple(_record(i, call, notes, names, macs) for i, call in enumerate(layout.calls))
    return Emitted(tuple(objects), layout.weights, build_id, ops, memory)


def _write_object(mod: tvm.IRModule, target: tvm.target.Target, path: Path) -> None:
    tvm.get_global_func("target.build.llvm")(mod, target).write_to_file(str(path))


def _build_id(layout: Layout, objects: list[Path], target: str) -> int:
    """Return 63 bits of a hash over everything that library and package must agree on."""
    digest = hashlib.sha256(target.encode())
    digest.update(layout.weights)
    for path in objects:
        digest.update(path.read_bytes())
    digest.update(repr((layout.arena_bytes, layout.prepared_bytes, [o.shape for o in layout.outputs])).encode())
    for call in (*layout.opening, *layout.calls):
        places = [_region(o) for o in (*call.inputs, *call.outputs)] + [_scratch(b) for b in call.scratch]
        digest.update(repr((call.kernel, places)).encode())
    return int.from_bytes(digest.digest()[:8], "little") >> 1


def _record(index: int, call: Call, notes: Mapping[str, KernelNote], names: Names, macs: dict[str, int]) -> OpRecord:
    """Return what the report says of a call; ``macs`` are counted for the first operator that names their tensor."""
    note = notes[call.kernel]
    source = names.sources.get(call.var, ())
    packed = names.packed.get(call.var)
    return OpRecord(
        index=index,
        kernel=call.kernel,
        rule=note.rule,
        reason=note.reason,
        source=source,
        macs=sum(macs.pop(s, 0) for s in source),
        inputs=tuple(_region(o) for o in call.inputs),
        outputs=tuple(_region(o, packed) for o in call.outputs),
        scratch=tuple(_scratch(b) for b in call.scratch),
    )


def _region(operand: Operand, packed: tuple[tuple[int, ...], int] | None = None) -> Region:
    shape, layout = operand.shape, "plain"
    if packed is not None:
        shape, layout = packed[0], f"NCHW{packed[1]}c"
    if operand.weight >= 0:
        space, offset, index = "weights", operand.weight, 0
    elif operand.input >= 0:
        space, offset, index = "input", 0, operand.input
    else:
        assert operand.buffer is not None
        root, shift = operand.buffer.root()
        if root.output >= 0:
            space, offset, index = "output", shift, root.output
        else:
            space, offset, index = "prepared" if root.is_prepared else "arena", root.place + shift, 0
    return Region(space, offset, operand.size, index, tuple(shape), operand.dtype, layout)


def _scratch(buffer: Buffer) -> Region:
    return Region("arena", buffer.place, buffer.size, dtype="uint8", shape=(buffer.size,))
