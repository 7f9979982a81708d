"""NetworkBuilder: a flat, named Relax function, built one operator at a time.

Every operator of ours becomes one binding, so a front-end decides the name of every variable. TVM's BlockBuilder
would make names unique and drop characters that the model's author used; here ``a/b:0`` stays ``a/b:0``.
``finish`` drops what no output needs and hands over ``main(inputs...) -> Tuple(outputs...)``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm import relax, te
from tvm.ir import Call, GenericConst
from tvm.relax import Expr, TupleGetItem, Var


@dataclass
class _Binding:
    var: Var
    value: Expr
    name: str


def shape_of(expr: Expr) -> tuple[int, ...]:
    """Return the static shape of a tensor expression whose type is known."""
    return tuple(int(dim) for dim in expr.ty.shape.values)


def dtype_of(expr: Expr) -> str:
    """Return the numpy dtype name of a tensor expression whose type is known."""
    return str(expr.ty.dtype)


def array_in(expr: Expr) -> np.ndarray | None:
    """Return what a Relax constant holds; None for any other expression."""
    return expr.value.numpy() if isinstance(expr, GenericConst) else None


def constant(array: np.ndarray) -> Expr:
    """Return ``array`` as a Relax constant of exactly its dtype (``relax.const`` alone turns int64 into int32)."""
    return relax.const(np.ascontiguousarray(array).reshape(array.shape), str(array.dtype))


class NetworkBuilder:
    """Collects bindings; see the module's text."""

    def __init__(self) -> None:
        self._block = relax.BlockBuilder()
        self._inputs: list[Var] = []
        self._bindings: list[_Binding] = []
        self._at: dict[Var, int] = {}
        self._constants: dict[int, tuple[np.ndarray, Expr]] = {}  # by id of the array, which is kept alive here
        self._derived: dict[tuple[int, Hashable], tuple[np.ndarray, Expr]] = {}

    def constant(self, array: np.ndarray) -> Expr:
        """Return ``array`` as a constant; the same array gives the same constant."""
        if id(array) not in self._constants:
            self._constants[id(array)] = (array, constant(array))
        return self._constants[id(array)][1]

    def derived(self, array: np.ndarray, key: Hashable, change: Callable[[np.ndarray], np.ndarray]) -> Expr:
        """Return ``change(array)`` as a constant, the same one for the same array and key.

        An unrolled recurrent network reads its weights at every step, and must not hold a copy for each.
        """
        if (id(array), key) not in self._derived:
            self._derived[id(array), key] = (array, constant(change(array)))
        return self._derived[id(array), key][1]

    def input(self, name: str, shape: Sequence[int], dtype: str) -> Var:
        """Add a parameter of ``main`` and return it."""
        var = Var(name, relax.TensorType(tuple(shape), dtype))
        self._inputs.append(var)
        return var

    def emit(self, expr: Expr, name: str = "") -> Expr:
        """Bind ``expr`` (and the calls nested in it) and return its variable; leaves come back as they are.

        Raises:
            ValueError, TypeError, tvm.error.InternalError: the operator does not fit its operands (from TVM).
        """
        if not isinstance(expr, Call | TupleGetItem):
            return expr
        value = self._block.normalize(self._with_bound_operands(expr))
        var = Var(name or "t", value.ty)
        self._at[var] = len(self._bindings)
        self._bindings.append(_Binding(var, value, name))
        return var

    def _with_bound_operands(self, expr: Expr) -> Expr:
        if isinstance(expr, TupleGetItem):
            return TupleGetItem(self.emit(expr.tuple_value), expr.index)
        if isinstance(expr, relax.Tuple):
            return relax.Tuple([self.emit(field) for field in expr.fields])
        args = [self._bound(arg) for arg in expr.args]
        if all(new is old for new, old in zip(args, expr.args, strict=True)):
            return expr
        return Call(expr.op, args, expr.attrs, expr.ty_args)

    def _bound(self, arg: Any) -> Any:
        if isinstance(arg, relax.Tuple) and any(isinstance(field, Call | TupleGetItem) for field in arg.fields):
            return self._with_bound_operands(arg)
        # Call is also the class of scalar expressions in TVM 0.27: only calls of Relax operators become bindings.
        return self.emit(arg) if isinstance(arg, Call | TupleGetItem) else arg

    def call_te(self, compute: Callable[..., te.Tensor], *args: Any, name: str) -> Expr:
        """Return a call of our own TE kernel; its function in the module is called ``name`` (made unique)."""
        return self._block.call_te(compute, *[self.emit(arg) for arg in args], primfunc_name_hint=name)

    def call_kernel(
        self, kernel: tvm.tirx.PrimFunc, args: Sequence[Expr], shape: Sequence[int], dtype: str, name: str
    ) -> Expr:
        """Return a call of our own TensorIR kernel; its last parameter is the result, of ``shape`` and ``dtype``."""
        where = self._block.add_func(kernel, name)
        return relax.call_tir(where, [self.emit(arg) for arg in args], relax.TensorType(tuple(shape), dtype))

    def rename(self, var: Var, name: str) -> None:
        """Give the tensor's name to a bound variable, unless it already carries one."""
        if var in self._at and not self._bindings[self._at[var]].name:
            self._bindings[self._at[var]].name = name

    def value_of(self, expr: Expr) -> Expr | None:
        """Return what is bound to a variable, None for inputs and constants."""
        return self._bindings[self._at[expr]].value if expr in self._at else None

    def finish(self, outputs: Sequence[Expr]) -> tvm.IRModule:
        """Return the module: dead bindings dropped, names given, ``main`` returns a tuple in any case."""
        live = self._live(outputs)
        names = _unique_names([var.name for var in self._inputs], [self._bindings[index].name for index in live])
        final: dict[Var, Expr] = {var: var for var in self._inputs}
        returned = set(outputs)
        with self._block.function("main", self._inputs):
            with self._block.dataflow():
                for index, name in zip(live, names, strict=True):
                    binding = self._bindings[index]
                    kind = Var if binding.var in returned else relax.DataflowVar
                    final[binding.var] = kind(name, binding.var.ty)
                    value = self._block.normalize(_replace(binding.value, final))
                    self._block.emit_normalized(relax.VarBinding(final[binding.var], value))
            self._block.emit_func_output(relax.Tuple([final.get(out, out) for out in outputs]))
        return _drop_unused_kernels(self._block.get())

    def _live(self, outputs: Sequence[Expr]) -> list[int]:
        wanted, live = {self._at[out] for out in outputs if out in self._at}, []
        for index in reversed(range(len(self._bindings))):
            if index in wanted:
                live.append(index)
                wanted.update(self._at[var] for var in _operands(self._bindings[index].value) if var in self._at)
        return live[::-1]


def _operands(expr: Expr) -> list[Expr]:
    if isinstance(expr, TupleGetItem):
        return [expr.tuple_value]
    fields = [f for arg in expr.args for f in (arg.fields if isinstance(arg, relax.Tuple) else [arg])]
    return [field for field in fields if isinstance(field, Var)]


def _replace(expr: Expr, final: dict[Var, Expr]) -> Expr:
    if isinstance(expr, TupleGetItem):
        return TupleGetItem(final[expr.tuple_value], expr.index)

    def leaf(arg: Any) -> Any:
        if isinstance(arg, relax.Tuple):
            return relax.Tuple([leaf(field) for field in arg.fields])
        return final[arg] if isinstance(arg, Var) else arg

    return Call(expr.op, [leaf(arg) for arg in expr.args], expr.attrs, expr.ty_args)


def _unique_names(taken: list[str], names: list[str]) -> list[str]:
    """Return a name for each binding: nameless ones become parts (``y#1``) of the next named tensor ``y``."""
    used, result, owner = set(taken), [""] * len(names), "t"
    for index in reversed(range(len(names))):
        owner = names[index] or owner
        candidate, count = names[index] or f"{owner}#1", 1
        while candidate in used:
            count += 1
            candidate = f"{owner}#{count}"
        used.add(candidate)
        result[index] = candidate
    return result


def _drop_unused_kernels(mod: tvm.IRModule) -> tvm.IRModule:
    called = {
        binding.value.args[0].name_hint
        for block in mod["main"].body.blocks
        for binding in block.bindings
        if isinstance(binding.value, Call) and isinstance(binding.value.args[0], tvm.ir.GlobalVar)
    }
    for var in list(mod.get_global_vars()):
        if var.name_hint not in called and var.name_hint != "main":
            del mod[var]
    return mod
