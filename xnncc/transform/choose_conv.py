"""Which algorithm a packed convolution runs by: a small model in cycles of one core."""

from __future__ import annotations

from ..kernels.spatial import Window
from ..target import Machine

# Measured on Sapphire Rapids (2026-11) and used as ratios only: a register-tiled kernel reaches four fifths of the
# multiply-add ports, weights come from beyond L2 at 3 bytes a cycle, activations between stages at 6.
PORT_USE, WEIGHT_BYTES, ACTIVATION_BYTES = 0.8, 3.0, 6.0
LEAST_CHANNELS = 16  # below this the transforms cost more than they save


def winograd_tile(win: Window, c: int, o: int, machine: Machine) -> int:
    """Return the output tile m (2 or 4) of the cheapest Winograd form for C -> O channels, or 0 for direct sums."""
    if win.kernel != (3, 3) or win.stride != (1, 1) or win.dilation != (1, 1) or win.spread != (1, 1):
        return 0
    if min(c, o) < LEAST_CHANNELS:
        return 0
    rate = machine.lanes * machine.fma_ports * PORT_USE
    oh, ow = win.out
    cost = {0: max(oh * ow * o * c * 9 / rate, o * c * 36 / WEIGHT_BYTES)}
    for m in (2, 4):
        planes, t = (m + 2) ** 2, -(-oh // m) * -(-ow // m)
        products = max(planes * t * o * c / rate, planes * o * c * 4 / WEIGHT_BYTES)
        cost[m] = products + 2 * 4 * planes * t * (c + o) / ACTIVATION_BYTES
    return min(cost, key=lambda m: cost[m])
