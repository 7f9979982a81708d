"""The analytic model of a register tile: ob channel blocks x t pixels of vector accumulators."""

from __future__ import annotations

from ..target import Machine
from .blocks import divisors


def registers_needed(ob: int, t: int, machine: Machine) -> int:
    """Return how many vector registers the tile's inner loop keeps live.

    x86: the ob weight vectors stay and one broadcast lives at a time (AVX-512 folds it into the FMA when ob is 1).
    Arm and wasm (4 lanes): LLVM unrolls the channel loop and uses multiply by element, so all t inputs stay live.
    """
    if machine.lanes == 4:
        return ob * t + t + ob
    if ob == 1:
        return t + (1 if machine.lanes == 16 else 2)
    return ob * t + ob + 1


def cycles(ob: int, t: int, machine: Machine) -> float:
    """Return cycles for each vector multiply-add of the tile, bound by FMA ports, loads and latency."""
    loads = t + ob if ob > 1 or machine.lanes != 16 else t + 1
    return max(ob * t / machine.fma_ports, loads / machine.load_ports, machine.fma_latency) / (ob * t)


def tiles(blocks: int, oh: int, ow: int, machine: Machine) -> list[tuple[int, int, int]]:
    """Return (ob, ht, wt) that fit the registers, best first; wt divides ow, ht > 1 only for whole rows."""
    found = []
    for ob in divisors(blocks, 8):
        for wt in divisors(ow, 32):
            for ht in divisors(oh, 8) if wt == ow else [1]:
                if registers_needed(ob, ht * wt, machine) <= machine.registers:
                    found.append((round(cycles(ob, ht * wt, machine), 3), -ob * ht * wt, ob, ht, wt))
    return [tile[2:] for tile in sorted(found)] or [(1, 1, 1)]
