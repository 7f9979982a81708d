"""Rows times packed weights: a register tile of mt rows x ob column blocks, the tail at the tile."""

from __future__ import annotations

from dataclasses import dataclass

from tvm.s_tir.schedule import SBlockRV, Schedule

from ..ir.tiles import tiles
from ..target import Machine
from .blocks import inline_tail, unroll_below

NAME = "gemm"


@dataclass(frozen=True)
class Config:
    """``ob`` column blocks x ``mt`` rows in registers."""

    ob: int
    mt: int


def space(n: dict[str, int], machine: Machine) -> list[Config]:
    """Return the tiles of the analytic model, best first."""
    return [Config(ob, t) for ob, _, t in tiles(n["nb"], 1, n["m"], machine)[:6]]


def apply(sch: Schedule, block: SBlockRV, n: dict[str, int], machine: Machine, cfg: Config) -> None:
    """Schedule the kernel around ``block``."""
    out = inline_tail(sch, block)
    m, j, k = sch.get_loops(block)
    mo, mi = sch.split(m, [None, cfg.mt])
    oo, oi, i = sch.split(j, [n["nb"] // cfg.ob, cfg.ob, None])
    sch.reorder(oo, mo, k, mi, oi, i)
    sch.set_scope(block, 0, "local")
    sch.reverse_compute_at(out, mo, preserve_unit_loops=True)
    sch.vectorize(sch.split(sch.get_loops(out)[-1], [cfg.ob, None])[1])
    sch.vectorize(i)
    sch.unroll(mi)
    sch.unroll(oi)
    sch.parallel(oo)
    init = sch.decompose_reduction(block, k)
    unroll_below(sch, init, 2)
    unroll_below(sch, out, 2)
