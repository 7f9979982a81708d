"""What a recurrent cell is written with: phases, one unit block of registers, and the activations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tvm import tirx
from tvm.script.ir_builder import tirx as T
from tvm.tirx import Expr

from ..ir.recurrent import Activation, Recurrent
from . import math

Fn = Callable[[Expr], Expr]  # of the lane


@dataclass(frozen=True)
class Phase:
    """One pass over recurrent weights: accumulators of ``gates`` begin with "pre" or "bias", get the product of state
    ``reads`` with the weights, and ``finish`` computes what follows. ``keeps``: scratch for later phases, [D, N, B*v].
    """

    gates: tuple[int, ...]
    begins: tuple[str, ...]
    finish: Callable[[Recurrent, Unit], None]
    reads: str = "h"
    keeps: tuple[str, ...] = ()


@dataclass(frozen=True)
class Unit:
    """One block of v units of one sequence at one step. Functions of the lane read; ``set`` and ``put`` write, each in
    a loop over the lanes of its own, so no expression is written out twice."""

    buffers: Mapping[str, tirx.Var]
    accumulators: tirx.Var
    first: int  # its accumulator of gate slot 0
    stride: int  # accumulators from slot to slot
    v: int
    place: tuple[Expr, Expr, Expr]  # direction, sequence, block
    t: Expr
    s: Expr

    def acc(self, slot: int) -> Fn:
        """Return the accumulator of gate slot ``slot``."""
        return lambda lane: self.accumulators[self.first + slot * self.stride, lane]

    def set(self, slot: int, value: Fn) -> None:
        """Overwrite the accumulator of gate slot ``slot``."""
        with T.vectorized(self.v) as lane:
            T.buffer_store(self.accumulators, value(lane), [self.first + slot * self.stride, lane])

    def pre(self, gate: int) -> Fn:
        """Return the input's part of ``gate``."""
        d, n, block = self.place
        return lambda lane: self.buffers["pre"][self.t, n, d, gate, block, lane]

    def peephole(self, index: int, state: Fn) -> Fn:
        """Return peephole ``index`` times ``state``; zero when the layer has none."""
        d, _, block = self.place
        if "p" not in self.buffers:
            return lambda lane: math.f32(0.0)
        return lambda lane: self.buffers["p"][d, index, block, lane] * state(lane)

    def has(self, name: str) -> bool:
        """Return whether the layer has parameter or scratch ``name``."""
        return name in self.buffers

    def state(self, name: str) -> Fn:
        """Return state ``name``; of h that before this step."""
        return lambda lane: self.buffers[name][tuple(self._index(name, self.s, lane))]

    def put(self, name: str, value: Fn) -> None:
        """Write state ``name``; of h that after this step."""
        with T.vectorized(self.v) as lane:
            T.buffer_store(self.buffers[name], value(lane), self._index(name, self.s + 1, lane))

    def _index(self, name: str, s: Expr, lane: Expr) -> list[Expr]:
        d, n, block = self.place
        place = [d, n, block * self.v + lane]
        return [s % 2, *place] if name == "h" else place


def clipped(spec: Recurrent, x: Expr) -> Expr:
    """Return what enters an activation."""
    return tirx.max(tirx.min(x, math.f32(spec.clip)), math.f32(-spec.clip)) if spec.clip else x


def activate(activation: Activation, x: Expr) -> Expr:
    """Return the activation of ``x``."""
    return _ACTIVATIONS[activation.name](x, math.f32(activation.alpha), math.f32(activation.beta))


def gate(spec: Recurrent, index: int, x: Expr) -> Expr:
    """Return activation ``index`` of ``x``, clipped before."""
    return activate(spec.activations[index], clipped(spec, x))


_ACTIVATIONS: dict[str, Callable[[Expr, Expr, Expr], Expr]] = {
    "sigmoid": lambda x, a, b: math.sigmoid(x),
    "tanh": lambda x, a, b: math.tanh(x),
    "relu": lambda x, a, b: tirx.max(x, math.f32(0.0)),
    "affine": lambda x, a, b: a * x + b,
    "leakyrelu": lambda x, a, b: tirx.Select(x < math.f32(0.0), a * x, x),
    "thresholdedrelu": lambda x, a, b: tirx.Select(x > a, x, math.f32(0.0)),
    "scaledtanh": lambda x, a, b: a * math.tanh(b * x),
    "hardsigmoid": lambda x, a, b: tirx.max(tirx.min(a * x + b, math.f32(1.0)), math.f32(0.0)),
    "elu": lambda x, a, b: tirx.Select(x < math.f32(0.0), a * (math.exp(x) - math.f32(1.0)), x),
    "softsign": lambda x, a, b: x / (math.f32(1.0) + tirx.abs(x)),
    "softplus": lambda x, a, b: (
        tirx.max(x, math.f32(0.0)) + tirx.log(math.f32(1.0) + math.exp(math.f32(0.0) - tirx.abs(x)))
    ),
}
