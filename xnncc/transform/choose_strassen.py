"""Where Strassen's seven products of halves are cheaper than eight, in cycles of one core.

Given: x [P, K] times w [K, O]            Result: how many pieces of P, of two halves each; 0: multiply directly
"""

from __future__ import annotations

from ..target import Machine

# Cycles more for an output (seven partial sums written, read and added, four outputs at once), for an input (4 bytes
# read and 7 written), and for a weight, of which there are 7/4 as many. Fitted to nine layers of 192 to
# 1024 channels in their networks on Zen 4 (2026-12), where it pays from about 512 channels on. With 16 registers (AVX2)
# the same layers lost 6 %: LEAST_REGISTERS.
SUM_CYCLES, INPUT_CYCLES, WEIGHT_CYCLES = 28 / 16, 11 / 12, 2.5 / 16
PORT_USE = 0.93  # of the multiply-add ports, what a register tile reaches
# Where a multiply-add takes one lane of 4, the sums are nine instructions for an output vector, five for an input's, at
# about three in a cycle (Cortex-A76: two vector pipes, two for loads and stores).
LANE_SUM_CYCLES, LANE_INPUT_CYCLES = 3.0, 1.7
LANE_CUT_CYCLES = 3.0  # more for an output, where halves are not full: it is copied once more
LEAST_GAIN, LEAST_REGISTERS = 0.97, 32
SHARE_OF_L2 = 0.75  # that the sums of a piece's inputs may take


def is_strassen(pixels: int, input_blocks: int, output_blocks: int) -> bool:
    """Return whether channels and pixels can be halved."""
    return input_blocks % 2 == 0 and output_blocks % 2 == 0 and pixels >= 8


def strassen_pays(pixels: int, c: int, o: int, machine: Machine) -> bool:
    """Return whether the products of P x C and C x O matrices are cheaper by Strassen's."""
    if machine.registers < LEAST_REGISTERS:
        return False
    direct = pixels * c * o / (machine.lanes * machine.fma_ports * PORT_USE)
    pieces, half = strassen_pieces(pixels, c, machine)
    if machine.multiplies_by_lane:
        cut = LANE_CUT_CYCLES if 2 * pieces * half > pixels else 0.0
        sums = pixels / machine.lanes * (o * (LANE_SUM_CYCLES + cut) + c * LANE_INPUT_CYCLES)
    else:
        sums = pixels * o * SUM_CYCLES + pixels * c * INPUT_CYCLES + 3 / 4 * c * o * WEIGHT_CYCLES
    products = direct * 7 / 8 * (2 * pieces * half / pixels)
    return products + sums < LEAST_GAIN * direct


def strassen_pieces(pixels: int, c: int, machine: Machine) -> tuple[int, int]:
    """Return (pieces, half): pixels in pieces of two halves, so that a piece's sums stay in L2 where it can be."""
    bytes_a_pixel = 4 * c * 7 / 4
    wanted = max(1, round(pixels * bytes_a_pixel / (machine.l2_kib * 1024 * SHARE_OF_L2)))
    even = [d for d in range(1, 4 * wanted + 1) if pixels % (2 * d) == 0]
    pieces = next((d for d in even if d >= wanted), even[-1] if even else 1)
    return pieces, -(-pixels // (2 * pieces))
