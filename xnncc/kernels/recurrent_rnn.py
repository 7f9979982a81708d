"""The plain RNN cell: h' = f(accumulator)."""

from __future__ import annotations

from ..ir.recurrent import Recurrent
from .recurrent_cell import Phase, Unit, gate

STATE = ("h",)


def phases(spec: Recurrent) -> tuple[Phase, ...]:
    """Return the one phase."""
    return (Phase((0,), ("pre",), _finish),)


def _finish(spec: Recurrent, at: Unit) -> None:
    at.put("h", lambda lane: gate(spec, 0, at.acc(0)(lane)))
