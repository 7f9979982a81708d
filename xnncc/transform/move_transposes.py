"""The walk behind CancelTransposes: every variable as a base and the axes it is transposed by, and operators on bases.

A value is ``permute_dims(base, axes)``, where nothing is emitted until somebody needs the value itself. An operator in
``moved_operators.py`` runs on the base and passes the axes on; all others get the value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.relax import Expr, Var

from ..ir.transposed import transposed_name

Axes = tuple[int, ...]


@dataclass(frozen=True)
class Moved:
    """The value permute_dims(base, axes); with ``axes`` None the base itself. ``flat``: then reshaped to that.

    ``name`` is the value's own, for when it is emitted.
    """

    base: Expr
    axes: Axes | None = None
    flat: tuple[int, ...] | None = None
    name: str = ""


def shape_of(expr: Expr) -> tuple[int, ...]:
    """Return the static shape of a tensor expression."""
    return tuple(int(d) for d in expr.ty.shape)


def inverse(axes: Sequence[int]) -> Axes:
    """Return the permutation that undoes ``axes``."""
    return tuple(int(i) for i in np.argsort(axes))


def array_in(expr: Any) -> np.ndarray | None:
    """Return what a constant holds; None for any other expression."""
    return expr.value.numpy() if isinstance(expr, tvm.ir.GenericConst) else None


def is_view(shape: Sequence[int], axes: Sequence[int]) -> bool:
    """Return whether transposing ``shape`` by ``axes`` only moves dimensions of size 1."""
    real = [axis for axis in axes if shape[axis] != 1]
    return real == sorted(real)


class Mover:
    """State of one walk. ``moved_operators`` use ``value``, ``plain``, ``emit`` and ``readers``."""

    def __init__(self) -> None:
        self._block = relax.BlockBuilder()
        self._bindings: list[relax.Binding] = []
        self._env: dict[Var, Moved] = {}
        self._parts: dict[Var, list[Moved]] = {}
        self._transposed: dict[tuple[Expr, Axes], Expr] = {}
        self._readers: dict[Var, list[Any]] = {}
        self.name = ""

    def function(self, func: relax.Function) -> relax.Function:
        """Return ``func`` with transpositions moved down."""
        from .moved_operators import MOVED

        bindings = [b for block in func.body.blocks for b in block.bindings]
        for binding in bindings:
            for var in _variables(binding.value):
                self._readers.setdefault(var, []).append(binding.value)
        for var in _variables(func.body.body):
            self._readers.setdefault(var, []).append(None)
        self._env = {param: Moved(param) for param in func.params}
        for binding in bindings:
            self._visit(binding, MOVED)
        result = self._operand(func.body.body)
        kept, fields = self._live(result)
        body = self._block.normalize(relax.SeqExpr([relax.DataflowBlock(kept)], fields))
        return relax.Function(func.params, body, func.ret_ty, func.is_pure, func.attrs)

    def _live(self, result: Expr) -> tuple[list[relax.Binding], Expr]:
        """Return the bindings that ``result`` needs, what it returns as variables of their own, and ``result``."""
        returned = set(_variables(result))
        wanted, live = set(returned), []
        for binding in reversed(self._bindings):
            if binding.var in wanted:
                live.append(binding)
                wanted.update(_variables(binding.value))
        final: dict[Var, Expr] = {}
        kept = []
        for binding in reversed(live):
            kind = Var if binding.var in returned else relax.DataflowVar
            final[binding.var] = kind(binding.var.name, binding.var.ty)
            kept.append(relax.VarBinding(final[binding.var], _replaced(binding.value, final)))
        return kept, _replaced(result, final)

    def _visit(self, binding: relax.Binding, operators: dict[str, Any]) -> None:
        var, expr = binding.var, binding.value
        self.name = var.name
        if isinstance(expr, relax.TupleGetItem) and expr.tuple_value in self._parts:
            self._env[var] = self._parts[expr.tuple_value][expr.index]
            return
        handler = operators.get(getattr(expr.op, "name", "")) if isinstance(expr, tvm.ir.Call) else None
        result = handler(self, expr) if handler else None
        if isinstance(result, list):
            self._parts[var] = result
        else:
            self._env[var] = result or Moved(self.bind(self._operand(expr, top=True), var.name))

    def _operand(self, expr: Any, top: bool = False) -> Any:
        """Return ``expr`` over values in their own layout."""
        if isinstance(expr, Var):
            if expr in self._parts:
                return relax.Tuple([self.plain(part) for part in self._parts[expr]])
            return self.plain(self._env[expr]) if expr in self._env else expr
        if isinstance(expr, relax.Tuple):
            return relax.Tuple([self._operand(field) for field in expr.fields])
        if isinstance(expr, relax.TupleGetItem):
            return relax.TupleGetItem(self._operand(expr.tuple_value), expr.index)
        if top and isinstance(expr, tvm.ir.Call):
            return tvm.ir.Call(
                expr.op, [self._operand(arg) for arg in expr.args], expr.attrs, expr.ty_args, ret_ty=expr.ty
            )
        return expr

    def bind(self, expr: Expr, name: str) -> Expr:
        """Emit ``expr`` as variable ``name``; leaves come back as they are."""
        if isinstance(expr, Var | tvm.ir.GenericConst):
            return expr
        value = self._block.normalize(expr)
        var = relax.DataflowVar(name, value.ty)
        self._bindings.append(relax.VarBinding(var, value))
        return var

    def value(self, expr: Any) -> Moved:
        """Return what is known of a tensor operand."""
        return self._env.get(expr, Moved(expr)) if isinstance(expr, Var) else Moved(expr)

    def readers(self) -> list[Any]:
        """Return the calls that read the variable being visited; None stands for the function's result."""
        return [reader for var, calls in self._readers.items() if var.name == self.name for reader in calls]

    def plain(self, value: Moved) -> Expr:
        """Return the value itself; the same transposition is emitted once."""
        if value.axes is None:
            return value.base
        if value.flat is None:
            return self.transposed(value.base, value.axes, value.name)
        expr = self.transposed(value.base, value.axes, f"{value.name}#1")
        return self.bind(relax.op.reshape(expr, value.flat), value.name)

    def is_free(self, value: Moved) -> bool:
        """Return whether the value itself exists already, or is a mere change of shape."""
        if value.axes is None or (value.base, value.axes) in self._transposed:
            return True
        return is_view(shape_of(value.base), value.axes)

    def transposed(self, expr: Expr, axes: Axes, name: str) -> Expr:
        """Return permute_dims(expr, axes): of constants in numpy, as a reshape where that is the same."""
        array = array_in(expr)
        if array is not None:
            return constant(array.transpose(axes))
        if (expr, axes) not in self._transposed:
            shape = shape_of(expr)
            turned = tuple(shape[axis] for axis in axes)
            call = relax.op.reshape(expr, turned) if is_view(shape, axes) else relax.op.permute_dims(expr, list(axes))
            self._transposed[expr, axes] = self.bind(call, name)
        return self._transposed[expr, axes]

    def result(self, expr: Expr, axes: Axes) -> Moved:
        """Return what permute_dims(expr, axes) is, named as the variable being visited in its new order."""
        var = self.bind(expr, transposed_name(self.name, inverse(axes)) if len(axes) < 10 else self.name)
        return self.moved(var, axes)

    def moved(self, base: Expr, axes: Axes) -> Moved:
        """Return the value permute_dims(base, axes), named as the variable being visited."""
        return Moved(base) if axes == tuple(range(len(axes))) else Moved(base, axes, None, self.name)


def constant(array: np.ndarray) -> Expr:
    """Return ``array`` as a Relax constant of its dtype."""
    return relax.const(np.ascontiguousarray(array).reshape(array.shape), str(array.dtype))


def size_of(expr: Expr) -> int:
    """Return the number of elements of a tensor expression."""
    return prod(shape_of(expr))


def _variables(expr: Any) -> list[Var]:
    if isinstance(expr, Var):
        return [expr]
    if isinstance(expr, relax.TupleGetItem):
        return _variables(expr.tuple_value)
    parts = expr.args if isinstance(expr, tvm.ir.Call) else expr.fields if isinstance(expr, relax.Tuple) else []
    return [var for part in parts for var in _variables(part)]


def _replaced(expr: Any, final: dict[Var, Expr]) -> Any:
    if isinstance(expr, Var):
        return final.get(expr, expr)
    if isinstance(expr, relax.TupleGetItem):
        return relax.TupleGetItem(_replaced(expr.tuple_value, final), expr.index)
    if isinstance(expr, relax.Tuple):
        return relax.Tuple([_replaced(field, final) for field in expr.fields])
    if isinstance(expr, tvm.ir.Call):
        args = [_replaced(arg, final) for arg in expr.args]
        return tvm.ir.Call(expr.op, args, expr.attrs, expr.ty_args, ret_ty=expr.ty)
    return expr
