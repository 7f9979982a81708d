"""Where the windows of convolutions and pools lie: kernel, strides, dilations and pads per spatial dimension."""

from __future__ import annotations

from dataclasses import dataclass

from .node import Node, Refused

MAX_PAD = 4096  # far beyond any kernel; a damaged file must not fill the memory with zeros
AUTO_PADS = ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")


@dataclass(frozen=True)
class Windows:
    """All per spatial dimension, in elements."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begin: tuple[int, ...]
    end: tuple[int, ...]

    @property
    def reach(self) -> tuple[int, ...]:
        """Elements from the first to the last that one window reads."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True))


def windows_of(n: Node, kernel: tuple[int, ...], sizes: tuple[int, ...]) -> Windows:
    """Return the windows of a node over an input of spatial ``sizes``; ``auto_pad`` becomes numbers."""
    rank = len(kernel)
    strides = tuple(n.attr("strides") or [1] * rank)
    dilations = tuple(n.attr("dilations") or [1] * rank)
    pads = list(n.attr("pads") or [0] * (2 * rank))
    auto = n.choice("auto_pad", "NOTSET", AUTO_PADS)
    if len(sizes) != rank or len(strides) != rank or len(dilations) != rank or len(pads) != 2 * rank:
        raise Refused(f"kernel {list(kernel)}, strides and pads do not fit {len(sizes)} spatial dimensions")
    if min(strides + dilations + kernel, default=1) < 1:
        raise Refused("kernel, strides and dilations must be at least 1")
    if min(pads, default=0) < 0:
        raise Refused(f"negative pads {pads} are not supported", "Slice the input instead.")
    if max(pads, default=0) > MAX_PAD:
        raise Refused(f"pads {pads} are larger than {MAX_PAD}")
    if auto == "NOTSET":
        return Windows(kernel, strides, dilations, tuple(pads[:rank]), tuple(pads[rank:]))
    begin, end = [0] * rank, [0] * rank
    if auto != "VALID":
        for i in range(rank):
            out = -(-sizes[i] // strides[i])
            total = max((out - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 - sizes[i], 0)
            small = total // 2
            begin[i], end[i] = (small, total - small) if auto == "SAME_UPPER" else (total - small, small)
    return Windows(kernel, strides, dilations, tuple(begin), tuple(end))


def pooled_sizes(w: Windows, sizes: tuple[int, ...], ceil_mode: bool) -> tuple[int, ...]:
    """Return how many windows fit; with ``ceil_mode`` also the last one that starts inside input or begin pad."""
    result = []
    for size, reach, stride, begin, end in zip(sizes, w.reach, w.strides, w.begin, w.end, strict=True):
        room = size + begin + end - reach
        if room < 0:
            raise Refused(f"a window of {reach} does not fit {size} elements with pads {begin} and {end}")
        count = (-(-room // stride) if ceil_mode else room // stride) + 1
        if ceil_mode and (count - 1) * stride >= size + begin:
            count -= 1
        result.append(count)
    return tuple(result)
