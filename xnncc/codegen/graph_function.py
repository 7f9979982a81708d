"""The network as one function of object code:

    int32 graph(void* weights, void* arena, int64* io, int32 first, int32 last)

It calls the kernels with index first <= i < last in order. ``io[i]`` is the address of an input or output as a
distance from the arena, so that no pointer is loaded from memory and one lowering serves 32 and 64 bit. With
``first = -1`` it only stores the build id at the arena's start, by which a runtime knows its library.
"""

from __future__ import annotations

import tvm
from tvm import tirx
from tvm.ir import PointerType, PrimType

from .plan_memory import Buffer, Call, Operand


def graph_function(calls: list[Call], n_inputs: int, prefix: str, symbol: str, build_id: int) -> tirx.PrimFunc:
    """Return the graph function over planned ``calls``; kernels are called by ``prefix`` + their name."""
    void = PointerType(PrimType("void"))
    weights, arena = tirx.Var("weights", void), tirx.Var("arena", void)
    io_pointer = tirx.Var("io", PointerType(PrimType("int64"), "global"))
    first, last = tirx.Var("first", "int32"), tirx.Var("last", "int32")
    id_pointer = tirx.Var("id", PointerType(PrimType("int64"), "global"))
    io = tirx.decl_buffer((1024,), "int64", "io_buffer")
    store = tirx.decl_buffer((1,), "int64", "id_buffer")

    def place(base: tirx.Var, offset: object) -> tirx.Expr:
        return tirx.handle_add_byte_offset(base, offset)

    def buffer_address(buffer: Buffer) -> tirx.Expr:
        root, shift = buffer.root()
        if root.output >= 0:
            return place(arena, io[n_inputs + root.output] + tirx.IntImm("int64", shift))
        return place(arena, tirx.IntImm("int64", root.place + shift))

    def address(operand: Operand) -> tirx.Expr:
        if operand.weight >= 0:
            return place(weights, tirx.IntImm("int64", operand.weight))
        if operand.input >= 0:
            return place(arena, io[operand.input])
        assert operand.buffer is not None
        return buffer_address(operand.buffer)

    failed = tirx.Evaluate(tirx.call_intrin("int32", "tirx.tvm_throw_last_error"))
    steps: list[tirx.Stmt] = []
    for i, call in enumerate(calls):
        args = [address(o) for o in (*call.inputs, *call.outputs)] + [buffer_address(b) for b in call.scratch]
        run = tirx.IfThenElse(tirx.call_extern("int32", prefix + call.kernel, *args) != 0, failed, None)
        steps.append(tirx.IfThenElse(tirx.all(first <= i, i < last), run, None))
    identify = tirx.BufferStore(store, tirx.IntImm("int64", build_id), [0])
    done = tirx.Return(tirx.IntImm("int32", 0))
    body = tirx.SeqStmt(
        [
            tirx.DeclBuffer(io, data=io_pointer),
            tirx.IfThenElse(
                first < 0,
                tirx.SeqStmt(
                    [
                        tirx.Bind(id_pointer, tirx.reinterpret(id_pointer.ty, arena)),
                        tirx.DeclBuffer(store, data=id_pointer),
                        identify,
                    ]
                ),
                tirx.SeqStmt(steps) if len(steps) > 1 else steps[0],
            ),
            done,
        ]
    )
    func = tirx.PrimFunc([weights, arena, io_pointer, first, last], body, PrimType("int32"))
    return func.with_attr("global_symbol", symbol)


def graph_module(func: tirx.PrimFunc, target: tvm.target.Target) -> tvm.IRModule:
    """Return the module to hand to LLVM."""
    symbol = str(func.attrs["global_symbol"])
    return tvm.IRModule({tvm.ir.GlobalVar(symbol): func.with_attr("target", target)})
