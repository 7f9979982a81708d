"""A long window into few channels: ``t`` pixels of a row, each with a vector of float64 sums in registers.

for n, o, y, piece (parallel): for z:
    lanes[t x v] = 0
    for ci, kh, kb:  lanes[t] += x[pixel t, v taps] * weights[v taps]     t unrolled
    total[t] = sum over the lanes;  y = tail(total + bias)
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm.s_tir.schedule import SBlockRV, Schedule

from ..ir.tiles import divisors, row_pieces
from ..target import Machine
from .blocks import blocks_of, copy_pad, extent, output_block, pads, same, unroll_below

NAME = "conv2d_filter"


@dataclass(frozen=True)
class Config:
    """``t`` pixels together."""

    t: int


def space(n: dict[str, int], machine: Machine) -> list[Config]:
    """Return the tiles whose sums, two registers each, leave half of the registers for taps; the largest first."""
    return [Config(t) for t in reversed(divisors(8)) if 4 * t <= machine.registers or t == 1]


def apply(sch: Schedule, block: SBlockRV, n: dict[str, int], machine: Machine, cfg: Config) -> None:
    """Schedule the kernel around ``block``, the sums by lanes."""
    out = output_block(sch)
    total = sch.get_consumers(block)[0]
    for other in blocks_of(sch):
        if not any(same(sch, other, b) for b in (block, total, out, *pads(sch))):
            sch.compute_inline(other)
    batch, o, y, z, lane = sch.get_loops(total)
    zo, zi = sch.split(z, [None, cfg.t])
    outer = extent(sch, batch) * extent(sch, o) * extent(sch, y)
    piece, zo = sch.split(zo, [row_pieces(outer, extent(sch, zo)), None])
    sch.compute_at(block, zo, preserve_unit_loops=True)
    sch.reverse_compute_at(out, zo, preserve_unit_loops=True)
    for loop in (zi, lane):
        sch.unroll(loop)
    pixel, i, ci, kh, kb = sch.get_loops(block)[-5:]
    sch.reorder(ci, kh, kb, pixel, i)
    sch.vectorize(i)
    sch.unroll(pixel)
    for pad in pads(sch):
        copy_pad(sch, pad, machine.lanes)
    sch.parallel(sch.fuse(batch, o, y, piece))
    keep = len(sch.get_loops(total)) - 2  # zi, lane
    unroll_below(sch, sch.decompose_reduction(block, ci), keep)
    sch.unroll(sch.get_loops(sch.decompose_reduction(total, lane))[-1])
    for loop in sch.get_loops(out)[keep:]:
        sch.unroll(loop)
