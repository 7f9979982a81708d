"""Which register tile a recurrent layer gets: a small model in cycles of one core."""

from __future__ import annotations

from ..ir.recurrent import Recurrent
from ..ir.tiles import cycles, divisors, registers_needed
from ..kernels.recurrent import Tile, phases_of
from ..target import Machine

MOST_ROWS = 8
SPARE_BLOCKS = 3  # of zero weights, where a prime count of blocks would leave registers unused


def choose_tile(spec: Recurrent, batch: int, machine: Machine) -> Tile:
    """Return the tile with the fewest cycles for one step of one sequence."""
    fewest = -(-spec.hidden // machine.lanes)
    gates = [len(phase.gates) for phase in phases_of(spec)]
    found = []
    for rows in divisors(batch, MOST_ROWS) if "lens" not in spec.operands else [1]:
        for blocks in range(fewest, fewest + SPARE_BLOCKS + 1):
            best = [_best_group(q, blocks, rows, machine) for q in gates]
            if None not in best:
                costs, groups = zip(*(pair for pair in best if pair is not None), strict=True)
                found.append((round(sum(costs), 3), blocks, rows, groups))
    _, blocks, rows, groups = min(found)
    return Tile(blocks, rows, groups)


def _best_group(gates: int, blocks: int, rows: int, machine: Machine) -> tuple[float, int] | None:
    """Return cycles for one state element of one sequence, and blocks at once; None when nothing fits."""
    found = []
    for g in divisors(blocks, 8):
        wide = gates * g
        if (g == 1 and rows == 1) or _registers(wide, rows, machine) <= machine.registers:
            found.append((blocks * gates * cycles(wide, rows, machine), -g))
    cost, g = min(found, default=(0.0, 0))
    return (cost, -g) if found else None


def _registers(wide: int, rows: int, machine: Machine) -> int:
    """With one sequence every weight is used once and need not stay: two loads in flight and the state."""
    return wide + 3 if rows == 1 else registers_needed(wide, rows, machine)
