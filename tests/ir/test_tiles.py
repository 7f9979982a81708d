"""The register tile's analytic model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xnncc.ir.tiles import cycles, registers_needed, tiles
from xnncc.target import Machine

HASWELL = Machine(lanes=8, registers=16, fma_latency=5)
CORTEX = Machine(lanes=4, registers=32)
SKYLAKE = Machine(lanes=16, registers=32)
MACHINES = [HASWELL, CORTEX, SKYLAKE, Machine(lanes=4, registers=16)]


@given(st.integers(1, 40), st.integers(1, 120), st.integers(1, 120), st.sampled_from(MACHINES))
def test_tiles_fit_the_registers_and_divide_the_image(blocks: int, oh: int, ow: int, machine: Machine) -> None:
    found = tiles(blocks, oh, ow, machine)
    assert found
    for ob, ht, wt in found:
        assert registers_needed(ob, ht * wt, machine) <= machine.registers
        assert blocks % ob == 0 and oh % ht == 0 and ow % wt == 0
        assert ht == 1 or wt == ow, "rows are only joined whole"
    assert len(set(found)) == len(found)


@given(st.integers(1, 40), st.integers(1, 120), st.integers(1, 120), st.sampled_from(MACHINES))
def test_the_best_tile_comes_first(blocks: int, oh: int, ow: int, machine: Machine) -> None:
    times = [round(cycles(ob, ht * wt, machine), 3) for ob, ht, wt in tiles(blocks, oh, ow, machine)]
    assert times == sorted(times)


@pytest.mark.parametrize(
    ("machine", "ob", "t", "needed"),
    [
        (HASWELL, 1, 14, 16),  # 14 sums, a weight vector, a broadcast
        (HASWELL, 2, 6, 15),  # 12 sums, two weights, a broadcast
        (SKYLAKE, 1, 31, 32),  # the broadcast is part of the FMA
        (CORTEX, 2, 9, 29),  # 18 sums, nine inputs, two weights
    ],
)
def test_registers_of_known_tiles(machine: Machine, ob: int, t: int, needed: int) -> None:
    assert registers_needed(ob, t, machine) == needed


def test_small_tiles_wait_for_the_latency() -> None:
    assert cycles(1, 1, HASWELL) == HASWELL.fma_latency
    assert cycles(2, 6, HASWELL) == 0.5  # two FMA ports
    assert cycles(1, 12, HASWELL) > 0.5  # a load for each FMA


def test_a_prime_row_still_gets_a_tile() -> None:
    assert tiles(1, 1, 97, HASWELL)[0] == (1, 1, 1)
