"""Kernels with reductions that no other rule fits: block by block, vectors where memory is contiguous."""

from __future__ import annotations

from tvm.s_tir.schedule import SBlockRV, Schedule

from ..target import Machine
from .blocks import DATA_PARALLEL, blocks_of, extent, fuse_all, is_reduction
from .elementwise import PARALLEL_ELEMENTS, spread_loops

NAME = "reduction"
UNROLLED = 16


def space(n: dict[str, int], machine: Machine) -> list[None]:
    """Return the one configuration there is."""
    return [None]


def apply(sch: Schedule, block: SBlockRV | None, n: dict[str, int], machine: Machine, cfg: None) -> None:
    """Inline what can be inlined, then schedule each block on its own."""
    outs = {sch.get(o).name_hint for o in sch.get_output_blocks(sch.get_sblock("root"))}
    for b in blocks_of(sch):
        if not is_reduction(sch, b) and sch.get(b).name_hint not in outs and _has_reduction_consumer_only(sch, b):
            continue
        if not is_reduction(sch, b) and sch.get(b).name_hint not in outs:
            sch.compute_inline(b)
    for b in blocks_of(sch):
        if is_reduction(sch, b):
            _schedule_reduction(sch, b, machine)
        else:
            spread_loops(sch, b, machine)


def _has_reduction_consumer_only(sch: Schedule, block: SBlockRV) -> bool:
    """Whether ``block`` is a padded copy, which must not be recomputed for every tap that reads it."""
    return "pad" in str(sch.get(block).name_hint)


def _schedule_reduction(sch: Schedule, block: SBlockRV, machine: Machine) -> None:
    """Lanes along the last data-parallel axis when there is room, otherwise along the reduction."""
    kinds = [int(v.iter_type) for v in sch.get(block).iter_vars]
    loops = sch.get_loops(block)
    spatial = [x for x, kind in zip(loops, kinds, strict=True) if kind == DATA_PARALLEL]
    reduced = [x for x, kind in zip(loops, kinds, strict=True) if kind != DATA_PARALLEL]
    total = 1
    for loop in loops:
        total *= extent(sch, loop)
    lane = None
    if spatial and extent(sch, spatial[-1]) >= machine.lanes:
        size = extent(sch, spatial[-1])
        width = next((w for w in range(2 * machine.lanes, 1, -1) if size % w == 0), 1)
        outer, lane = sch.split(spatial[-1], [None, width])
        spatial = [*spatial[:-1], outer]
        sch.reorder(*spatial, *reduced, lane)
        if width > 1:
            sch.vectorize(lane)
    else:
        sch.reorder(*spatial, *reduced)
    if spatial and total >= PARALLEL_ELEMENTS:
        sch.parallel(fuse_all(sch, spatial))
    sch.decompose_reduction(block, reduced[0])
