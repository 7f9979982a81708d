"""The GRU cell, gates in ONNX's order z, r, h.

Linear before reset is one phase: the reset gate scales the finished product. Otherwise it scales the state, which must
be complete before the product with the weights of h begins: two phases.
"""

from __future__ import annotations

from tvm.tirx import Expr

from ..ir.recurrent import Recurrent
from .math import f32
from .recurrent_cell import Fn, Phase, Unit, gate

STATE = ("h",)
Z, R, H = range(3)


def phases(spec: Recurrent) -> tuple[Phase, ...]:
    """Return one phase, or two."""
    if spec.is_linear_before_reset:
        return (Phase((Z, R, H), ("pre", "pre", "bias"), _finish_linear),)
    return (
        Phase((Z, R), ("pre", "pre"), _finish_reset, keeps=("update", "reset")),
        Phase((H,), ("pre",), _finish_state, reads="reset"),
    )


def _finish_linear(spec: Recurrent, at: Unit) -> None:
    z, r, h = at.acc(Z), at.acc(R), at.acc(H)
    at.set(Z, lambda lane: gate(spec, 0, z(lane)))
    at.set(R, lambda lane: gate(spec, 0, r(lane)))
    at.set(H, lambda lane: at.pre(H)(lane) + r(lane) * h(lane))
    _mix(spec, at, z, H)


def _finish_reset(spec: Recurrent, at: Unit) -> None:
    z, r = at.acc(Z), at.acc(R)
    at.put("update", lambda lane: gate(spec, 0, z(lane)))
    at.put("reset", lambda lane: gate(spec, 0, r(lane)) * at.state("h")(lane))


def _finish_state(spec: Recurrent, at: Unit) -> None:
    _mix(spec, at, at.state("update"), 0)


def _mix(spec: Recurrent, at: Unit, z: Fn, slot: int) -> None:
    """h' = (1 - z) g(accumulator) + z h."""
    at.set(slot, lambda lane: gate(spec, 1, at.acc(slot)(lane)))

    def mixed(lane: Expr) -> Expr:
        return (f32(1.0) - z(lane)) * at.acc(slot)(lane) + z(lane) * at.state("h")(lane)

    at.put("h", mixed)
