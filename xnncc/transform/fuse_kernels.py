"""FuseKernels: FuseOps and FuseTIR, keeping track of which tensors of the model each fused kernel computes.

    Given:                                   Result:
      c = call_tir(conv2d, (x, w, b))          r = call_tir(fused_conv2d_relu, (x, w, b))     names[r] = ("c", "r")
      r = call_tir(relu, (c,))

FuseOps drops variable names and shares one function between equal groups, so the names are found again by value: each
call of a fused function is expanded, and an inner call is known by its kernel and the values of its operands.
"""

from __future__ import annotations

import zlib

import tvm
from tvm import relax

Key = tuple


def fuse_kernels(mod: tvm.IRModule) -> tuple[tvm.IRModule, dict[relax.Var, tuple[str, ...]]]:
    """Return the fused module and, for each variable of its ``main``, the names of the variables of ``mod`` that it
    stands for, its own last. Names in the fused ``main`` are not unique, so the key is the variable."""
    numbers = _Numbers()
    known: dict[Key, list[str]] = {}
    for binding in _bindings(mod["main"]):
        known.setdefault(numbers.bind(binding), []).append(binding.var.name)
    grouped = relax.transform.FuseOps()(relax.transform.AnnotateTIROpPattern()(mod))
    expanded = _Numbers()
    inner = [_expand(grouped, expanded, binding) for binding in _bindings(grouped["main"])]
    fused = relax.transform.FuseTIR()(grouped)
    names = {}
    for binding, keys in zip(_bindings(fused["main"]), inner, strict=True):
        # Equal computations are equal values: any order among their names is right, each is used once.
        names[binding.var] = tuple(known[k].pop(0) if len(known[k]) > 1 else known[k][0] for k in keys if k in known)
    called = {b.value.args[0].name_hint for b in _bindings(fused["main"]) if _is_kernel_call(b.value)}
    kept = {g: f for g, f in fused.functions.items() if g.name_hint == "main" or g.name_hint in called}
    return tvm.IRModule(kept), names


def _is_kernel_call(expr: object) -> bool:
    return isinstance(expr, tvm.ir.Call) and getattr(expr.op, "name", "") == "relax.call_tir"


def _bindings(func: relax.Function) -> list[relax.Binding]:
    return [b for block in func.body.blocks for b in block.bindings]


class _Numbers:
    """Value numbers: a key for each variable, equal for equal computations."""

    def __init__(self) -> None:
        self.of: dict[relax.Var, Key] = {}

    def key(self, expr: object, outer: dict[relax.Var, Key] | None = None) -> Key:
        """Return the key of ``expr``."""
        if isinstance(expr, relax.Var):
            if outer and expr in outer:
                return outer[expr]
            return self.of.setdefault(expr, ("param", expr.name))
        if isinstance(expr, tvm.ir.GenericConst):
            array = expr.value.numpy()
            return ("const", array.shape, str(array.dtype), zlib.crc32(array.tobytes()))
        if isinstance(expr, relax.Tuple):
            return ("tuple", *(self.key(f, outer) for f in expr.fields))
        if isinstance(expr, relax.TupleGetItem):
            return ("item", self.key(expr.tuple_value, outer), expr.index)
        if isinstance(expr, tvm.ir.GlobalVar):
            return ("kernel", expr.name_hint)
        if isinstance(expr, tvm.ir.Call):
            return ("call", hash((str(expr.op), str(expr.attrs), *(self.key(a, outer) for a in expr.args))))
        return ("other", str(expr))

    def bind(self, binding: relax.Binding) -> Key:
        """Number the variable of ``binding`` and return its key."""
        self.of[binding.var] = self.key(binding.value)
        return self.of[binding.var]


def _expand(mod: tvm.IRModule, numbers: _Numbers, binding: relax.Binding) -> list[Key]:
    """Return the keys of all values that ``binding`` computes; a call of a group counts for its inner calls."""
    call = binding.value
    if not (isinstance(call, tvm.ir.Call) and isinstance(call.op, tvm.ir.GlobalVar)):
        return [numbers.bind(binding)]
    group = mod[call.op]
    local = {p: numbers.key(a) for p, a in zip(group.params, call.args, strict=True)}
    keys = []
    for inner in _bindings(group):
        local[inner.var] = numbers.key(inner.value, local)
        keys.append(local[inner.var])
    numbers.of[binding.var] = numbers.key(group.body.body, local)
    return keys
