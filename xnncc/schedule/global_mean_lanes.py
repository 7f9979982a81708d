"""Global pooling: up to four channel blocks together, so that four independent sums hide the latency of an addition."""

from __future__ import annotations

from dataclasses import dataclass

from tvm.s_tir.schedule import SBlockRV, Schedule

from ..ir.tiles import divisors
from ..target import Machine
from .blocks import extent, inline_tail

NAME = "global_mean"


@dataclass(frozen=True)
class Config:
    """``blocks`` channel blocks summed together at most."""

    blocks: int = 4


def space(n: dict[str, int], machine: Machine) -> list[Config]:
    """Return the one configuration there is."""
    return [Config()]


def apply(sch: Schedule, block: SBlockRV, n: dict[str, int], machine: Machine, cfg: Config) -> None:
    """Schedule the sum; what follows works on one pixel and is only vectorised."""
    out = inline_tail(sch, block)
    batch, c, i, r = sch.get_loops(block)
    co, ci = sch.split(c, [None, divisors(extent(sch, c), cfg.blocks)[-1]])
    sch.reorder(batch, co, r, ci, i)
    sch.vectorize(i)
    sch.unroll(ci)
    sch.parallel(sch.fuse(batch, co))
    init = sch.decompose_reduction(block, r)
    sch.vectorize(sch.get_loops(init)[-1])
    last = sch.get_loops(out)[-1]
    if extent(sch, last) == machine.lanes:
        sch.vectorize(last)
