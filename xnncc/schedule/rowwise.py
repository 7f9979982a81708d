"""Reductions along the last axis (softmax, layer norm): all stages of a row together, in L1, lanes across the row.

Each reduction is factored by lanes first, so that it adds whole vectors and sums across a vector once.
"""

from __future__ import annotations

from tvm.s_tir.schedule import SBlockRV, Schedule

from ..ir.tiles import divisors
from ..target import Machine
from .blocks import REDUCTION, blocks_of, extent, fuse_all, is_reduction, output_block, same

NAME = "rowwise"
LANE = "xnn.lane"


def vector_width(n: int, lanes: int) -> int:
    """Return how many of a row's n values one step takes: LLVM splits odd vectors, but they must divide the row."""
    return lanes if n % lanes == 0 else divisors(n, 2 * lanes)[-1]


def space(n: dict[str, int], machine: Machine) -> list[None]:
    """Return the one configuration there is."""
    return [None]


def apply(sch: Schedule, block: SBlockRV | None, n: dict[str, int], machine: Machine, cfg: None) -> None:
    """Schedule a kernel whose blocks share their leading axes, the rows."""
    for b in blocks_of(sch):
        kinds = [int(v.iter_type) for v in sch.get(b).iter_vars]
        if REDUCTION in kinds[:-1]:
            raise ValueError(f"'{sch.get(b).name_hint}' reduces another axis than the last")
    for b in blocks_of(sch):  # rfactor wants the reduction in a loop nest of its own, so it comes first
        if is_reduction(sch, b) and len(sch.get(b).writes) == 1:
            _factor_by_lanes(sch, b, machine.lanes)
    out = output_block(sch)
    *rows, _ = sch.get_loops(out)
    at = fuse_all(sch, rows)
    sch.parallel(at)
    for b in reversed(blocks_of(sch)):
        if not same(sch, b, out):
            sch.compute_at(b, at, preserve_unit_loops=True)
    for b in sch.get_child_blocks(at):
        _vectorise(sch, b, machine.lanes)


def _factor_by_lanes(sch: Schedule, block: SBlockRV, lanes: int) -> None:
    loops = sch.get_loops(block)
    size = extent(sch, loops[-1])
    width = vector_width(size, lanes)
    if size <= 2 * width or width == 1:
        return
    _, lane = sch.split(loops[-1], [None, width])
    factored = sch.rfactor(lane, len(loops) - 1)
    sch.annotate(factored, LANE, 1)
    if (
        width % 4 == 0 and width > 4
    ):  # across the vector in two steps: a chain of 16 additions waits longer than a row takes
        *_, across = sch.get_loops(block)
        _, quarter = sch.split(across, [None, 4])
        sch.annotate(sch.rfactor(quarter, len(loops) - 1), LANE, 1)


def _vectorise(sch: Schedule, block: SBlockRV, lanes: int) -> None:
    loops = sch.get_loops(block)
    if LANE in sch.get(block).annotations:
        lane = next(x for x in loops[1:-1] if extent(sch, x) > 1)  # compute_at put the lanes before the reduction
        sch.reorder(loops[-1], lane)
        sch.vectorize(lane)
        sch.decompose_reduction(block, loops[-1])
    elif not is_reduction(sch, block) and len(loops) > 1:
        size = extent(sch, loops[-1])
        width = vector_width(size, lanes)
        if size > lanes and size % lanes:  # whole vectors, and the rest by itself
            loops[-1], width = sch.loop_partition(loops[-1], [size - size % lanes, None])[0], lanes
        sch.vectorize(sch.split(loops[-1], [None, width])[1])
