"""Recurrent layers: the input's part of all steps and gates as one matrix product, the steps as one kernel.

    Given:                                        Result:
      y = xnn.recurrent(x, w, r, b, ...)            pre = gemm(x, packed w, b)             [T*N, D*G*B*v]
                                                    y   = lstm(pre, packed r, ...)         one kernel; B blocks of units

Weights are packed by numpy at build time, or by operators of the graph when they are inputs of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import tvm
from tvm import relax

from ..ir.recurrent import NAME, Recurrent
from ..kernels import matmul
from ..kernels.recurrent import Tile, f32_recurrent, phases_of
from .choose_recurrent import choose_tile
from .layout_walk import OUT_FUSABLE, Value, Walk, constant, shape_of

Tensor: TypeAlias = "np.ndarray | relax.Expr"


def recurrent_handler(walk: Walk, call: tvm.ir.Call) -> Value | list[Value] | None:
    """Return the layer's output, or several; None for a call of another function."""
    function, *operands, text = call.args
    if function.global_symbol != NAME:
        return None
    spec = Recurrent.from_json(text.value)
    layer = _Layer(walk, spec, dict(zip(spec.operands, (walk.value(o) for o in operands), strict=True)))
    args = [layer.projected(), *layer.weights(), *layer.rest()]
    func = f32_recurrent(spec, layer.steps, layer.batch, layer.tile, walk.lanes)
    types = [relax.TensorType(spec.shape(o, layer.steps, layer.batch), "float32") for o in spec.outputs]
    kernel = walk.builder.add_func(func, spec.cell)
    var = walk.relax_op(relax.call_tir(kernel, args, out_ty=types if len(types) > 1 else types[0]))
    if len(types) == 1:
        return Value(shape_of(var), expr=var, name=walk.name)
    parts = [walk.builder.emit(relax.TupleGetItem(var, i)) for i in range(len(types))]
    return [Value(shape_of(part), expr=part, name=walk.name) for part in parts]


class _Layer:
    """One layer under way: its operands, and the kernel's arguments made of them."""

    def __init__(self, walk: Walk, spec: Recurrent, operands: dict[str, Value]) -> None:
        self.walk, self.spec, self.operands = walk, spec, operands
        self.steps, self.batch, self.inputs = operands["x"].shape
        self.tile: Tile = choose_tile(spec, self.batch, walk.machine)
        self.directions, self.units = len(spec.reverse), self.tile.blocks * walk.lanes

    def projected(self) -> relax.Expr:
        """Return pre [T, N, D, G, B, v] = x times w plus bias."""
        v, rows, width = self.walk.lanes, self.steps * self.batch, self.directions * self.spec.gates * self.units
        gates = (self.directions, self.spec.gates, self.spec.hidden)
        w = self._padded(self._reshaped(self._given("w"), (*gates, self.inputs)), 2)
        w = self._reshaped(w, (width // v, v, self.inputs))
        x = self.walk.reshaped(self.walk.plain(self.operands["x"]), (rows, self.inputs))
        args = (x, self._expr(self._transposed(w, (0, 2, 1))), self._expr(self._bias()))
        hint, fn = "gemm", matmul.f32_gemm
        if rows == 1:
            hint, fn = "gemv", lambda x, w, b: matmul.f32_gemv(x, w, b, width)
        y = self.walk.emit(fn, *args, hint=hint, pattern=OUT_FUSABLE, name="projected")
        return self.walk.reshaped(y, (self.steps, self.batch, *gates[:2], self.tile.blocks, v))

    def weights(self) -> list[relax.Expr]:
        """Return the recurrent weights of each phase, [D, B/g, H, gates*g, v]."""
        d, hidden, v = self.directions, self.spec.hidden, self.walk.lanes
        r = self._padded(self._reshaped(self._given("r"), (d, self.spec.gates, hidden, hidden)), 2)
        packed = []
        for phase, g in zip(phases_of(self.spec), self.tile.groups, strict=True):
            q, groups = len(phase.gates), self.tile.blocks // g
            part = self._cut(r, 1, phase.gates[0], phase.gates[-1] + 1)
            part = self._transposed(self._reshaped(part, (d, q, groups, g, v, hidden)), (0, 2, 5, 1, 3, 4))
            packed.append(self._expr(self._reshaped(part, (d, groups, hidden, q * g, v))))
        return packed

    def rest(self) -> list[relax.Expr]:
        """Return the recurrent bias where it stands apart, and what is taken as it is given."""
        d, lanes = self.directions, (self.tile.blocks, self.walk.lanes)
        args = []
        if self.spec.is_linear_before_reset:
            gate = self._cut(self._biases(1), 1, self.spec.gates - 1, self.spec.gates)
            args.append(self._expr(self._reshaped(gate, (d, *lanes))))
        if "p" in self.operands:
            p = self._padded(self._reshaped(self._given("p"), (d, 3, self.spec.hidden)), 2)
            args.append(self._expr(self._reshaped(p, (d, 3, *lanes))))
        return args + [self.walk.plain(self.operands[name]) for name in ("h0", "c0", "lens") if name in self.operands]

    def _bias(self) -> Tensor:
        """Return what is added to the input's part, [D*G*B, v]: both biases, but for one that stands apart."""
        own, recurrent = self._biases(0), self._biases(1)
        if self.spec.is_linear_before_reset:
            recurrent = self._cut(recurrent, 1, 0, self.spec.gates - 1)
            recurrent = self._with_zeros(recurrent, 1, 1)
        return self._reshaped(self._sum(own, recurrent), (-1, self.walk.lanes))

    def _biases(self, which: int) -> Tensor:
        """Return the input's (0) or the recurrence's (1) bias, [D, G, B*v]."""
        d, gates, hidden = self.directions, self.spec.gates, self.spec.hidden
        if "b" not in self.operands:
            return np.zeros((d, gates, self.units), "float32")
        both = self._reshaped(self._given("b"), (d, 2 * gates, hidden))
        return self._padded(self._cut(both, 1, which * gates, (which + 1) * gates), 2)

    def _given(self, name: str) -> Tensor:
        value = self.operands[name]
        return value.const if value.const is not None else self.walk.plain(value)

    def _expr(self, tensor: Tensor) -> relax.Expr:
        return constant(tensor) if isinstance(tensor, np.ndarray) else tensor

    # The same rearrangement of a constant, now, and of a tensor that is known at run time, by operators.

    def _padded(self, x: Tensor, axis: int) -> Tensor:
        return self._with_zeros(x, axis, self.units - self.spec.hidden)

    def _with_zeros(self, x: Tensor, axis: int, count: int) -> Tensor:
        rank = x.ndim if isinstance(x, np.ndarray) else len(shape_of(x))
        widths = [(0, count if i == axis else 0) for i in range(rank)]
        if isinstance(x, np.ndarray):
            return self.walk.coded.follow(x, lambda a: np.pad(a, widths))
        return self.walk.builder.emit(relax.op.nn.pad(x, [side for pair in widths for side in pair])) if count else x

    def _reshaped(self, x: Tensor, shape: tuple[int, ...]) -> Tensor:
        if isinstance(x, np.ndarray):
            return self.walk.coded.follow(x, lambda a: a.reshape(shape))
        return self.walk.builder.emit(relax.op.reshape(x, shape))

    def _transposed(self, x: Tensor, axes: Sequence[int]) -> Tensor:
        if isinstance(x, np.ndarray):
            return self.walk.coded.follow(x, lambda a: np.ascontiguousarray(a.transpose(axes)))
        return self.walk.builder.emit(relax.op.permute_dims(x, axes))

    def _cut(self, x: Tensor, axis: int, begin: int, end: int) -> Tensor:
        if isinstance(x, np.ndarray):
            return self.walk.coded.follow(x, lambda a: a[(slice(None),) * axis + (slice(begin, end),)])
        return self.walk.builder.emit(relax.op.strided_slice(x, [axis], [begin], [end]))

    def _sum(self, a: Tensor, b: Tensor) -> Tensor:
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
            return a + b
        return self.walk.builder.emit(relax.op.add(self._expr(a), self._expr(b)))
