"""Winograd in pieces of tile rows: transform, multiply and transform back while a piece is in L2.

for yc (parallel over pieces):
    V = transformed inputs of the piece          c, ty, tx, all a*a values unrolled
    M = V x U                                    register tiles of ob blocks x tt tiles
    y = transformed back, bias, tail             rows of m pixels
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tvm.s_tir.schedule import SBlockRV, Schedule

from ..ir.tiles import cycles, divisors, roomy_tiles, tiles
from ..target import Machine
from .blocks import extent, read_lanes, stages_of, unroll_below, write_row_out

NAME = "winograd"
FAR_BYTES, NEAR_BYTES, ACTIVATION_BYTES = 3.0, 16.0, 6.0  # a cycle: weights beyond L2, in L2; activations beyond L2
STAGES = ("pad", "input_rows", "inputs", "products", "output_rows", "tile")


@dataclass(frozen=True)
class Config:
    """``rows`` tile rows in a piece; a register tile of ``ob`` channel blocks x ``tt`` tiles."""

    rows: int
    ob: int
    tt: int
    unroll: int = 1  # input channels written out


def space(n: dict[str, int], machine: Machine) -> list[Config]:
    """Return pieces with their best register tiles, the cheapest first by ``estimate``."""
    found = []
    for rows in divisors(n["th"]):
        best, *more = tiles(n["ob"], 1, rows * n["tw"], machine)
        for ob, _, tt in [best, *more[:1]]:
            config = Config(rows, ob, tt)
            found.append((estimate(n, machine, config), -rows, ob, config))
    return [f[3] for f in sorted(found, key=lambda f: f[:3])][:10]


def wider(n: dict[str, int], machine: Machine) -> list[Config]:
    """Return what tuning may try beside ``space``: every piece with every tile that fits or nearly fits."""
    found = []
    for rows in divisors(n["th"]):
        for ob, _, tt in roomy_tiles(n["ob"], 1, rows * n["tw"], machine):
            config = Config(rows, ob, tt)
            found.append((estimate(n, machine, config), -rows, ob, config))
    ranked = [f[3] for f in sorted(found, key=lambda f: f[:3])]
    return [*ranked, *(replace(c, unroll=u) for c in ranked for u in (2, 4) if machine.lanes % u == 0)]


def estimate(n: dict[str, int], machine: Machine, cfg: Config) -> float:
    """Return cycles: each piece reads all weights once, and a piece beyond L2 its own activations from farther away."""
    planes, v, l2 = (n["m"] + 2) ** 2, machine.lanes, machine.l2_kib * 1024
    pieces, t = n["th"] // cfg.rows, cfg.rows * n["tw"]
    weight_bytes = 4 * planes * n["ic"] * n["ob"] * v
    piece_bytes = 4 * planes * t * (n["ic"] + n["ob"] * v)
    multiply = planes * t * n["ic"] * n["ob"] * cycles(cfg.ob, cfg.tt, machine)
    stream = weight_bytes / (FAR_BYTES if weight_bytes > l2 else NEAR_BYTES)
    spill = 2 * piece_bytes / ACTIVATION_BYTES if piece_bytes > l2 else 0
    return pieces * (max(multiply, stream) + spill)


def apply(sch: Schedule, block: SBlockRV, n: dict[str, int], machine: Machine, cfg: Config) -> None:
    """Schedule the kernel around ``block``, the products."""
    stage, out = stages_of(sch, STAGES)
    pieces, is_even = _output(sch, out, stage, n, cfg)
    _products(sch, stage["products"], pieces, cfg)
    written = sch.cache_write(stage["products"], 0, "global")
    to = sch.get_loops(stage["products"])[-6]  # oo, to | co, ci, ti, oi, i below it
    sch.reverse_compute_at(written, to, preserve_unit_loops=True)
    *_, ti, oi, i = sch.get_loops(stage["products"])
    sch.vectorize(i)
    sch.unroll(ti)
    sch.unroll(oi)
    inner = 5  # co, ci, ti, oi, i
    co, ci = sch.get_loops(stage["products"])[-5:-3]
    if machine.multiplies_by_lane:
        read_lanes(sch, stage["products"], co)
        sch.unroll(ci)
        sch.reorder(oi, ti)
    elif cfg.unroll > 1:
        sch.unroll(sch.split(ci, [None, cfg.unroll])[1])
        inner += 1
    channel = _inputs(sch, stage, pieces, n)
    if n["th"] // cfg.rows > 1:
        sch.parallel(pieces)
    else:
        _parallel_stages(sch, stage, out, channel, is_even)
    for b in (stage["inputs"], written):
        # The a*a planes an odd number of cache lines apart; otherwise 36 streams share a few sets of L1.
        sch.storage_align(b, 0, 0, 2 * machine.lanes, machine.lanes)
    keep = len(sch.get_loops(written)) - 3
    init = sch.decompose_reduction(stage["products"], sch.get_loops(stage["products"])[-inner])
    unroll_below(sch, init, keep)
    unroll_below(sch, written, keep)


def _output(
    sch: Schedule, out: SBlockRV, stage: dict[str, SBlockRV], n: dict[str, int], cfg: Config
) -> tuple[object, bool]:
    """Split the output into pieces; transform back row by row, or, with a ragged edge, piece by piece.

    Never lower than a row: there p % ow // m is not recognised as one tile and the loop becomes range(x + 1).
    """
    m, th, ow = n["m"], n["th"], n["ow"]
    _, o, p, i = sch.get_loops(out)
    is_even = n["oh"] % m == 0 and ow % m == 0
    rows = cfg.rows if is_even else cfg.rows * m
    pieces, y, x = sch.split(p, [th // cfg.rows, rows, m * ow if is_even else ow])
    sch.reorder(pieces, o, y, x, i)
    sch.compute_at(stage["tile"], y if is_even else pieces, preserve_unit_loops=True)
    sch.vectorize(i)
    at = sch.get_loops(stage["tile"])[-4]
    sch.compute_at(stage["output_rows"], at, preserve_unit_loops=True)
    for name in ("output_rows", "tile"):
        unroll_below(sch, stage[name], len(sch.get_loops(stage[name])) - 3)
    return pieces, is_even


def _products(sch: Schedule, products: SBlockRV, pieces: object, cfg: Config) -> None:
    """Tile the products of one piece."""
    sch.compute_at(products, pieces, preserve_unit_loops=True)
    e, o, t, i, co, ci = sch.get_loops(products)[-6:]
    oo, oi = sch.split(o, [None, cfg.ob])
    to, ti = sch.split(t, [None, cfg.tt])
    sch.reorder(e, oo, to, co, ci, ti, oi, i)


def _inputs(sch: Schedule, stage: dict[str, SBlockRV], pieces: object, n: dict[str, int]) -> object:
    """Transform the inputs of one piece, a tile at a time; return the channel loop."""
    sch.compute_at(stage["inputs"], pieces, preserve_unit_loops=True)
    e, c, t, i = sch.get_loops(stage["inputs"])[-4:]
    ty, tx = sch.split(t, [None, n["tw"]])
    sch.reorder(c, ty, tx, e, i)
    sch.compute_at(stage["input_rows"], tx, preserve_unit_loops=True)
    sch.compute_at(stage["pad"], ty, preserve_unit_loops=True)
    *_, pixels, lane = sch.get_loops(stage["pad"])
    sch.vectorize(lane)
    write_row_out(sch, pixels, extent(sch, lane))
    unroll_below(sch, stage["input_rows"], len(sch.get_loops(stage["input_rows"])) - 3)
    sch.vectorize(i)
    sch.unroll(e)
    return c


def _parallel_stages(sch: Schedule, stage: dict[str, SBlockRV], out: SBlockRV, channel: object, is_even: bool) -> None:
    """With one piece only, each of the three stages is a parallel loop of its own, the first below batch and piece."""
    sch.parallel(channel)
    loops = sch.get_loops(stage["products"])
    sch.parallel(sch.fuse(*loops[2:4]))  # the a*a planes and the blocks of channels
    sch.parallel(sch.get_loops(out)[2])
    if not is_even:
        sch.parallel(sch.get_loops(stage["tile"])[2])
