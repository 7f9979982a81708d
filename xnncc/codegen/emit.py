"""Scheduled kernels and a flat ``main`` -> object files, the weights blob and the plan of the network.

Every kernel and the graph function become an object of their own: in one LLVM module with its callers a kernel is
unrolled differently, up to twice slower, and objects compile in parallel. A symbol starts with the model's prefix, so
that two models link into one binary. The variants of a network (the same one for other input shapes) share kernels,
weights and the graph function.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tvm
from tvm import relax, tirx

from ..ir.plan import MemoryPlan, OpRecord, Region
from .graph_function import graph_function, graph_module
from .lower_kernel import LoweredKernel, lower_kernel
from .plan_memory import Buffer, Call, Layout, Operand, Shared, plan_memory
from .share_kernels import share_kernels

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class KernelNote:
    """What the schedule stage says of a kernel."""

    rule: str
    reason: str


@dataclass(frozen=True)
class Plan:
    """One variant of the network: its operators in order, and its memory."""

    ops: tuple[OpRecord, ...]
    memory: MemoryPlan


@dataclass(frozen=True)
class Emitted:
    """Everything that the linker and the package need. ``objects`` in a fixed order, the graph function last.

    ``further_weights_bytes`` of the weights are read by none but the variants after the first.
    """

    objects: tuple[Path, ...]
    weights: bytes
    build_id: int
    plans: tuple[Plan, ...]
    further_weights_bytes: int
    constants: Mapping[int, np.ndarray]  # what is in ``weights``, by offset

    @property
    def ops(self) -> tuple[OpRecord, ...]:
        """The operators of the first variant."""
        return self.plans[0].ops

    @property
    def memory(self) -> MemoryPlan:
        """The memory of the first variant."""
        return self.plans[0].memory


@dataclass(frozen=True)
class Names:
    """What variables of ``main`` stand for: model tensors, their MACs, and packed shapes."""

    sources: Mapping[relax.Var, tuple[str, ...]]
    packed: Mapping[relax.Var, tuple[tuple[int, ...], int]]  # variable -> logical NCHW shape, lanes
    macs: Mapping[str, int]  # tensor of the model -> multiply-adds


@dataclass(frozen=True)
class Scheduled:
    """One variant before it is emitted: a flat ``main``, its kernels by name, and what is known of both."""

    main: relax.Function
    kernels: Mapping[str, tirx.PrimFunc]
    notes: Mapping[str, KernelNote]
    names: Names


def emit(
    networks: Sequence[Scheduled],
    target: tvm.target.Target,
    symbol: str,
    out: Path,
    jobs: int = 2,
    progress: Progress = lambda text, done, total: None,
) -> Emitted:
    """Write an object for each kernel and one for the graph function ``symbol`` into folder ``out``.

    ``networks`` are the variants: their inputs and outputs have the same names and dtypes.
    """
    prefix = symbol.removesuffix("graph")
    kernels, names_of = share_kernels([network.kernels for network in networks])
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
    shared = Shared()
    layouts = [
        plan_memory(network.main, lambda kernel: lowered[kernel].scratch_bytes, shared, shared_names.__getitem__)
        for network, shared_names in zip(networks, names_of, strict=True)
    ]
    build_id = _build_id(layouts, objects, str(target))
    func = graph_function(layouts, len(networks[0].main.params), prefix, symbol, build_id)
    objects.append(out / f"{total:04d}_graph.o")
    _write_object(graph_module(func, target), target, objects[-1])
    thread_scratch = max((k.thread_scratch_bytes for k in lowered.values()), default=0)
    weights = layouts[-1].weights
    plans = tuple(
        _plan(network, layout, shared_names, thread_scratch, len(weights), shared.prepared_bytes)
        for network, layout, shared_names in zip(networks, layouts, names_of, strict=True)
    )
    return Emitted(
        tuple(objects), weights, build_id, plans, len(weights) - len(layouts[0].weights), shared.weights.arrays
    )


def _plan(
    network: Scheduled,
    layout: Layout,
    shared_names: Mapping[str, str],
    thread_scratch_bytes: int,
    weights_bytes: int,
    prepared_bytes: int,
) -> Plan:
    """Return what the report and the package say of a variant."""
    memory = MemoryPlan(
        layout.arena_bytes, thread_scratch_bytes, weights_bytes, layout.peak_live_bytes, layout.lives, prepared_bytes
    )
    notes = {shared_names[name]: note for name, note in network.notes.items()}
    macs = dict(network.names.macs)
    return Plan(tuple(_record(i, c, notes, network.names, macs) for i, c in enumerate(layout.calls)), memory)


def _write_object(mod: tvm.IRModule, target: tvm.target.Target, path: Path) -> None:
    tvm.get_global_func("target.build.llvm")(mod, target).write_to_file(str(path))


def _build_id(layouts: Sequence[Layout], objects: list[Path], target: str) -> int:
    """Return 63 bits of a hash over everything that library and package must agree on."""
    digest = hashlib.sha256(target.encode())
    digest.update(layouts[-1].weights)
    for path in objects:
        digest.update(path.read_bytes())
    for layout in layouts:
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
