"""The order of the graph passes, each place with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import relax

from ..ir.placement import CodedTable
from ..target import Machine
from .cancel_transposes import CancelTransposes
from .choose_conv import Chosen
from .fold_pad_into_conv import FoldPadIntoConv
from .fuse_kernels import fuse_kernels
from .plan_layouts import plan_layouts

PREPARE = [
    relax.transform.CanonicalizeBindings,  # first: no alias hides a pattern from the passes below
    CancelTransposes,  # before pads are folded: TensorFlow's stand between NHWC images
    FoldPadIntoConv,  # before layouts: a pad is free inside a convolution
]

LEGALISE = [
    relax.backend.DispatchSortScan,  # before LegalizeOps, which has no kernel for cumsum
    relax.transform.FastMathTransform,  # before LegalizeOps: exp and tanh as polynomials, not calls for each lane
    # Concatenations that are left are views of one buffer, reshapes always: the memory planner handles both.
    lambda: relax.transform.LegalizeOps(skip_ops=["relax.concat", "relax.reshape"]),
]


@dataclass(frozen=True)
class LoweredGraph:
    """``main`` as a flat list of kernel calls and views, and what its variables stand for."""

    mod: tvm.IRModule
    sources: dict[relax.Var, tuple[str, ...]]  # variable -> names of the model's tensors it completes, its own last
    packed: dict[relax.Var, tuple[tuple[int, ...], int]]  # variable -> logical NCHW shape, lanes
    notes: tuple[str, ...]
    convolutions: dict[str, Chosen]  # tensor of the model -> how the convolution that makes it runs


def prepare(mod: tvm.IRModule) -> tvm.IRModule:
    """Return ``mod`` simplified, with the same numbers."""
    return tvm.ir.transform.Sequential([make() for make in PREPARE])(mod)


def lower_graph(
    mod: tvm.IRModule,
    machine: Machine,
    target: tvm.target.Target,
    exact: bool = False,
    algorithms: Mapping[str, str] | None = None,
    coded: CodedTable | None = None,
) -> LoweredGraph:
    """Return ``mod`` as calls of fused kernels for ``machine``; the rest as in ``plan_layouts``."""
    planned = plan_layouts(mod, machine, exact, algorithms, coded)
    with target:
        legal = tvm.ir.transform.Sequential([make() for make in LEGALISE])(planned.mod)
        fused, names = fuse_kernels(legal)
    sources = {
        var: tuple(dict.fromkeys(s for n in inner for s in planned.sources.get(n, ()))) for var, inner in names.items()
    }
    packed = {var: planned.packed[inner[-1]] for var, inner in names.items() if inner and inner[-1] in planned.packed}
    return LoweredGraph(fused, sources, packed, planned.notes, planned.convolutions)


def recorded_algorithms(graph: LoweredGraph, records: Mapping[str, Any]) -> dict[str, str]:
    """Return kernel -> words for each convolution whose algorithm is that of its record in ``records``."""
    found = {}
    for block in graph.mod["main"].body.blocks:
        for binding in block.bindings:
            chosen = [graph.convolutions[s] for s in graph.sources.get(binding.var, ()) if s in graph.convolutions]
            for one in chosen:
                record = records.get(one.key)
                if record is not None and record.choice == one.algorithm:
                    found[binding.value.args[0].name_hint] = f"{one.algorithm} by {record.words}"
    return found
