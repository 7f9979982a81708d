"""Depthwise convolution: a channel block at a time, wt pixels of a row in registers, the window unrolled."""

from __future__ import annotations

from dataclasses import dataclass

from tvm.s_tir.schedule import SBlockRV, Schedule

from ..ir.tiles import divisors
from ..target import Machine
from .blocks import copy_pad, inline_tail, pads, unroll_below

NAME = "depthwise"
UNROLLED_TAPS = 25  # a 7x7 window of 8 pixels would be 392 FMAs in a row: its rows stay a loop


@dataclass(frozen=True)
class Config:
    """``wt`` pixels in registers; the padded copy is made for each output row (``pad_rows``) or for a whole plane."""

    wt: int
    pad_rows: bool


def space(n: dict[str, int], machine: Machine) -> list[Config]:
    """Return the configurations, the analytic choice first: a padded plane beyond L1 is made row by row."""
    most = machine.registers // 2 - 2
    widths = sorted((d for d in divisors(n["ow"], 16) if d <= most), key=lambda d: abs(d - 8))[:3]
    by_row = n["plane_bytes"] > machine.l1d_kib * 1024 or n["sh"] > 1
    return [Config(wt, rows) for rows in (by_row, not by_row) for wt in widths]


def apply(sch: Schedule, block: SBlockRV, n: dict[str, int], machine: Machine, cfg: Config) -> None:
    """Schedule the kernel around ``block``."""
    out = inline_tail(sch, block)
    batch, c, p, i, ky, kx = sch.get_loops(block)
    h, w, wi = sch.split(p, [n["oh"], n["ow"] // cfg.wt, cfg.wt])
    sch.reorder(batch, c, h, w, ky, kx, wi, i)
    sch.set_scope(block, 0, "local")
    sch.reverse_compute_at(out, w)
    sch.vectorize(i)
    for loop in (ky, kx, wi) if n["taps"] <= UNROLLED_TAPS else (kx, wi):
        sch.unroll(loop)
    for pad in pads(sch):
        copy_pad(sch, pad, machine.lanes, h if cfg.pad_rows else c)
    sch.parallel(sch.fuse(batch, c))
    keep = len(sch.get_loops(block)) - 4  # ky, kx, wi, i
    init = sch.decompose_reduction(block, ky)
    unroll_below(sch, init, keep)
    unroll_below(sch, out, keep)
