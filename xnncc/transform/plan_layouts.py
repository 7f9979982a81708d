"""PlanLayouts: from Relax operators on NCHW tensors to kernels of ours on packed ones; see ``layout_walk.py``.

Runs after: the graph is prepared (pads folded).  Runs before: LegalizeOps, which lowers what has no handler here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import tvm
from tvm import relax

from ..ir.placement import CodedTable
from ..kernels.elementwise import BINARY, UNARY
from ..target import Machine
from . import layout_elementwise as elementwise
from . import layout_linear as linear
from . import layout_spatial as spatial
from .choose_conv import Chosen
from .fold_constant_call import fold_constant_call
from .layout_gather import take_handler
from .layout_recurrent import recurrent_handler
from .layout_walk import Value, Walk, shape_of

HANDLERS: dict[str, Callable] = {
    **dict.fromkeys(UNARY, elementwise.unary_handler),
    **dict.fromkeys(BINARY, elementwise.binary_handler),
    "relax.clip": elementwise.clip_handler,
    "relax.nn.leakyrelu": elementwise.leaky_relu_handler,
    "relax.power": elementwise.power_handler,
    "relax.nn.conv2d": linear.conv2d_handler,
    "relax.nn.conv2d_transpose": linear.conv2d_transpose_handler,
    "relax.nn.batch_norm": linear.batch_norm_handler,
    "relax.matmul": linear.matmul_handler,
    "relax.nn.max_pool2d": spatial.max_pool_handler,
    "relax.nn.avg_pool2d": spatial.avg_pool_handler,
    "relax.mean": spatial.mean_handler,
    "relax.max": spatial.max_handler,
    "relax.nn.pad": spatial.pad_handler,
    "relax.image.resize2d": spatial.resize_handler,
    "relax.concat": spatial.concat_handler,
    "relax.split": spatial.split_handler,
    "relax.nn.softmax": spatial.softmax_handler,
    "relax.call_pure_packed": recurrent_handler,
    "relax.take": take_handler,
}


@dataclass(frozen=True)
class Planned:
    """The module over packed tensors, and what its variables stand for."""

    mod: tvm.IRModule
    sources: dict[str, tuple[str, ...]]  # variable name -> tensors of the model that it completes, its own last
    packed: dict[str, tuple[tuple[int, ...], int]]  # variable name -> logical NCHW shape, lanes
    notes: tuple[str, ...]
    convolutions: dict[str, Chosen]  # tensor of the model -> how the convolution that makes it runs


def plan_layouts(
    mod: tvm.IRModule,
    machine: Machine,
    exact: bool = False,
    algorithms: Mapping[str, str] | None = None,
    coded: CodedTable | None = None,
) -> Planned:
    """Return ``mod`` with kernels on packed tensors for ``machine``; inputs and outputs stay as they are.

    ``exact`` forbids Winograd convolution, whose rounding is larger than that of plain sums (``kernels/winograd.py``).
    ``algorithms``: of convolutions that a tuned record decides (``choose_conv.py``). ``coded`` learns where the packing
    puts coded weights.
    """
    main = mod["main"]
    walk = Walk(machine, relax.BlockBuilder(mod), exact=exact, algorithms=algorithms or {})
    walk.coded = coded or walk.coded
    bindings = [b for block in main.body.blocks for b in block.bindings]
    tuples: dict[relax.Var, list[Value]] = {}
    for binding in bindings:
        _count_uses(walk, binding.value)
    _count_uses(walk, main.body.body)
    params = [relax.Var(p.name, p.ty) for p in main.params]
    with walk.builder.function("main_planned", params):
        with walk.builder.dataflow():
            for old, new in zip(main.params, params, strict=True):
                walk.env[old] = Value(shape_of(new), str(new.ty.dtype), expr=new, name=new.name)
            for binding in bindings:
                _visit(walk, tuples, binding)
            results = walk.builder.emit_output(relax.Tuple(_outputs(walk, tuples, main.body.body)))
        walk.builder.emit_func_output(results)
    planned = walk.builder.finalize()
    functions = {g: f for g, f in planned.functions.items() if g.name_hint not in ("main", "main_planned")}
    new_main = planned["main_planned"].with_attr("global_symbol", "main")
    functions[tvm.ir.GlobalVar("main")] = new_main
    out = relax.transform.DeadCodeElimination(["main"])(tvm.IRModule(functions))
    return Planned(out, walk.sources, walk.packed_values, tuple(walk.notes), walk.convolutions)


def _count_uses(walk: Walk, expr: relax.Expr) -> None:
    """Add the variables that ``expr`` reads to ``walk.uses``."""
    if isinstance(expr, relax.Var):
        walk.uses[expr] = walk.uses.get(expr, 0) + 1
    elif isinstance(expr, relax.Tuple):
        for f in expr.fields:
            _count_uses(walk, f)
    elif isinstance(expr, relax.TupleGetItem):
        _count_uses(walk, expr.tuple_value)
    elif isinstance(expr, tvm.ir.Call):
        for a in expr.args:
            _count_uses(walk, a)


def _visit(walk: Walk, tuples: dict[relax.Var, list[Value]], binding: relax.Binding) -> None:
    var, expr = binding.var, binding.value
    walk.name = var.name
    if isinstance(expr, relax.TupleGetItem):
        walk.env[var] = tuples[expr.tuple_value][expr.index]
    elif isinstance(expr, relax.Tuple):
        tuples[var] = [walk.value(f) for f in expr.fields]
    elif not isinstance(expr, tvm.ir.Call):
        walk.env[var] = walk.value(expr)
    else:
        expr = _with_inline_tuples(tuples, walk, expr)
        handler = HANDLERS.get(expr.op.name) if isinstance(expr.op, tvm.ir.Op) else None
        result: Value | list[Value] | None = fold_constant_call(walk, expr)
        if result is None and handler:
            result = handler(walk, expr)
        if result is None:
            result = _left_to_tvm(walk, expr)
        if isinstance(result, list):
            tuples[var] = result
        else:
            walk.env[var] = result


def _with_inline_tuples(tuples: dict[relax.Var, list[Value]], walk: Walk, call: tvm.ir.Call) -> tvm.ir.Call:
    """Return ``call`` with a tuple variable among its operands spelled out, as handlers expect."""
    if not any(isinstance(a, relax.Var) and a in tuples for a in call.args):
        return call
    args = []
    for a in call.args:
        if isinstance(a, relax.Var) and a in tuples:
            fields = []
            for i, v in enumerate(tuples[a]):
                alias = relax.Var(f"{a.name}_{i}", relax.TensorType(v.shape, v.dtype))
                walk.env[alias], walk.uses[alias] = v, 2
                fields.append(alias)
            a = relax.Tuple(fields)
        args.append(a)
    return _same_call(call, args)


def _same_call(call: tvm.ir.Call, args: list[relax.Expr]) -> tvm.ir.Call:
    return tvm.ir.Call(call.op, args, call.attrs, call.ty_args, ret_ty=call.ty)


def _left_to_tvm(walk: Walk, call: tvm.ir.Call) -> Value | list[Value]:
    """Emit ``call`` again over plain operands."""
    args = [_plain_operand(walk, a) for a in call.args]
    var = walk.relax_op(_same_call(call, args))
    if isinstance(var.ty, relax.TensorType):
        return Value(shape_of(var), str(var.ty.dtype), expr=var, name=walk.name)
    return [
        Value(
            tuple(int(d) for d in f.shape),
            str(f.dtype),
            expr=walk.builder.emit(relax.TupleGetItem(var, i)),
            name=walk.name,
        )
        for i, f in enumerate(var.ty.fields)
    ]


def _plain_operand(walk: Walk, arg: relax.Expr) -> relax.Expr:
    if isinstance(arg, relax.Tuple):
        return relax.Tuple([_plain_operand(walk, f) for f in arg.fields])
    if isinstance(arg, relax.Var | tvm.ir.GenericConst):
        return walk.plain(walk.value(arg))
    return arg


def _outputs(walk: Walk, tuples: dict[relax.Var, list[Value]], body: relax.Expr) -> list[relax.Expr]:
    """Return the plain outputs, each in memory of its own: an input, a constant or a twin is copied."""
    values = tuples[body] if isinstance(body, relax.Var) and body in tuples else None
    if values is None:
        values = [walk.value(f) for f in (body.fields if isinstance(body, relax.Tuple) else [body])]
    out = []
    for v in values:
        walk.name = v.name or "output"
        out.append(walk.own_memory(walk.plain(v)))
    return out
