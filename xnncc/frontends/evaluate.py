"""Run a Relax module with numpy: the judge of an import, independent of the compiler that is built on it.

Why not compile the module: unscheduled LLVM code of a MobileNet takes 5 to 60 s to build and seconds to run
(2026-11, two cores); numpy needs 1 to 3 s for the whole check, on BLAS, and shares no code with our kernels. Only
operators without a numpy version here (our own TE kernels, rare ones) are compiled by TVM, one at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.ir import Call, GenericConst
from tvm.relax import Expr, TupleGetItem, Var

from .evaluate_ops import EVALUATORS

Tensor = np.ndarray | tuple[np.ndarray, ...]


def evaluate(
    mod: tvm.IRModule, feeds: Sequence[np.ndarray], keep: Iterable[str] = ()
) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    """Return the outputs of ``main`` and, by name, the variables in ``keep``. Others are freed after their last use."""
    main, wanted = mod["main"], set(keep)
    values: dict[Var, Any] = dict(zip(main.params, feeds, strict=True))
    bindings = [binding for block in main.body.blocks for binding in block.bindings]
    left = Counter(var for binding in bindings for var in _variables(binding.value))
    left.update(main.body.body.fields)
    kept: dict[str, np.ndarray] = {}
    with np.errstate(all="ignore"):
        for binding in bindings:
            values[binding.var] = _value(mod, binding.value, values)
            if binding.var.name in wanted and isinstance(values[binding.var], np.ndarray):
                kept[binding.var.name] = values[binding.var]
            for var in _variables(binding.value):
                left[var] -= 1
                if not left[var]:
                    values.pop(var, None)
    return [_leaf(out, values) for out in main.body.body.fields], kept


def _variables(expr: Expr) -> list[Var]:
    if isinstance(expr, Var):
        return [expr]
    if isinstance(expr, TupleGetItem):
        return _variables(expr.tuple_value)
    parts = expr.args if isinstance(expr, Call) else expr.fields if isinstance(expr, relax.Tuple) else []
    return [var for part in parts for var in _variables(part)]


def _leaf(expr: Any, values: dict[Var, Any]) -> Any:
    """Return an operand as numpy: variables and constants as arrays, shapes as tuples, scalars as numbers."""
    if isinstance(expr, Var):
        return values[expr]
    if isinstance(expr, GenericConst):
        return expr.value.numpy()
    if isinstance(expr, relax.Tuple):
        return tuple(_leaf(field, values) for field in expr.fields)
    if isinstance(expr, relax.ShapeExpr):
        return tuple(int(dim) for dim in expr.values)
    if isinstance(expr, tvm.tirx.IntImm | tvm.tirx.FloatImm):
        return expr.value
    return expr


def _value(mod: tvm.IRModule, expr: Expr, values: dict[Var, Any]) -> Tensor:
    if not isinstance(expr, Call):
        if isinstance(expr, TupleGetItem):
            return _leaf(expr.tuple_value, values)[expr.index]
        return _leaf(expr, values)
    operands = [_leaf(arg, values) for arg in expr.args]
    function: Callable[..., Tensor] | None = EVALUATORS.get(expr.op.name.removeprefix("relax."))
    result = function(expr, *operands) if function else NotImplemented
    if result is NotImplemented:
        return _compiled(mod, expr, values)
    dtype = getattr(expr.ty, "dtype", None)
    return result if dtype is None or isinstance(result, tuple) else np.asarray(result, str(dtype))


def _compiled(mod: tvm.IRModule, call: Call, values: dict[Var, Any]) -> Tensor:
    """Return the result of one call, built by TVM without schedules."""
    if isinstance(call.args[0], tvm.ir.GlobalVar):
        return _run_kernel(mod[call.args[0]], call, [_leaf(arg, values) for arg in call.args[1].fields])
    variables = list(dict.fromkeys(_variables(call)))
    params = [Var(f"p{i}", var.ty) for i, var in enumerate(variables)]
    block = relax.BlockBuilder()
    renamed = dict(zip(variables, params, strict=True))
    call = Call(call.op, [_renamed(mod, block, arg, renamed) for arg in call.args], call.attrs, call.ty_args)
    with block.function("main", params):
        block.emit_func_output(block.emit(call))
    target = tvm.target.Target("llvm")
    machine = relax.VirtualMachine(tvm.compile(block.get(), target), tvm.cpu())
    result = machine["main"](*[tvm.runtime.tensor(np.ascontiguousarray(values[var])) for var in variables])
    return tuple(part.numpy() for part in result) if isinstance(result, tvm.ir.Array) else result.numpy()


def _run_kernel(kernel: tvm.tirx.PrimFunc, call: Call, operands: list[np.ndarray]) -> Tensor:
    """Return what a TE kernel computes; its last parameters are the outputs."""
    main = kernel.with_attr("global_symbol", "main")
    compiled = tvm.compile(tvm.IRModule({"main": main}), target=tvm.target.Target("llvm"))
    types = [call.ty] if isinstance(call.ty, relax.TensorType) else list(call.ty.fields)
    results = [tvm.runtime.tensor(np.empty([int(dim) for dim in t.shape.values], str(t.dtype))) for t in types]
    compiled["main"](*(tvm.runtime.tensor(np.ascontiguousarray(operand)) for operand in operands), *results)
    return results[0].numpy() if len(results) == 1 else tuple(result.numpy() for result in results)


def _renamed(mod: tvm.IRModule, block: relax.BlockBuilder, arg: Any, renamed: dict[Var, Var]) -> Any:
    if isinstance(arg, tvm.ir.GlobalVar):
        return block.add_func(mod[arg], arg.name_hint)
    if isinstance(arg, relax.Tuple):
        return relax.Tuple([_renamed(mod, block, field, renamed) for field in arg.fields])
    return renamed.get(arg, arg) if isinstance(arg, Var) else arg
