"""Direct packed convolution in register tiles; with a long reduction over few pixels, the reduction in passes.

for n, hc, oo (parallel): for hr, w:
    acc[ob x ht x wt] = 0
    for co, kh, kw, ci:  acc[hi, wi, oi] += x[pixel hi, wi] * weights[oi]     all three unrolled
    y = tail(acc + bias)
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from tvm.s_tir.schedule import SBlockRV, Schedule

from ..ir.tiles import divisors, tiles
from ..target import Machine
from .blocks import copy_pad, inline_tail, pads, unroll_below

NAME = "conv2d"
FEW_PIXELS = 196  # up to a 14 x 14 image the weights, not the input, are what does not fit


@dataclass(frozen=True)
class Config:
    """ob channel blocks x (ht x wt) pixels in registers; ``chunk`` pieces of the image, all channels of one before the
    next; ``pass_blocks`` input blocks in one pass (0: all of them, sums stay in registers)."""

    ob: int
    ht: int
    wt: int
    chunk: int = 1
    pass_blocks: int = 0


def space(n: dict[str, int], machine: Machine) -> list[Config]:
    """Return at most a dozen configurations, the analytic choice first."""
    found = []
    for ob, ht, wt in tiles(n["ob"], n["oh"], n["ow"], machine)[:5]:
        passes = _in_passes(n, machine, ob, wt) if ht == 1 else []
        pieces = _in_pieces(n, machine, ob, ht, wt)
        whole = [Config(ob, ht, wt)]
        far = n["x_bytes"] > max(machine.l2_kib, machine.l3_kib) * 512
        small = n["oh"] * n["ow"] <= FEW_PIXELS
        found += passes + whole + pieces if small else pieces + whole + passes if far else whole + passes + pieces
    return found[:12]


def _in_pieces(n: dict[str, int], machine: Machine, ob: int, ht: int, wt: int) -> list[Config]:
    """Return the configuration that keeps a piece of the input in half of L2 while all channels use it. With few
    passes over the input it gains nothing."""
    rows = n["ow"] // wt if n["oh"] == 1 else n["oh"] // ht
    wanted = ceil(n["x_bytes"] / (machine.l2_kib * 512))
    chunk = next((d for d in divisors(rows, 4096) if d >= wanted), rows)
    return [Config(ob, ht, wt, chunk)] if n["ob"] // ob >= 4 and 1 < chunk <= 2 * wanted else []


def _in_passes(n: dict[str, int], machine: Machine, ob: int, wt: int) -> list[Config]:
    """Return configurations for weights beyond L1: those of one pass stay there while the pixels of a chunk use them,
    whose partial sums stay in a part of it too."""
    v, l1 = machine.lanes, machine.l1d_kib * 1024
    if 4 * n["ic"] * n["taps"] * ob * v <= l1 or n["ib"] == 1:
        return []
    pixels = n["oh"] * n["ow"]
    rows = n["ow"] // wt if n["oh"] == 1 else n["oh"]
    chunks = [d for d in divisors(rows, 4096) if 4 * ob * v * pixels // d <= l1 * 3 // 4]
    passes = [d for d in divisors(n["ib"]) if 4 * ob * d * n["taps"] * v * v <= l1 * 2 // 3]
    if not chunks or not passes or pixels // chunks[0] < 4 * wt:
        return []
    return [Config(ob, 1, wt, chunks[0], d) for d in reversed(passes[-2:])]


def apply(sch: Schedule, block: SBlockRV, n: dict[str, int], machine: Machine, cfg: Config) -> None:
    """Schedule the kernel around ``block``. Order matters: parallel before decompose_reduction."""
    out = inline_tail(sch, block)
    batch, o, p, i, co, kh, kw, ci = sch.get_loops(block)
    oo, oi = sch.split(o, [None, cfg.ob])
    h, hi, w, wi = sch.split(p, [n["oh"] // cfg.ht, cfg.ht, n["ow"] // cfg.wt, cfg.wt])
    if n["oh"] == 1:
        hc, w = sch.split(w, [cfg.chunk, None])
    else:
        hc, h = sch.split(h, [cfg.chunk, None])
    if cfg.pass_blocks:
        cc, ck = sch.split(co, [None, cfg.pass_blocks])
        sch.reorder(batch, hc, oo, cc, h, w, ck, kh, kw, ci, hi, wi, oi, i)
        sch.reverse_compute_at(out, oo)
        first = cc
    else:
        # wi outside oi: one broadcast lives at a time and the ob weight vectors stay, so nothing spills.
        sch.reorder(batch, hc, oo, h, w, co, kh, kw, ci, hi, wi, oi, i)
        sch.set_scope(block, 0, "local")
        sch.reverse_compute_at(out, w)
        first = co
    sch.vectorize(i)
    for loop in (hi, wi, oi):
        sch.unroll(loop)
    for pad in pads(sch):
        copy_pad(sch, pad, machine.lanes)
    sch.parallel(sch.fuse(batch, hc, oo))
    inner = 8  # co, kh, kw, ci, hi, wi, oi, i
    keep = len(sch.get_loops(block)) - inner
    init = sch.decompose_reduction(block, first)
    for part in (init, out):
        if cfg.pass_blocks:
            sch.vectorize(sch.get_loops(part)[-1])
        else:
            unroll_below(sch, part, keep)
