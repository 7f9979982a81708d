"""Direct packed convolution in register tiles; with a long reduction over few pixels, the reduction in passes.

for n, hc, oo, hp (parallel): for hr, w:
    acc[ob x ht x wt] = 0
    for co, kh, kw, ci:  acc[hi, wi, oi] += x[pixel hi, wi] * weights[oi]     all three unrolled
    y = tail(acc + bias)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from tvm.s_tir.schedule import SBlockRV, Schedule

from ..ir.tiles import divisors, roomy_tiles, row_pieces, tiles
from ..target import Machine
from .blocks import blocks_of, copy_pad, extent, inline_tail, pads, read_lanes, unroll_below

NAME = "conv2d"
FEW_PIXELS = 196  # up to a 14 x 14 image the weights, not the input, are what does not fit


@dataclass(frozen=True)
class Config:
    """ob channel blocks x (ht x wt) pixels in registers; ``chunk`` pieces of the image, all channels of one before the
    next; ``pass_blocks`` input blocks in one pass (0: all of them, sums stay in registers); ``unroll`` input channels
    written out; ``taps_outside`` runs all input channels of a tap of the window before the next tap."""

    ob: int
    ht: int
    wt: int
    chunk: int = 1
    pass_blocks: int = 0
    unroll: int = 1
    taps_outside: bool = False


def space(n: dict[str, int], machine: Machine) -> list[Config]:
    """Return at most a dozen configurations, the analytic choice first."""
    if "turns" in n:
        return _by_window_rows(n, machine)[:12]
    found = []
    for ob, ht, wt in tiles(n["ob"], n["oh"], n["ow"], machine)[:5]:
        passes = _in_passes(n, machine, ob, wt) if ht == 1 else []
        pieces = _in_pieces(n, machine, ob, ht, wt)
        whole = [Config(ob, ht, wt)]
        far = n["x_bytes"] > max(machine.l2_kib, machine.l3_kib) * 512
        small = n["oh"] * n["ow"] <= FEW_PIXELS
        found += passes + whole + pieces if small else pieces + whole + passes if far else whole + passes + pieces
    return found[:12]


def wider(n: dict[str, int], machine: Machine) -> list[Config]:
    """Return what tuning may try beside ``space``: every tile that fits or nearly fits, and all its variants."""
    if "turns" in n:
        return _by_window_rows(n, machine)
    found = []
    for ob, ht, wt in roomy_tiles(n["ob"], n["oh"], n["ow"], machine):
        passes = _in_passes(n, machine, ob, wt, most=4) if ht == 1 else []
        found += [Config(ob, ht, wt), *_in_pieces(n, machine, ob, ht, wt), *passes]
    pixels = n["oh"] * n["ow"]
    rows = n["ow"] if n["oh"] == 1 else n["oh"]
    for base in found[:8]:
        if base.chunk == 1 and not base.pass_blocks and n["ob"] // base.ob > 1 and pixels > 64:
            steps = rows // (base.wt if n["oh"] == 1 else base.ht)
            found += [replace(base, chunk=d) for d in divisors(steps, 64)[1:4]]
    written_out = [replace(c, unroll=u) for c in found for u in (2, 4, 8) if n["ic"] // n["ib"] % u == 0]
    by_taps = [replace(c, taps_outside=True) for c in found if n["taps"] > 1 and n["ib"] > 1 and not c.pass_blocks]
    return [*found, *written_out, *by_taps]


def _by_window_rows(n: dict[str, int], machine: Machine) -> list[Config]:
    """Return the tiles of a first layer that multiplies by lane, fewest instructions for a multiply-add first: the
    pixels under a row of the window stay in registers, where they fit."""
    found = []
    for ob in (d for d in divisors(n["ob"], 8) if d % n["turns"] == 0):
        for wt in divisors(n["ow"], 32):
            cfg = Config(ob, 1, wt)
            beside = _row_pixels(n, cfg) / 2 + n["kw"] * n["ic"] * ob / 2 + 4
            if _is_row_held(n, machine, cfg):
                found.append((beside / (ob * wt * n["kw"] * n["ic"]), ob, wt, cfg))
    return [f[3] for f in sorted(found, key=lambda f: f[:3])] or [Config(n["turns"], 1, 1)]


def _row_pixels(n: dict[str, int], cfg: Config) -> int:
    return (cfg.wt - 1) * n["step"] + n["kw"]


def _is_row_held(n: dict[str, int], machine: Machine, cfg: Config) -> bool:
    spare = 2 if machine.fuses_multiply_add else cfg.ob + 8
    return "turns" in n and cfg.ob * cfg.wt + _row_pixels(n, cfg) + spare <= machine.registers


def _in_pieces(n: dict[str, int], machine: Machine, ob: int, ht: int, wt: int) -> list[Config]:
    """Return the configuration that keeps a piece of the input in half of L2 while all channels use it. With few
    passes over the input it gains nothing."""
    rows = n["ow"] // wt if n["oh"] == 1 else n["oh"] // ht
    wanted = ceil(n["x_bytes"] / (machine.l2_kib * 512))
    chunk = next((d for d in divisors(rows, 4096) if d >= wanted), rows)
    return [Config(ob, ht, wt, chunk)] if n["ob"] // ob >= 4 and 1 < chunk <= 2 * wanted else []


def _in_passes(n: dict[str, int], machine: Machine, ob: int, wt: int, most: int = 2) -> list[Config]:
    """Return at most ``most`` configurations for weights beyond L1: those of one pass stay there while the pixels of a
    chunk use them, whose partial sums stay in a part of it too."""
    v, l1 = machine.lanes, machine.l1d_kib * 1024
    if 4 * n["ic"] * n["taps"] * ob * v <= l1 or n["ib"] == 1:
        return []
    pixels = n["oh"] * n["ow"]
    rows = n["ow"] // wt if n["oh"] == 1 else n["oh"]
    chunks = [d for d in divisors(rows, 4096) if 4 * ob * v * pixels // d <= l1 * 3 // 4]
    passes = [d for d in divisors(n["ib"]) if 4 * ob * d * n["taps"] * v * v <= l1 * 2 // 3]
    if not chunks or not passes or pixels // chunks[0] < 4 * wt:
        return []
    return [Config(ob, 1, wt, chunks[0], d) for d in reversed(passes[-most:])]


def apply(sch: Schedule, block: SBlockRV, n: dict[str, int], machine: Machine, cfg: Config) -> None:
    """Schedule the kernel around ``block``. Order matters: parallel before decompose_reduction."""
    is_whole = "turns" in n or extent(sch, sch.get_loops(block)[-1]) == machine.lanes
    by_lane = machine.multiplies_by_lane and is_whole
    copied = next((b for b in blocks_of(sch) if by_lane and sch.get(b).name_hint == "edge"), None)
    out = inline_tail(sch, block, copied)
    batch, o, p, i, co, kh, kw, ci = sch.get_loops(block)
    oo, oi = sch.split(o, [None, cfg.ob])
    h, hi, w, wi = sch.split(p, [n["oh"] // cfg.ht, cfg.ht, n["ow"] // cfg.wt, cfg.wt])
    rows = w if n["oh"] == 1 else h
    outer = extent(sch, batch) * cfg.chunk * extent(sch, oo)
    pieces = 1 if cfg.pass_blocks else row_pieces(outer, extent(sch, rows) // cfg.chunk)
    hc, hp, rest = sch.split(rows, [cfg.chunk, pieces, None])
    h, w = (h, rest) if n["oh"] == 1 else (rest, w)
    if cfg.pass_blocks:
        cc, ck = sch.split(co, [None, cfg.pass_blocks])
        sch.reorder(batch, hc, oo, hp, cc, h, w, ck, kh, kw, ci, hi, wi, oi, i)
        sch.reverse_compute_at(out, hp)
        first = cc
    elif cfg.taps_outside:
        sch.reorder(batch, hc, oo, hp, h, w, kh, kw, co, ci, hi, wi, oi, i)
        sch.reverse_compute_at(out, w)
        first = kh
    else:
        # wi outside oi: one broadcast lives at a time and the ob weight vectors stay, so nothing spills.
        sch.reorder(batch, hc, oo, hp, h, w, co, kh, kw, ci, hi, wi, oi, i)
        sch.reverse_compute_at(out, w)
        first = co
    if by_lane:
        row = _is_row_held(n, machine, cfg)
        if row:
            sch.unroll(kw)
        read_lanes(sch, block, co if cfg.taps_outside else kh if row else kw, copied)
        sch.unroll(ci)
        sch.reorder(oi, hi, wi)
    sch.vectorize(i)
    for loop in (hi, wi, oi):
        sch.unroll(loop)
    if cfg.unroll > 1 and not by_lane:
        sch.unroll(sch.split(ci, [None, cfg.unroll])[1])
    for pad in pads(sch):
        copy_pad(sch, pad, machine.lanes)
    sch.parallel(sch.fuse(batch, hc, oo, hp))
    inner = 8 + (cfg.unroll > 1 and not by_lane)  # co, kh, kw, ci, (ci), hi, wi, oi, i
    keep = len(sch.get_loops(block)) - inner
    init = sch.decompose_reduction(block, first)
    for part in (init, out):
        if cfg.pass_blocks:
            sch.vectorize(sch.get_loops(part)[-1])
        else:
            unroll_below(sch, part, keep)
