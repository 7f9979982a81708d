"""The analytic model of a register tile: ob channel blocks x t pixels of vector accumulators."""

from __future__ import annotations

from dataclasses import replace

from ..target import Machine

# Of the load ports' peak, what a loop of broadcasts and multiply-adds gets. Zen 3, one core, quiet (2026-11): tiles of
# one block x 7 to 14 pixels, a load for each multiply-add, run at 77 to 80 % of peak, 2x4 and 4x2 at 97 to 100 %.
LOAD_USE = 0.8


def divisors(n: int, top: int = 64) -> list[int]:
    """Return the divisors of ``n`` up to ``top``, ascending."""
    return [d for d in range(1, min(n, top) + 1) if n % d == 0]


def row_pieces(outer: int, rows: int) -> int:
    """Return into how many pieces ``rows`` below ``outer`` parallel iterations should be split, so that threads get
    like shares: the fewest of at least 32 iterations in all, or of a number that 2, 4 and 8 threads divide."""
    return next((d for d in divisors(rows, rows) if outer * d >= 32 or outer * d % 8 == 0), rows)


def registers_needed(ob: int, t: int, machine: Machine) -> int:
    """Return how many vector registers the tile's inner loop keeps live.

    Where a multiply-add takes one lane of a register (Arm), all t inputs stay and weights come in pairs (4x6, 5x5 and
    2x10 fit 32 registers, 3x8 spills); without a fused one products need registers as well (of 16, 2x2 fits and 1x4
    spills). Wasm engines keep inputs and weights. Elsewhere the ob weight vectors stay and one broadcast lives at a
    time, which AVX-512 folds into the multiply-add when ob is 1.
    """
    if machine.multiplies_by_lane:
        return ob * t + t + 2 if machine.fuses_multiply_add else ob * t + t + ob + 8
    if machine.lanes == 4:
        return ob * t + t + ob
    if ob == 1:
        return t + (1 if machine.lanes == 16 else 2)
    return ob * t + ob + 1


def cycles(ob: int, t: int, machine: Machine) -> float:
    """Return cycles for each vector multiply-add of the tile, bound by FMA ports, loads and latency."""
    loads = ob + (t / machine.lanes if machine.multiplies_by_lane else t)
    return max(ob * t / machine.fma_ports, loads / (machine.load_ports * LOAD_USE), machine.fma_latency) / (ob * t)


def _spare(ob: int, t: int, machine: Machine) -> float:
    """Return what decides between tiles of equal cycles: the larger, or, where lanes are multiplied, the instructions
    beside a multiply-add: loads in pairs, and the loop's own four for as many steps as there are lanes."""
    if machine.multiplies_by_lane:
        return (ob / 2 + t / (2 * machine.lanes) + 4 / machine.lanes) / (ob * t)
    return -ob * t


def tiles(blocks: int, oh: int, ow: int, machine: Machine) -> list[tuple[int, int, int]]:
    """Return (ob, ht, wt) that fit the registers, best first; wt divides ow, ht > 1 only for whole rows."""
    found = []
    for ob in divisors(blocks, 8):
        for wt in divisors(ow, 32):
            for ht in divisors(oh, 8) if wt == ow else [1]:
                if registers_needed(ob, ht * wt, machine) <= machine.registers:
                    found.append((round(cycles(ob, ht * wt, machine), 3), _spare(ob, ht * wt, machine), ob, ht, wt))
    return [tile[2:] for tile in sorted(found)] or [(1, 1, 1)]


def roomy_tiles(blocks: int, oh: int, ow: int, machine: Machine) -> list[tuple[int, int, int]]:
    """Return the tiles that fit or nearly fit the registers, ten at most: what tuning may try."""
    return tiles(blocks, oh, ow, replace(machine, registers=machine.registers + 2))[:10]


def padded_pixels(pixels: int, blocks: int, machine: Machine) -> int:
    """Return to how many pixels a long axis should be padded so that its best tile, waste included, is cheapest.

    49 pixels have tiles of 1 or 7 only; 50 have 5 and 10, and with two blocks that is a fifth faster.
    """
    cost = {}
    for padded in range(pixels, pixels + 5):
        ob, _, t = tiles(blocks, 1, padded, machine)[0]
        beside = _spare(ob, t, machine) if machine.multiplies_by_lane else 0
        cost[padded] = cycles(ob, t, machine) * (1 + beside) * padded
    return min(cost, key=lambda padded: (round(cost[padded] / cost[pixels], 2), padded))


def padded_blocks(blocks: int, rows: int, machine: Machine) -> int:
    """Return g, of whose multiples ``blocks`` that are packed anyway should become one, so that the tile of g blocks x
    ``rows`` is cheapest, waste included."""
    if not machine.multiplies_by_lane:
        return 1
    cost = {}
    for g in range(1, min(blocks, 8) + 1):
        padded = -(-blocks // g) * g
        ob, _, t = tiles(padded, 1, rows, machine)[0]
        if ob == g:
            cost[g] = (1 + _spare(ob, t, machine)) * padded
    return min(cost, key=lambda g: (round(cost[g] / blocks, 2), g)) if cost else 1


def side_by_side(blocks: int, oh: int, ow: int, machine: Machine) -> int:
    """Return of how many channel blocks the weights should stand side by side: all of a register tile's where
    neighbouring vectors are loaded in pairs (Arm), which makes one run of memory of them; elsewhere 1."""
    return tiles(blocks, oh, ow, machine)[0][0] if machine.multiplies_by_lane else 1
