"""The LSTM cell: all four gates in one phase, in ONNX's order i, o, f, c; peepholes in the order i, o, f."""

from __future__ import annotations

from ..ir.recurrent import Recurrent
from .math import f32
from .recurrent_cell import Phase, Unit, activate, gate

STATE = ("h", "c")
IN, OUT, FORGET, CELL = range(4)


def phases(spec: Recurrent) -> tuple[Phase, ...]:
    """Return the one phase."""
    return (Phase((IN, OUT, FORGET, CELL), ("pre",) * 4, _finish),)


def _finish(spec: Recurrent, at: Unit) -> None:
    i, o, f, g, c = at.acc(IN), at.acc(OUT), at.acc(FORGET), at.acc(CELL), at.state("c")
    if at.has("p"):
        at.set(IN, lambda lane: i(lane) + at.peephole(0, c)(lane))
        at.set(FORGET, lambda lane: f(lane) + at.peephole(2, c)(lane))
    at.set(IN, lambda lane: gate(spec, 0, i(lane)))
    at.set(FORGET, lambda lane: f32(1.0) - i(lane) if spec.is_input_forget else gate(spec, 0, f(lane)))
    at.set(CELL, lambda lane: f(lane) * c(lane) + i(lane) * gate(spec, 1, g(lane)))
    at.put("c", g)
    if at.has("p"):
        at.set(OUT, lambda lane: o(lane) + at.peephole(1, g)(lane))
    at.put("h", lambda lane: gate(spec, 0, o(lane)) * activate(spec.activations[2], g(lane)))
