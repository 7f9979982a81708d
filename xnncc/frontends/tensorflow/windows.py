"""Where TensorFlow's windows lie: SAME, VALID and EXPLICIT as numbers."""

from __future__ import annotations

from ..refused import Refused
from .node import Node

MAX_PAD = 4096  # far beyond any kernel; a damaged file must not fill the memory with zeros


def reach_of(kernel: tuple[int, int], dilations: tuple[int, int]) -> tuple[int, int]:
    """Return the elements from the first to the last that one window reads."""
    return (kernel[0] - 1) * dilations[0] + 1, (kernel[1] - 1) * dilations[1] + 1


def pads_of(
    n: Node, reach: tuple[int, int], strides: tuple[int, int], sizes: tuple[int, int] | None = None
) -> tuple[int, int, int, int]:
    """Return (top, left, bottom, right) for windows over an input of ``sizes``, by default those of input 0."""
    at = (2, 3) if n.is_nchw else (1, 2)
    if sizes is None:
        sizes = n.shape()[at[0]], n.shape()[at[1]]
    mode = n.choice("padding", "", ("SAME", "VALID", "EXPLICIT"))
    before, after = [0, 0], [0, 0]
    if mode == "SAME":
        for i in range(2):
            total = max((-(-sizes[i] // strides[i]) - 1) * strides[i] + reach[i] - sizes[i], 0)
            before[i], after[i] = total // 2, total - total // 2
    elif mode == "EXPLICIT":
        given = list(n.attr("explicit_paddings") or [])
        if len(given) != 8 or min(given) < 0 or max(given) > MAX_PAD:
            raise Refused(f"explicit_paddings {given} are not eight numbers from 0 to {MAX_PAD}")
        if any(given[j] for j in range(8) if j // 2 not in at):
            raise Refused(f"explicit_paddings {given} over batch or channels are not supported")
        before, after = [given[2 * i] for i in at], [given[2 * i + 1] for i in at]
    if any(size + b + a < r for size, b, a, r in zip(sizes, before, after, reach, strict=True)):
        raise Refused(f"a window of {list(reach)} does not fit an image of {list(sizes)}")
    return before[0], before[1], after[0], after[1]
