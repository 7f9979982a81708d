"""The memory plan over time as SVG: across the operators in order, upwards the arena's bytes, a box for each buffer."""

from __future__ import annotations

from html import escape
from typing import Any

from xnncc.report.words import size

WIDTH, HEIGHT = 1000, 340  # of the plot, in SVG units
LEFT, TOP, RIGHT, BOTTOM = 70, 26, 16, 34  # room for axes and labels
MAX_LINES, MAX_TICKS = 6, 15  # of the bytes' axis, of the operators' axis


def draw_memory(memory: dict[str, Any], totals: dict[str, Any]) -> str:
    """Return the ``<svg>`` element; colours come from the page's style sheet by class. Empty for an empty arena."""
    buffers, op_count, arena = memory["buffers"], totals["op_count"], totals["arena_bytes"]
    if not buffers or not op_count or not arena:
        return ""
    x_of, y_of = WIDTH / op_count, HEIGHT / arena
    story = f"Memory plan: {len(buffers)} buffers in {size(arena)} over {op_count} operators"
    box = f"0 0 {LEFT + WIDTH + RIGHT} {TOP + HEIGHT + BOTTOM}"
    parts = [f'<svg class="memory" viewBox="{box}" role="img" aria-label="{story}">']
    parts += _grid(arena, op_count)
    parts += [_box(buffer, x_of, y_of, op_count) for buffer in sorted(buffers, key=_order)]
    parts += _peak(memory["live_bytes"], totals, x_of, y_of)
    parts.append("</svg>")
    return "\n".join(parts)


def _order(buffer: dict[str, Any]) -> tuple[int, int, str]:
    return buffer["first"], buffer["offset"], buffer["name"]


def _grid(arena: int, op_count: int) -> list[str]:
    """Return the lines and numbers of both axes."""
    parts = []
    step = _byte_step(arena)
    for value in range(0, arena + 1, step):
        y = TOP + HEIGHT - HEIGHT * value / arena
        label = f"{value / 1024**2:g} MiB" if step >= 2**17 else f"{value / 1024:g} KiB"
        parts.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{LEFT + WIDTH}" y2="{y:.1f}"/>')
        parts.append(f'<text class="axis" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    for op in range(0, op_count, _count_step(op_count)):
        x = LEFT + WIDTH * (op + 0.5) / op_count
        parts.append(f'<text class="axis" x="{x:.1f}" y="{TOP + HEIGHT + 16}" text-anchor="middle">{op}</text>')
    middle = LEFT + WIDTH / 2
    parts.append(f'<text class="axis" x="{middle}" y="{TOP + HEIGHT + 31}" text-anchor="middle">operator</text>')
    return parts


def _byte_step(total: int) -> int:
    """Return a power of two that cuts ``total`` into at most MAX_LINES parts."""
    step = 64
    while total > MAX_LINES * step:
        step *= 2
    return step


def _count_step(total: int) -> int:
    """Return 1, 2 or 5 times a power of ten that cuts ``total`` into at most MAX_TICKS parts."""
    power = 1
    while True:
        for step in (power, 2 * power, 5 * power):
            if total <= MAX_TICKS * step:
                return step
        power *= 10


def _box(buffer: dict[str, Any], x_of: float, y_of: float, op_count: int) -> str:
    """Return one buffer's rectangle with its story as hover title."""
    first, last = max(buffer["first"], 0), min(buffer["last"], op_count - 1)
    x, width = LEFT + first * x_of, max((last - first + 1) * x_of, 1.0)
    height = max(buffer["size"] * y_of, 1.0)
    y = TOP + HEIGHT - buffer["offset"] * y_of - height
    ops = f"operator {first}" if first == last else f"operators {first} to {last}"
    title = f"{buffer['name']}: {size(buffer['size'])} at {size(buffer['offset'])}, {ops}"
    return (
        f'<rect class="{escape(buffer["kind"])}" x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}">'
        f"<title>{escape(title)}</title></rect>"
    )


def _peak(live: list[int], totals: dict[str, Any], x_of: float, y_of: float) -> list[str]:
    """Return the mark of the operator that needs most, and its label."""
    peak = max(range(len(live)), key=lambda index: live[index])
    x = LEFT + (peak + 0.5) * x_of
    y = TOP + HEIGHT - min(totals["peak_live_bytes"] * y_of, HEIGHT)
    anchor = "start" if x < LEFT + WIDTH * 0.75 else "end"
    label_x = x + (6 if anchor == "start" else -6)
    text = f"peak {size(totals['peak_live_bytes'])} live at operator {peak}"
    return [
        f'<line class="bound" x1="{LEFT}" y1="{y:.1f}" x2="{LEFT + WIDTH}" y2="{y:.1f}"/>',
        f'<line class="peak" x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{TOP + HEIGHT}"/>',
        f'<text class="peak" x="{label_x:.1f}" y="{TOP - 10}" text-anchor="{anchor}">{text}</text>',
    ]
