"""Strassen's products at a register tile: its seven partial sums stay in L1 until they are added to four outputs.

for pc (pieces): T = sums of the input's quadrants                    cb, t, all seven unrolled
  for oo (parallel), to:
    for e of 7:  acc[ti, oi] = sum over co, ci of T[e] * S[e];  Q[e] = acc
    y = sums of Q, bias, tail                                         oi, ti, the four quadrants unrolled
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tvm.s_tir.schedule import LoopRV, SBlockRV, Schedule
from tvm.tirx import Expr

from ..ir.tiles import roomy_tiles, tiles
from ..target import Machine
from .blocks import extent, read_lanes, stages_of, unroll_below

NAME = "strassen"
STAGES = ("inputs", "products", "sums")
SPREAD = 8  # from so many pieces on, threads share pieces, else the blocks of channels of one


@dataclass(frozen=True)
class Config:
    """A register tile of ``ob`` channel blocks x ``tt`` pixels; ``unroll`` input channels written out."""

    ob: int
    tt: int
    unroll: int = 1


def space(n: dict[str, int], machine: Machine) -> list[Config]:
    """Return the tiles of the analytic model, best first."""
    return [Config(ob, tt) for ob, _, tt in tiles(n["ob"], 1, n["half"], machine)[:6]]


def wider(n: dict[str, int], machine: Machine) -> list[Config]:
    """Return what tuning may try beside ``space``: every tile that fits or nearly fits, channels written out."""
    found = [Config(ob, tt) for ob, _, tt in roomy_tiles(n["ob"], 1, n["half"], machine)]
    return [*found, *(replace(c, unroll=u) for c in found for u in (2, 4) if n["ic"] // n["cb"] % u == 0)]


def apply(sch: Schedule, block: SBlockRV, n: dict[str, int], machine: Machine, cfg: Config) -> None:
    """Schedule the kernel around ``block``, the products."""
    stage, out = stages_of(sch, STAGES)
    pieces, oo, to = _quadrants(sch, out, stage["sums"], n, machine, cfg)
    products = stage["products"]
    sch.compute_at(products, to, preserve_unit_loops=True)
    _, e, oi, ti, i, co, ci = sch.get_loops(products)[-7:]
    sch.reorder(e, co, ci, ti, oi, i)
    written = sch.cache_write(products, 0, "global")
    sch.reverse_compute_at(written, e, preserve_unit_loops=True)
    steps = _multiply(sch, products, machine, cfg)
    pixels = _inputs(sch, stage["inputs"], pieces, machine)
    if extent(sch, pieces) >= SPREAD:
        sch.parallel(pieces)
    else:
        sch.parallel(pixels)
        sch.parallel(oo)
    keep = len(sch.get_loops(written)) - 3
    init = sch.decompose_reduction(products, steps)
    unroll_below(sch, init, keep)
    unroll_below(sch, written, keep)


def _quadrants(
    sch: Schedule, out: SBlockRV, sums: SBlockRV, n: dict[str, int], machine: Machine, cfg: Config
) -> tuple[LoopRV, LoopRV, LoopRV]:
    """Let the sums write the output, all four quadrants of a tile together; return the loops of pieces, channels and
    tiles. Where the last half is not full they write a buffer of their own, of which the image is cut."""
    blocks, half, v = n["ob"], n["half"], machine.lanes
    is_packed = len(sch.get_loops(out)) == 4

    def to_output(p: Expr, r: Expr, o: Expr, c: Expr, t: Expr, i: Expr) -> tuple[Expr, ...]:
        block, pixel = r * blocks + o, p * (2 * half) + c * half + t
        return (block, pixel, i) if is_packed else (pixel, block * v + i)

    sch.transform_layout(sums, ("write", 0), to_output)
    if 2 * half * n["pieces"] == n["pixels"]:
        sch.reverse_compute_inline(out)
    else:
        *outer, last = sch.get_loops(out)
        sch.parallel(sch.fuse(*outer))
        sch.vectorize(sch.split(last, [None, v])[1])
    piece, row, o, column, t, i = sch.get_loops(sums)
    oo, oi = sch.split(o, [None, cfg.ob])
    to, ti = sch.split(t, [None, cfg.tt])
    sch.reorder(piece, oo, to, oi, ti, row, column, i)
    for loop in (row, column):
        sch.unroll(loop)
    sch.vectorize(i)
    return piece, oo, to


def _multiply(sch: Schedule, products: SBlockRV, machine: Machine, cfg: Config) -> LoopRV:
    """Write the register tile out; return the outermost loop of the sum."""
    co, ci, ti, oi, i = sch.get_loops(products)[-5:]
    for loop in (ti, oi):
        sch.unroll(loop)
    sch.vectorize(i)
    if machine.multiplies_by_lane and extent(sch, ci) % machine.lanes == 0:
        steps, lane = sch.split(ci, [None, machine.lanes])
        read_lanes(sch, products, steps)
        sch.unroll(lane)
        sch.reorder(oi, ti)
    elif cfg.unroll > 1:
        sch.unroll(sch.split(ci, [None, cfg.unroll])[1])
    return co


def _inputs(sch: Schedule, inputs: SBlockRV, pieces: LoopRV, machine: Machine) -> LoopRV:
    """Make the seven sums of a vector of inputs together; return the loop over channel blocks and pixels."""
    sch.compute_at(inputs, pieces, preserve_unit_loops=True)
    e, c, t, i = sch.get_loops(inputs)[-4:]
    vectors, lane = sch.split(i, [None, machine.lanes])
    sch.reorder(c, t, vectors, e, lane)
    sch.unroll(e)
    sch.vectorize(lane)
    return sch.fuse(c, t)
