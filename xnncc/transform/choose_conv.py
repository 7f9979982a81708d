"""Which algorithm a packed convolution runs by: a small model in cycles of one core, unless a tuned record says it.

"direct"      sums of products in register tiles; of a 1x1 over as many pixels as tile best
"direct/N"    the same over exactly N pixels (1x1 only)
"strassen"    seven half products instead of eight (1x1 only)
"winograd2", "winograd4"      F(2x2, 3x3), F(4x4, 3x3)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..ir.tiles import cycles, padded_pixels, tiles
from ..kernels.spatial import Window
from ..target import Machine
from .choose_strassen import is_strassen, strassen_pays

# Measured on Sapphire Rapids (2026-11) and used as ratios only: a register-tiled kernel reaches four fifths of the
# multiply-add ports, weights come from beyond L2 at 3 bytes a cycle, activations between stages at 6.
PORT_USE, WEIGHT_BYTES, ACTIVATION_BYTES = 0.8, 3.0, 6.0
LEAST_CHANNELS = 16  # below this the transforms cost more than they save
SPARE_PIXELS, NEAR = 5, 1.1  # a recorded 1x1 may compute so many pixels more, and cost so much by the model


@dataclass(frozen=True)
class Chosen:
    """The algorithm of one convolution, and all that it could run by, the analytic one first."""

    key: str
    algorithm: str
    algorithms: tuple[str, ...]


def choose_algorithm(
    win: Window, c: int, o: int, blocks: int, machine: Machine, is_exact: bool, records: Mapping[str, str]
) -> Chosen:
    """Return how a convolution of C -> O channels (``blocks`` blocks) of one ungrouped image runs; ``is_exact`` forbids
    Winograd. A record that names no algorithm of this convolution is passed over."""
    names = tuple(_algorithms(win, c, o, blocks, machine, is_exact))
    key = convolution_key(win, c, o)
    recorded = records.get(key, "")
    return Chosen(key, recorded if recorded in names else names[0], names)


def convolution_key(win: Window, c: int, o: int) -> str:
    """Return the convolution in words, the key of its record."""
    sizes = [(f"{c}->{o}", win.image), ("k", win.kernel), ("s", win.stride), ("d", win.dilation), ("u", win.spread)]
    text = " ".join(f"{name} {'x'.join(map(str, pair))}" for name, pair in sizes)
    return f"{text} p {','.join(map(str, win.padding))}"


def winograd_m(algorithm: str) -> int:
    """Return the output tile of a Winograd algorithm, 0 of another."""
    return int(algorithm.removeprefix("winograd")) if algorithm.startswith("winograd") else 0


def direct_pixels(algorithm: str, win: Window, blocks: int, machine: Machine) -> int:
    """Return how many pixels a direct convolution computes."""
    _, _, pixels = algorithm.partition("/")
    return int(pixels) if pixels else padded_pixels(win.out[0] * win.out[1], blocks, machine)


def _algorithms(win: Window, c: int, o: int, blocks: int, machine: Machine, is_exact: bool) -> list[str]:
    if win.is_pointwise:
        pixels = win.out[0] * win.out[1]
        cost = {n: cycles(*_tile(blocks, n, machine), machine) * n for n in range(pixels, pixels + SPARE_PIXELS + 1)}
        best = padded_pixels(pixels, blocks, machine)
        near = sorted((n for n in cost if n != best and cost[n] < NEAR * cost[best]), key=lambda n: cost[n])
        names = ["direct", *(f"direct/{n}" for n in near[:2])]
        if is_exact or not is_strassen(pixels, -(-c // machine.lanes), blocks):
            return names
        pays = strassen_pays(pixels, c, o, machine)
        return ["strassen", *names] if pays else [*names, "strassen"]
    m = winograd_tile(win, c, o, machine)
    first = f"winograd{m}" if m and not is_exact else "direct"
    others = ["direct", "winograd2", "winograd4"] if is_winograd(win) and not is_exact else ["direct"]
    return [first, *(name for name in others if name != first)]


def _tile(blocks: int, pixels: int, machine: Machine) -> tuple[int, int]:
    ob, _, t = tiles(blocks, 1, pixels, machine)[0]
    return ob, t


def is_winograd(win: Window) -> bool:
    """Return whether Winograd's algorithms compute this window."""
    return (win.kernel, win.stride, win.dilation, win.spread) == ((3, 3), (1, 1), (1, 1), (1, 1))


def winograd_tile(win: Window, c: int, o: int, machine: Machine) -> int:
    """Return the output tile m (2 or 4) of the cheapest Winograd form for C -> O channels, or 0 for direct sums."""
    if not is_winograd(win) or min(c, o) < LEAST_CHANNELS:
        return 0
    rate = machine.lanes * machine.fma_ports * PORT_USE
    oh, ow = win.out
    cost = {0: max(oh * ow * o * c * 9 / rate, o * c * 36 / WEIGHT_BYTES)}
    for m in (2, 4):
        planes, t = (m + 2) ** 2, -(-oh // m) * -(-ow // m)
        products = max(planes * t * o * c / rate, planes * o * c * 4 / WEIGHT_BYTES)
        cost[m] = products + 2 * 4 * planes * t * (c + o) / ACTIVATION_BYTES
    return min(cost, key=lambda m: cost[m])
