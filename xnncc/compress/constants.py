"""The constants of a module by name, and the module again with other constants.

A constant is called after the tensor that reads it first and the operand it is there: ``conv1.1``. Unlike a digest the
name keeps two equal arrays apart, so that two zero biases are trained to different values; and unlike
``layers.with_constants`` a rebuilt module may have constants of other shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.ir import Call, GenericConst
from tvm.relax import TupleGetItem, Var


def bindings_of(mod: tvm.IRModule) -> list[relax.VarBinding]:
    """Return the bindings of ``main`` in order."""
    return [binding for block in mod["main"].body.blocks for binding in block.bindings]


def operands_of(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the operands of a bound value with their places: ``"0"``, ``"1"``; ``"0.2"`` inside a tuple."""
    if isinstance(value, TupleGetItem):
        yield "0", value.tuple_value
        return
    parts = value.args if isinstance(value, Call) else value.fields if isinstance(value, relax.Tuple) else []
    for place, part in enumerate(parts):
        if isinstance(part, relax.Tuple):
            for inner, field in enumerate(part.fields):
                yield f"{place}.{inner}", field
        else:
            yield str(place), part


def constant_names(mod: tvm.IRModule) -> dict[GenericConst, str]:
    """Return the name of every constant of ``main``, in order of first use."""
    names: dict[GenericConst, str] = {}
    for binding in bindings_of(mod):
        if isinstance(binding.value, GenericConst):
            names.setdefault(binding.value, binding.var.name)
        for place, operand in operands_of(binding.value):
            if isinstance(operand, GenericConst):
                names.setdefault(operand, f"{binding.var.name}.{place}")
    return names


def constant_arrays(mod: tvm.IRModule) -> dict[str, np.ndarray]:
    """Return every constant by name."""
    return {name: constant.value.numpy() for constant, name in constant_names(mod).items()}


Rewrite = Callable[[relax.VarBinding, Call], Call]
FIRST = "low"  # the tensor between the two operators that one became is called <tensor>/low


def rebuilt(mod: tvm.IRModule, arrays: Mapping[str, np.ndarray], rewrite: Rewrite | None = None) -> tvm.IRModule:
    """Return ``mod`` with the constants in ``arrays`` replaced and all shapes inferred anew.

    ``rewrite`` may replace each call before its shape is inferred: reshape targets and group counts that follow from a
    constant's new shape. It gets the old binding and the call on the new operands, and may return a call whose first
    operand is a call in turn. Names of tensors stay.
    """
    main, block = mod["main"], relax.BlockBuilder()
    new: dict[Any, Any] = {param: param for param in main.params}
    for constant, name in constant_names(mod).items():
        array = arrays.get(name)
        new[constant] = constant if array is None else relax.const(np.ascontiguousarray(array), str(array.dtype))
    kernels = {
        var: block.add_func(function, var.name_hint)
        for var, function in mod.functions.items()
        if var.name_hint != "main"
    }
    returned = set(main.body.body.fields)

    def leaf(part: Any) -> Any:
        if isinstance(part, relax.Tuple):
            return relax.Tuple([leaf(field) for field in part.fields])
        if isinstance(part, tvm.ir.GlobalVar):
            return kernels.get(part, part)
        return new.get(part, part) if isinstance(part, Var | GenericConst) else part

    attributes = dict(main.attrs.items()) if main.attrs else None
    with block.function("main", list(main.params), attrs=attributes):
        with block.dataflow():
            for binding in bindings_of(mod):
                value = binding.value
                if isinstance(value, TupleGetItem):
                    value = TupleGetItem(leaf(value.tuple_value), value.index)
                elif isinstance(value, Call):
                    value = Call(value.op, [leaf(arg) for arg in value.args], value.attrs, value.ty_args)
                    value = rewrite(binding, value) if rewrite else value
                    if isinstance(value.args[0] if value.args else None, Call):
                        inner = block.normalize(value.args[0])
                        first = relax.DataflowVar(f"{binding.var.name}/{FIRST}", inner.ty)
                        block.emit_normalized(relax.VarBinding(first, inner))
                        value = Call(value.op, [first, *value.args[1:]], value.attrs, value.ty_args)
                else:
                    value = leaf(value)
                value = block.normalize(value)
                kind = Var if binding.var in returned else relax.DataflowVar
                new[binding.var] = kind(binding.var.name, value.ty)
                block.emit_normalized(relax.VarBinding(new[binding.var], value))
        block.emit_func_output(relax.Tuple([leaf(field) for field in main.body.body.fields]))
    result = block.get()
    return tvm.IRModule(dict(result.functions.items()), attrs=mod.attrs)
