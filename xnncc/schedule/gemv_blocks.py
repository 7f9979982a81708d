"""Vector times packed weights: bandwidth bound, so several column blocks stream at once and k is unrolled by four."""

from __future__ import annotations

from dataclasses import dataclass

from tvm.s_tir.schedule import SBlockRV, Schedule

from ..ir.tiles import divisors
from ..target import Machine
from .blocks import extent, inline_tail, unroll_below

NAME = "gemv"


@dataclass(frozen=True)
class Config:
    """``ob`` column blocks together."""

    ob: int
    unroll: int = 4  # steps of the sum written out, if they divide it


def space(n: dict[str, int], machine: Machine) -> list[Config]:
    """Return the block counts that divide, most first."""
    return [Config(d) for d in reversed(divisors(n["nb"], 8))]


def wider(n: dict[str, int], machine: Machine) -> list[Config]:
    """Return what tuning may try beside ``space``: more blocks, and other steps."""
    return [Config(d, u) for u in (4, 1, 2, 8, 16) if n["k"] % u == 0 for d in reversed(divisors(n["nb"], 14))]


def apply(sch: Schedule, block: SBlockRV, n: dict[str, int], machine: Machine, cfg: Config) -> None:
    """Schedule the kernel around ``block``; the small tail follows on its own."""
    out = inline_tail(sch, block)
    o, i, k = sch.get_loops(block)
    oo, oi = sch.split(o, [None, cfg.ob])
    ko, ki = sch.split(k, [None, cfg.unroll if n["k"] % cfg.unroll == 0 else 1])
    sch.reorder(oo, ko, ki, oi, i)
    sch.unroll(ki)
    sch.vectorize(i)
    sch.unroll(oi)
    sch.parallel(oo)
    init = sch.decompose_reduction(block, ko)
    unroll_below(sch, init, 1)
    last = sch.get_loops(out)[-1]
    if extent(sch, last) % machine.lanes == 0:
        sch.vectorize(sch.split(last, [None, machine.lanes])[1])
