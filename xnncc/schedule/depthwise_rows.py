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
    """``wt`` pixels in registers; the padded copy is made for ``rows`` output rows at a time."""

    wt: int
    rows: int


def space(n: dict[str, int], machine: Machine) -> list[Config]:
    """Return the configurations, the analytic choice first: as many rows as half of L1 holds padded, because the rows
    that two pieces share are copied twice."""
    most = machine.registers // 2 - 2
    widths = sorted((d for d in divisors(n["ow"], 16) if d <= most), key=lambda d: abs(d - 8))[:3]
    row_bytes = n["plane_bytes"] // n["ph"]
    fits = [d for d in divisors(n["oh"], 512) if ((d - 1) * n["sh"] + n["kh"]) * row_bytes <= machine.l1d_kib * 512]
    best = fits[-1] if fits else 1
    others = [d for d in (n["oh"], *reversed(fits[:-1]), 1) if d != best][:2]
    return [Config(wt, rows) for rows in (best, *dict.fromkeys(others)) for wt in widths]


def wider(n: dict[str, int], machine: Machine) -> list[Config]:
    """Return what tuning may try beside ``space``: every width that leaves a register or two, every piece."""
    widths = [d for d in divisors(n["ow"], 28) if d <= machine.registers - 2]
    return [Config(wt, rows) for rows in divisors(n["oh"], 512) for wt in reversed(widths[-5:])]


def apply(sch: Schedule, block: SBlockRV, n: dict[str, int], machine: Machine, cfg: Config) -> None:
    """Schedule the kernel around ``block``."""
    out = inline_tail(sch, block)
    batch, c, p, i, ky, kx = sch.get_loops(block)
    piece, h, w, wi = sch.split(p, [n["oh"] // cfg.rows, cfg.rows, n["ow"] // cfg.wt, cfg.wt])
    sch.reorder(batch, c, piece, h, w, ky, kx, wi, i)
    sch.reverse_compute_at(out, w)
    sch.vectorize(i)
    for loop in (ky, kx, wi) if n["taps"] <= UNROLLED_TAPS else (kx, wi):
        sch.unroll(loop)
    for pad in pads(sch):
        copy_pad(sch, pad, machine.lanes, piece)
    sch.parallel(sch.fuse(batch, c, piece))
    keep = len(sch.get_loops(block)) - 4  # ky, kx, wi, i
    init = sch.decompose_reduction(block, ky)
    unroll_below(sch, init, keep)
    unroll_below(sch, out, keep)
