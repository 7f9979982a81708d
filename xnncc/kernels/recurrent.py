"""f32_recurrent: one layer of LSTM, GRU or RNN as one kernel that loops over time; meaning in ``ir/recurrent.py``.

The input's part comes from a matrix product before it. Units stand in blocks of v lanes, padded with zero weights:

    pre [T, N, D, G, B, v]      W x + bias            r of each phase [D, B/g, H, q*g, v], see ``Phase``
    bias [D, B, v]  p [D, 3, B, v]  h0, c0 [D, N, H]  lens [N] int32     ->     y [T, D, N, H], yh, yc [D, N, H]

A register tile is ``rows`` sequences x q gates x g blocks: all gates of a unit are complete together, so the cell is
computed from registers, and recurrent weights are read in one contiguous pass. Directions and tiles of sequences do not
depend on each other and run in parallel. The state stands in two buffers by turns, so nothing is copied.

The kernel is written with its schedule, as loops and stores; nothing is allocated inside the loop over time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import tvm
from tvm import tirx
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T
from tvm.tirx import Expr

from ..ir.recurrent import Recurrent
from . import recurrent_gru, recurrent_lstm, recurrent_rnn, rule
from .recurrent_cell import Phase, Unit

CELLS = {"lstm": recurrent_lstm, "gru": recurrent_gru, "rnn": recurrent_rnn}
PARALLEL_MACS = 65536  # of one task: below this a launch costs more than it saves


@dataclass(frozen=True)
class Tile:
    """``blocks`` of lanes in all, ``rows`` sequences at once, and blocks at once for each phase."""

    blocks: int
    rows: int
    groups: tuple[int, ...]


def phases_of(spec: Recurrent) -> tuple[Phase, ...]:
    """Return the passes over recurrent weights that one step takes."""
    return CELLS[spec.cell].phases(spec)


def f32_recurrent(spec: Recurrent, steps: int, batch: int, tile: Tile, v: int) -> tirx.PrimFunc:
    """Return the kernel; parameters: pre, one r for each phase, then those of bias, p, h0, c0 and lens that there are,
    then the outputs of ``spec``."""
    with IRBuilder() as builder, T.prim_func(s_tir=True):
        T.func_name(spec.cell)
        T.func_attr({"tirx.noalias": True, "op_pattern": 8})
        _Layer(spec, steps, batch, tile, v).write()
    return builder.get()


class _Layer:
    """Writes the body of one kernel."""

    def __init__(self, spec: Recurrent, steps: int, batch: int, tile: Tile, v: int) -> None:
        self.spec, self.steps, self.batch, self.tile, self.v = spec, steps, batch, tile, v
        self.directions, self.phases = len(spec.reverse), phases_of(spec)

    def write(self) -> None:
        """Declare parameters and scratch, then the two blocks: the state before the first step, and all steps."""
        inputs, outputs = self._parameters()
        state = (self.directions, self.batch, self.tile.blocks * self.v)
        names = dict.fromkeys(["c"] * ("c" in CELLS[self.spec.cell].STATE) + [s for p in self.phases for s in p.keeps])
        scratch = {"h": T.sblock_alloc_buffer((2, *state), "float32")}
        scratch |= {name: T.sblock_alloc_buffer(state, "float32") for name in names}
        self.buffers = {**inputs, **outputs, **scratch}
        with T.sblock("start"):  # scratch that two blocks use belongs to the whole kernel, and so to the memory plan
            T.reads([_whole(inputs[name]) for name in ("h0", "c0") if name in inputs])
            T.writes([_whole(buffer) for buffer in scratch.values()])
            for name in scratch:
                self._start(name)
        with T.sblock("steps"):
            T.reads([_whole(buffer) for buffer in (*inputs.values(), *scratch.values())])
            T.writes([_whole(buffer) for buffer in (*outputs.values(), *scratch.values())])
            T.sblock_attr(rule("recurrent", t=self.steps, n=self.batch, h=self.spec.hidden, rows=self.tile.rows))
            self._tasks()

    def _parameters(self) -> tuple[dict[str, tirx.Var], dict[str, tirx.Var]]:
        spec, v, blocks, d = self.spec, self.v, self.tile.blocks, self.directions
        shapes: dict[str, tuple[int, ...]] = {"pre": (self.steps, self.batch, d, spec.gates, blocks, v)}
        for i, (phase, g) in enumerate(zip(self.phases, self.tile.groups, strict=True)):
            shapes[f"r{i}"] = (d, blocks // g, spec.hidden, len(phase.gates) * g, v)
        if any("bias" in phase.begins for phase in self.phases):
            shapes["bias"] = (d, blocks, v)
        state = spec.shape("yh", self.steps, self.batch)
        optional = {"p": (d, 3, blocks, v), "h0": state, "c0": state, "lens": (self.batch,)}
        shapes |= {name: shape for name, shape in optional.items() if name in spec.operands}
        inputs = {n: T.arg(n, T.buffer(s, "int32" if n == "lens" else "float32")) for n, s in shapes.items()}
        outputs = {n: T.arg(n, T.buffer(spec.shape(n, self.steps, self.batch), "float32")) for n in spec.outputs}
        return inputs, outputs

    def _start(self, name: str) -> None:
        """Set scratch ``name`` to the initial state, zeros where there is none."""
        given, zero = self.buffers.get(f"{name}0"), tirx.const(0, "float32")
        first = [0] if name == "h" else []
        with T.serial(self.directions) as d, T.serial(self.batch) as n:
            with T.serial(self.spec.hidden if given is not None else 0) as j:
                if given is not None:
                    T.buffer_store(self.buffers[name], given[d, n, j], [*first, d, n, j])
            begin = self.spec.hidden if given is not None else 0
            with T.serial(self.tile.blocks * self.v - begin) as j:
                T.buffer_store(self.buffers[name], zero, [*first, d, n, begin + j])

    def _tasks(self) -> None:
        """Write the loop over directions and tiles of sequences, and in it the one over time."""
        tiles, rows = self.batch // self.tile.rows, self.tile.rows
        count = self.directions * tiles
        macs = self.steps * rows * self.spec.gates * self.spec.hidden**2
        loop = T.parallel if count > 1 and macs >= PARALLEL_MACS else T.serial
        with loop(count) as task:
            d, n = task // tiles, task % tiles * rows
            sizes = [len(p.gates) * g * rows for p, g in zip(self.phases, self.tile.groups, strict=True)]
            accumulators = [T.alloc_buffer((size, self.v), "float32", scope="local") for size in sizes]
            with T.serial(self.steps) as s:
                t = self._time(d, s)
                if "lens" in self.buffers:
                    with T.If(t < self.buffers["lens"][n]):
                        with T.Then():
                            self._step(accumulators, d, n, s, t)
                        with T.Else():
                            self._skip(d, n, s, t)
                else:
                    self._step(accumulators, d, n, s, t)
            with T.serial(rows) as row:
                for name, at in (("h", [self.steps % 2]), ("c", [])):
                    if f"y{name}" in self.buffers:
                        self._finish(name, at, [d, n + row])

    def _finish(self, name: str, at: list[Expr | int], place: list[Expr]) -> None:
        """Write the last state; zero for an empty sequence."""
        b = self.buffers

        def store(j: Expr) -> None:
            value = b[name][(*at, *place, j)]
            if "lens" in b:
                value = tirx.Select(b["lens"][place[1]] > 0, value, tirx.const(0, "float32"))
            T.buffer_store(b[f"y{name}"], value, [*place, j])

        self._each_unit(store)

    def _time(self, d: Expr, s: Expr) -> Expr:
        """Return which step of the input direction ``d`` reads in its ``s``-th."""
        last = self.steps - 1
        if len(set(self.spec.reverse)) == 1:
            return last - s if self.spec.reverse[0] else s
        return s + d * (last - 2 * s)  # forward, then reverse

    def _step(self, accumulators: list[tirx.Var], d: Expr, n: Expr, s: Expr, t: Expr) -> None:
        for i, phase in enumerate(self.phases):
            self._phase(i, phase, accumulators[i], d, n, s, t)
        if "y" in self.buffers:
            with T.serial(self.tile.rows) as row:
                self._copy("y", [t, d, n + row], "h", [(s + 1) % 2, d, n + row])

    def _phase(self, i: int, phase: Phase, acc: tirx.Var, d: Expr, n: Expr, s: Expr, t: Expr) -> None:
        """Multiply the state by the weights of one phase, then compute the cell."""
        b, g, rows, v = self.buffers, self.tile.groups[i], self.tile.rows, self.v
        wide = len(phase.gates) * g
        with T.serial(self.tile.blocks // g) as a:
            for row in range(rows):
                for slot, (gate, begin) in enumerate(zip(phase.gates, phase.begins, strict=True)):
                    for block in range(g):
                        with T.vectorized(v) as lane:
                            first = b["bias"][d, a * g + block, lane] if begin == "bias" else None
                            first = first if first is not None else b["pre"][t, n + row, d, gate, a * g + block, lane]
                            T.buffer_store(acc, first, [row * wide + slot * g + block, lane])
            with T.serial(self.spec.hidden) as k, T.unroll(rows) as row, T.unroll(wide) as u, T.vectorized(v) as lane:
                at = row * wide + u
                state = b["h"][s % 2, d, n + row, k] if phase.reads == "h" else b[phase.reads][d, n + row, k]
                T.buffer_store(acc, acc[at, lane] + state * b[f"r{i}"][d, a, k, u, lane], [at, lane])
            for row in range(rows):
                for block in range(g):
                    unit = Unit(b, acc, row * wide + block, g, v, (d, n + row, a * g + block), t, s)
                    phase.finish(self.spec, unit)

    def _skip(self, d: Expr, n: Expr, s: Expr, t: Expr) -> None:
        """Leave the state of a sequence that has ended as it is."""
        self._copy("h", [(s + 1) % 2, d, n], "h", [s % 2, d, n])
        if "y" in self.buffers:
            self._each_unit(lambda j: T.buffer_store(self.buffers["y"], tirx.const(0, "float32"), [t, d, n, j]))

    def _copy(self, target: str, to: list[Expr | int], source: str, at: list[Expr | int]) -> None:
        """Copy the H units of one sequence, without the padding."""
        b = self.buffers
        self._each_unit(lambda j: T.buffer_store(b[target], b[source][(*at, j)], [*to, j]))

    def _each_unit(self, store: Callable[[Expr], None]) -> None:
        whole = self.spec.hidden // self.v
        with T.serial(whole) as block, T.vectorized(self.v) as lane:
            store(block * self.v + lane)
        with T.serial(self.spec.hidden - whole * self.v) as j:
            store(whole * self.v + j)


def _whole(buffer: tirx.Var) -> tvm.ir.Expr:
    """Return all of ``buffer`` as a region."""
    assert prod(int(d) for d in buffer.shape) > 0
    return buffer[tuple(slice(0, int(d)) for d in buffer.shape)]
