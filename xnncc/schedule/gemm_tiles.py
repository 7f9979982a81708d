"""Rows times packed weights: a register tile of mt rows x ob column blocks, the tail at the tile."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tvm.s_tir.schedule import SBlockRV, Schedule

from ..ir.tiles import divisors, roomy_tiles, row_pieces, tiles
from ..target import Machine
from .blocks import extent, inline_tail, read_lanes, unroll_below

NAME = "gemm"


@dataclass(frozen=True)
class Config:
    """``ob`` column blocks x ``mt`` rows in registers; the sum in passes of ``k_pass`` (0: all at once, sums stay in
    registers), so that the weights of a pass stay in L1; ``unroll`` steps of it written out."""

    ob: int
    mt: int
    k_pass: int = 0
    unroll: int = 1


def space(n: dict[str, int], machine: Machine) -> list[Config]:
    """Return the tiles of the analytic model, best first."""
    return [Config(ob, t) for ob, _, t in tiles(n["nb"], 1, n["m"], machine)[:6]]


def wider(n: dict[str, int], machine: Machine) -> list[Config]:
    """Return what tuning may try beside ``space``: every tile that fits or nearly fits, passes, steps written out."""
    found = [Config(ob, t) for ob, _, t in roomy_tiles(n["nb"], 1, n["m"], machine)]
    row = 4 * machine.lanes
    passes = [d for d in divisors(n["k"], 4096) if d >= 32 and d < n["k"]]
    fits = {c: [d for d in passes if c.ob * d * row <= machine.l1d_kib * 1024 * 2 // 3] for c in found}
    in_passes = [replace(c, k_pass=d) for c in found[:6] for d in fits[c][-2:]]
    found += in_passes
    return [*found, *(replace(c, unroll=u) for c in found for u in (2, 4, 8) if (c.k_pass or n["k"]) % u == 0)]


def apply(sch: Schedule, block: SBlockRV, n: dict[str, int], machine: Machine, cfg: Config) -> None:
    """Schedule the kernel around ``block``."""
    out = inline_tail(sch, block)
    m, j, k = sch.get_loops(block)
    pieces = 1 if cfg.k_pass else row_pieces(n["nb"] // cfg.ob, n["m"] // cfg.mt)
    mp, mo, mi = sch.split(m, [pieces, None, cfg.mt])
    oo, oi, i = sch.split(j, [n["nb"] // cfg.ob, cfg.ob, None])
    if cfg.k_pass:
        first, k = sch.split(k, [None, cfg.k_pass])
        sch.reorder(oo, mp, first, mo, k, mi, oi, i)
        sch.reverse_compute_at(out, mp, preserve_unit_loops=True)
    else:
        sch.reorder(oo, mp, mo, k, mi, oi, i)
        sch.reverse_compute_at(out, mo, preserve_unit_loops=True)
    sch.vectorize(sch.split(sch.get_loops(out)[-1], [cfg.ob, None])[1])
    sch.vectorize(i)
    sch.unroll(mi)
    sch.unroll(oi)
    if machine.multiplies_by_lane and extent(sch, k) % machine.lanes == 0:
        steps, lane = sch.split(k, [None, machine.lanes])
        read_lanes(sch, block, steps)
        sch.unroll(lane)
        sch.reorder(oi, mi)
    elif cfg.unroll > 1:
        sch.unroll(sch.split(k, [None, cfg.unroll])[1])
    sch.parallel(sch.fuse(oo, mp))
    if not cfg.k_pass:
        first = sch.get_loops(block)[2]
    init = sch.decompose_reduction(block, first)
    if cfg.k_pass:
        sch.vectorize(sch.get_loops(init)[-1])
        return
    unroll_below(sch, init, 2)
    unroll_below(sch, out, 2)
