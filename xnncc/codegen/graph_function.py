"""The network as one function of object code:

    int32 graph(void* weights, void* arena, int64* io, int32 first, int32 last)

It calls the kernels with index first <= i < last in order, over all variants of the network. ``io[i]`` is the address
of an input or output as a distance from the arena, so that no pointer is loaded from memory and one lowering serves
32 and 64 bit; after the outputs stands the distance of the prepared memory. With ``first = -1`` it only stores the
build id at the arena's start, by which a runtime knows its library; with ``first = -2`` it fills the prepared memory,
given as the arena.
"""

from __future__ import annotations

from collections.abc import Sequence

import tvm
from tvm import tirx
from tvm.ir import PointerType, PrimType

from .plan_memory import Buffer, Call, Layout, Operand


def graph_function(layouts: Sequence[Layout], n_inputs: int, prefix: str, symbol: str, build_id: int) -> tirx.PrimFunc:
    """Return the graph function over planned ``layouts``; kernels are called by ``prefix`` + their name.

    Each layout is a variant: the operators of the second follow those of the first, and so on.
    """
    void = PointerType(PrimType("void"))
    weights, arena = tirx.Var("weights", void), tirx.Var("arena", void)
    io_pointer = tirx.Var("io", PointerType(PrimType("int64"), "global"))
    first, last = tirx.Var("first", "int32"), tirx.Var("last", "int32")
    prepared_index = n_inputs + len(layouts[0].outputs)
    io = tirx.decl_buffer((prepared_index + 1,), "int64", "io_buffer")

    def buffer_address(buffer: Buffer, at_open: bool) -> tirx.Expr:
        root, shift = buffer.root()
        place: tirx.Expr = tirx.IntImm("int64", shift + max(root.place, 0))
        if root.output >= 0:
            place = io[n_inputs + root.output] + place
        elif root.is_prepared and not at_open:
            place = io[prepared_index] + place
        return tirx.handle_add_byte_offset(arena, place)

    def address(operand: Operand, at_open: bool) -> tirx.Expr:
        if operand.weight >= 0:
            return tirx.handle_add_byte_offset(weights, tirx.IntImm("int64", operand.weight))
        if operand.input >= 0:
            return tirx.handle_add_byte_offset(arena, io[operand.input])
        assert operand.buffer is not None
        return buffer_address(operand.buffer, at_open)

    def run(call: Call, at_open: bool = False) -> tirx.Stmt:
        args = [address(o, at_open) for o in (*call.inputs, *call.outputs)]
        args += [buffer_address(b, at_open) for b in call.scratch]
        failed = tirx.Evaluate(tirx.call_intrin("int32", "tirx.tvm_throw_last_error"))
        return tirx.IfThenElse(tirx.call_extern("int32", prefix + call.kernel, *args) != 0, failed, None)

    calls = [call for layout in layouts for call in layout.calls]
    running = [tirx.IfThenElse(tirx.all(first <= i, i < last), run(c), None) for i, c in enumerate(calls)]
    special = _store(arena, build_id)
    opening = [call for layout in layouts for call in layout.opening]
    if opening:
        special = tirx.IfThenElse(first == -2, _sequence([run(c, at_open=True) for c in opening]), special)
    body = tirx.SeqStmt(
        [
            tirx.DeclBuffer(io, data=io_pointer),
            tirx.IfThenElse(first < 0, special, _sequence(running)),
            tirx.Return(tirx.IntImm("int32", 0)),
        ]
    )
    func = tirx.PrimFunc([weights, arena, io_pointer, first, last], body, PrimType("int32"))
    return func.with_attr("global_symbol", symbol)


def _store(arena: tirx.Var, build_id: int) -> tirx.Stmt:
    """Return the statement that stores ``build_id`` at the arena's start."""
    pointer = tirx.Var("id", PointerType(PrimType("int64"), "global"))
    cell = tirx.decl_buffer((1,), "int64", "id_buffer")
    return tirx.SeqStmt(
        [
            tirx.Bind(pointer, tirx.reinterpret(pointer.ty, arena)),
            tirx.DeclBuffer(cell, data=pointer),
            tirx.BufferStore(cell, tirx.IntImm("int64", build_id), [0]),
        ]
    )


def _sequence(statements: list[tirx.Stmt]) -> tirx.Stmt:
    """Return all ``statements`` as one."""
    if not statements:
        return tirx.Evaluate(tirx.IntImm("int32", 0))
    return tirx.SeqStmt(statements) if len(statements) > 1 else statements[0]


def graph_module(func: tirx.PrimFunc, target: tvm.target.Target) -> tvm.IRModule:
    """Return the module to hand to LLVM."""
    symbol = str(func.attrs["global_symbol"])
    return tvm.IRModule({tvm.ir.GlobalVar(symbol): func.with_attr("target", target)})
