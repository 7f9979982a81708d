"""FlatNetwork: ``main`` as a list that passes edit, for rewrites that must keep the names of tensors.

TVM's pattern rewriter names what it makes ``lv``; here a binding keeps its variable's name, whatever it computes now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.ir import Call, GenericConst
from tvm.relax import TupleGetItem, Var


class FlatNetwork:
    """``values``: variable -> what it computes, in order. Edit it with ``replace`` and ``drop``, then ``module()``."""

    def __init__(self, mod: tvm.IRModule) -> None:
        self._mod = mod
        main = mod["main"]
        self.params = list(main.params)
        self.values: dict[Var, Any] = {b.var: b.value for block in main.body.blocks for b in block.bindings}
        returned = main.body.body
        fields = returned.fields if isinstance(returned, relax.Tuple) else self.values.pop(returned).fields
        self.outputs: list[Any] = list(fields)
        self.uses = Counter(var for value in self.values.values() for var in variables(value))
        self.uses.update(var for var in self.outputs if isinstance(var, Var))

    def replace(self, var: Var, value: Any) -> None:
        """Let ``var`` compute ``value``, of the same shape."""
        self.uses.subtract(variables(self.values[var]))
        self.values[var] = value
        self.uses.update(variables(value))

    def drop(self, var: Var, instead: Var) -> None:
        """Remove ``var``; who read it reads ``instead``."""
        self.uses.subtract(variables(self.values.pop(var)))
        for other, value in self.values.items():
            if any(var.same_as(one) for one in variables(value)):
                self.values[other] = substituted(value, {var: instead})
        self.outputs = [instead if isinstance(out, Var) and var.same_as(out) else out for out in self.outputs]
        self.uses[instead] += self.uses.pop(var, 0)

    def module(self) -> tvm.IRModule:
        """Return the edited module; what nothing reads any more is dropped."""
        live = self._live()
        block = relax.BlockBuilder()
        mod = tvm.IRModule({var: func for var, func in self._mod.functions.items() if var.name_hint != "main"})
        new: dict[Var, Any] = {param: param for param in self.params}
        returned = {var for var in self.outputs if isinstance(var, Var)}
        with block.function("main", self.params):
            with block.dataflow():
                for var in live:
                    value = block.normalize(substituted(self.values[var], new))
                    kind = Var if var in returned else relax.DataflowVar
                    new[var] = kind(var.name, value.ty)
                    block.emit_normalized(relax.VarBinding(new[var], value))
            block.emit_func_output(
                relax.Tuple([new.get(out, out) if isinstance(out, Var) else out for out in self.outputs])
            )
        mod["main"] = block.get()["main"]
        return mod

    def _live(self) -> list[Var]:
        wanted = {out for out in self.outputs if isinstance(out, Var)}
        kept = []
        for var in reversed(list(self.values)):
            if var in wanted:
                kept.append(var)
                wanted.update(variables(self.values[var]))
        return kept[::-1]


def variables(expr: Any) -> Iterator[Var]:
    """Yield the variables that ``expr`` reads."""
    if isinstance(expr, Var):
        yield expr
    elif isinstance(expr, TupleGetItem):
        yield from variables(expr.tuple_value)
    elif isinstance(expr, Call | relax.Tuple):
        for part in expr.args if isinstance(expr, Call) else expr.fields:
            yield from variables(part)


def substituted(expr: Any, new: dict[Var, Any]) -> Any:
    """Return ``expr`` with variables replaced."""
    if isinstance(expr, Var):
        return new.get(expr, expr)
    if isinstance(expr, TupleGetItem):
        return TupleGetItem(substituted(expr.tuple_value, new), expr.index)
    if isinstance(expr, relax.Tuple):
        return relax.Tuple([substituted(field, new) for field in expr.fields])
    if isinstance(expr, Call):
        return Call(expr.op, [substituted(arg, new) for arg in expr.args], expr.attrs, expr.ty_args)
    return expr


def constant_of(expr: Any) -> np.ndarray | None:
    """Return a float32 constant's array, None for anything else."""
    if not isinstance(expr, GenericConst):
        return None
    array = expr.value.numpy()
    return array if array.dtype == np.float32 else None


def with_operand(call: Call, index: int, array: np.ndarray) -> Call:
    """Return ``call`` with operand ``index`` the constant ``array``."""
    args = list(call.args)
    args[index] = relax.const(np.ascontiguousarray(array, np.float32), "float32")
    return Call(call.op, args, call.attrs, call.ty_args)
