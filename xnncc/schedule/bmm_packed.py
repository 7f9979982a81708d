"""Two activations multiplied by batch; the second one is packed on the fly, columns padded to whole vectors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd

from tvm.s_tir.schedule import SBlockRV, Schedule

from ..ir.tiles import roomy_tiles, tiles
from ..target import Machine
from .blocks import copy_pad, extent, fuse_all, inline_tail, pads, read_lanes, unroll_below

NAME = "bmm"


@dataclass(frozen=True)
class Config:
    """``ob`` column blocks x ``mt`` rows in registers."""

    ob: int
    mt: int
    unroll: int = 1  # steps of the sum written out


def space(n: dict[str, int], machine: Machine) -> list[Config]:
    """Return the tiles of the analytic model, best first."""
    return [Config(ob, t) for ob, _, t in tiles(n["nb"], 1, n["m"], machine)[:6]]


def wider(n: dict[str, int], machine: Machine) -> list[Config]:
    """Return what tuning may try beside ``space``: every tile that fits or nearly fits, steps written out."""
    found = [Config(ob, t) for ob, _, t in roomy_tiles(n["nb"], 1, n["m"], machine)]
    return [*found, *(replace(c, unroll=u) for c in found for u in (2, 4, 8) if n["k"] % u == 0)]


def apply(sch: Schedule, block: SBlockRV, n: dict[str, int], machine: Machine, cfg: Config) -> None:
    """Schedule the product; its padded result is cropped by the tail in a second pass."""
    out = inline_tail(sch, block)
    h, m, j, k = sch.get_loops(block)
    mo, mi = sch.split(m, [None, cfg.mt])
    oo, oi, i = sch.split(j, [n["nb"] // cfg.ob, cfg.ob, None])
    sch.reorder(h, oo, mo, k, mi, oi, i)
    written = sch.cache_write(block, 0, "global")
    sch.reverse_compute_at(written, mo, preserve_unit_loops=True)
    sch.vectorize(sch.split(sch.get_loops(written)[-1], [cfg.ob, None])[1])
    sch.vectorize(i)
    sch.unroll(mi)
    sch.unroll(oi)
    if machine.multiplies_by_lane and n["k"] % machine.lanes == 0:
        k, lane = sch.split(k, [None, machine.lanes])
        read_lanes(sch, block, k)
        sch.unroll(lane)
        sch.reorder(oi, mi)
    elif cfg.unroll > 1:
        k, ki = sch.split(k, [None, cfg.unroll])
        sch.unroll(ki)
    for pad in pads(sch):
        copy_pad(sch, pad, machine.lanes)
    sch.parallel(sch.fuse(h, oo))
    init = sch.decompose_reduction(block, k)
    unroll_below(sch, init, 3)
    unroll_below(sch, written, 3)
    loops = sch.get_loops(out)
    sch.vectorize(sch.split(loops[-1], [None, gcd(extent(sch, loops[-1]), machine.lanes)])[1])
    if len(loops) > 1:
        sch.parallel(fuse_all(sch, loops[:-1]))
