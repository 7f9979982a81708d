"""Kernels without a reduction: everything inlined into the output, vectors along the last axis, parallel outside."""

from __future__ import annotations

from tvm.s_tir.schedule import SBlockRV, Schedule

from ..target import Machine
from .blocks import annotation, blocks_of, extent, fuse_all
from .rowwise import vector_width

NAME = "elementwise"
PARALLEL_ELEMENTS = 16384  # below this a launch costs more than it saves


def space(n: dict[str, int], machine: Machine) -> list[None]:
    """Return the one configuration there is."""
    return [None]


def apply(sch: Schedule, block: SBlockRV | None, n: dict[str, int], machine: Machine, cfg: None) -> None:
    """Schedule a kernel of elementwise and injective blocks with one or more outputs."""
    outs = sch.get_output_blocks(sch.get_sblock("root"))
    written = {sch.get(o).name_hint for o in outs}
    for b in blocks_of(sch):
        if sch.get(b).name_hint not in written:
            sch.compute_inline(b)
    for b in blocks_of(sch):
        spread_loops(sch, b, machine)


def spread_loops(sch: Schedule, block: SBlockRV, machine: Machine) -> None:
    """Vectorise the last loop of a data-parallel ``block`` and run the outer ones in parallel if it is large."""
    loops = sch.get_loops(block)
    if not loops:
        return
    total = 1
    for loop in loops:
        total *= extent(sch, loop)
    width = vector_width(extent(sch, loops[-1]), machine.lanes)
    if width > 1:
        sch.vectorize(sch.split(loops[-1], [None, width])[1])
    if annotation(sch, block).endswith("_weights"):
        # Made once, at open: one loop, or LLVM writes it out for each of the sums that an index chooses from.
        sch.parallel(fuse_all(sch, sch.get_loops(block)[: len(loops)]))
        return
    outer = sch.get_loops(block)[: len(loops) - 1]
    if outer and total >= PARALLEL_ELEMENTS:
        sch.parallel(fuse_all(sch, outer))
