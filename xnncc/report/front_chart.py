"""The front of size against loss, as SVG: a dot for each trial, a line through those that nothing beats."""

from __future__ import annotations

from typing import Any

from xnncc.report.words import size

WIDTH, HEIGHT = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 16, 40


def draw_front(trials: list[dict[str, Any]], is_share: bool) -> str:
    """Return the picture; an empty string when fewer than two trials have a loss."""
    points = [trial for trial in trials if trial["loss"] is not None]
    if len(points) < 2:
        return ""
    most_bytes = max(trial["bytes"] for trial in points)
    losses = [trial["loss"] for trial in points]
    low, high = min(0.0, *losses), max(*losses, 1e-9)

    def place(trial: dict[str, Any]) -> tuple[float, float]:
        x = LEFT + (WIDTH - LEFT - RIGHT) * trial["bytes"] / most_bytes
        y = HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (trial["loss"] - low) / (high - low)
        return round(x, 1), round(y, 1)

    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="size against loss">',
        *_axes(most_bytes, low, high, is_share),
    ]
    line = " ".join(f"{x},{y}" for x, y in map(place, front(points)))
    parts.append(f'<polyline class="front" points="{line}"/>')
    for trial in points:
        x, y = place(trial)
        kind = "chosen" if trial["is_chosen"] else "holds" if trial["holds"] else "misses"
        words = f"{size(trial['bytes'])}, loss {_loss(trial['loss'], is_share)}"
        radius = 6 if kind == "chosen" else 4
        parts.append(f'<circle class="{kind}" cx="{x}" cy="{y}" r="{radius}"><title>{words}</title></circle>')
    return "\n".join([*parts, "</svg>"])


def front(trials: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the trials that no other beats in both size and loss, by size."""
    best: list[dict[str, Any]] = []
    for trial in sorted(trials, key=lambda one: (one["bytes"], one["loss"])):
        if not best or trial["loss"] < best[-1]["loss"]:
            best.append(trial)
    return best


def _axes(most_bytes: int, low: float, high: float, is_share: bool) -> list[str]:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    return [
        f'<line class="axis" x1="{LEFT}" y1="{bottom}" x2="{right}" y2="{bottom}"/>',
        f'<line class="axis" x1="{LEFT}" y1="{TOP}" x2="{LEFT}" y2="{bottom}"/>',
        f'<text x="{LEFT}" y="{HEIGHT - 20}" text-anchor="middle">0</text>',
        f'<text x="{right}" y="{HEIGHT - 20}" text-anchor="end">{size(most_bytes)}</text>',
        f'<text x="{(LEFT + right) // 2}" y="{HEIGHT - 6}" text-anchor="middle">size of the file</text>',
        f'<text x="{LEFT - 8}" y="{TOP + 8}" text-anchor="end">{_loss(high, is_share)}</text>',
        f'<text x="{LEFT - 8}" y="{bottom}" text-anchor="end">{_loss(low, is_share)}</text>',
    ]


def _loss(value: float, is_share: bool) -> str:
    return f"{100 * value:.3g} %" if is_share else f"{value:.3g}"
