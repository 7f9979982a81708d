"""Numbers as a person reads them."""

from __future__ import annotations

from collections.abc import Sequence


def size(number: float) -> str:
    """Return a byte count: ``"512 B"``, ``"18.4 KiB"``, ``"4.73 MiB"``.

    >>> size(4_960_000)
    '4.73 MiB'
    """
    if number < 1024:
        return f"{number:.0f} B"
    if number < 1024**2:
        return f"{number / 1024:.1f} KiB"
    return f"{number / 1024**2:.2f} MiB"


def count(number: int) -> str:
    """Return a count of operations or elements with its SI prefix.

    >>> count(387_000_000)
    '387 M'
    """
    for power, prefix in ((9, "G"), (6, "M"), (3, "k")):
        if number >= 10**power:
            scaled = number / 10**power
            return f"{scaled:.0f} {prefix}" if scaled >= 100 else f"{scaled:.3g} {prefix}"
    return str(number)


def shape(dims: Sequence[object]) -> str:
    """Return ``[1, 3, 224, 224]`` as ``"1×3×224×224"``; no dimensions are ``"scalar"``."""
    return "×".join(str(dim) for dim in dims) or "scalar"


def share(part: float, total: float) -> str:
    """Return ``part`` as a percentage of ``total``; below a tenth of a percent says so."""
    if not total:
        return "–"
    percent = 100 * part / total
    return "<0.1 %" if 0 < percent < 0.1 else f"{percent:.1f} %"
