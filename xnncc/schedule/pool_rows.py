"""Pooling: a channel block at a time, wt pixels of a row in registers."""

from __future__ import annotations

from dataclasses import dataclass

from tvm.s_tir.schedule import SBlockRV, Schedule

from ..ir.tiles import divisors
from ..target import Machine
from .blocks import copy_pad, inline_tail, output_block, pads, same, unroll_below

NAME = "pool"


@dataclass(frozen=True)
class Config:
    """``wt`` pixels in registers; the rows of the window written out too if ``is_flat``."""

    wt: int
    is_flat: bool = False


def space(n: dict[str, int], machine: Machine) -> list[Config]:
    """Return the widths that divide a row, widest first."""
    return [Config(d) for d in reversed(divisors(n["ow"], 8))]


def wider(n: dict[str, int], machine: Machine) -> list[Config]:
    """Return what tuning may try beside ``space``: more pixels, and the whole window written out."""
    widths = list(reversed(divisors(n["ow"], 14)))
    return [Config(d, is_flat) for is_flat in (True, False) for d in widths]


def apply(sch: Schedule, block: SBlockRV, n: dict[str, int], machine: Machine, cfg: Config) -> None:
    """Schedule the kernel around ``block``, which may be the output itself."""
    out = inline_tail(sch, block)
    batch, c, p, i, ky, kx = sch.get_loops(block)
    h, w, wi = sch.split(p, [n["oh"], n["ow"] // cfg.wt, cfg.wt])
    sch.reorder(batch, c, h, w, ky, kx, wi, i)
    if same(sch, block, out):
        sch.cache_write(block, 0, "global")
        out = output_block(sch)
    sch.reverse_compute_at(out, w)
    sch.vectorize(i)
    for loop in (ky, kx, wi) if cfg.is_flat else (kx, wi):
        sch.unroll(loop)
    for pad in pads(sch):
        copy_pad(sch, pad, machine.lanes, c)
    sch.parallel(sch.fuse(batch, c))
    keep = len(sch.get_loops(block)) - 4  # ky, kx, wi, i
    init = sch.decompose_reduction(block, ky)
    unroll_below(sch, init, keep)
    unroll_below(sch, out, keep)
