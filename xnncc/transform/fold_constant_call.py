"""Evaluate an operator of constants in numpy.

Relax's FoldConstant compiles every such operator with LLVM, 7 to 18 s for a network; numpy takes milliseconds. Only
the operators that stand between a stored weight and its use are here: dequantisation, transposition, reshaping.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tvm
from tvm import relax

from .layout_walk import Value, Walk, shape_of
from .stored_weights import NARROW, Stored

EVALUATE: dict[str, Callable[..., np.ndarray]] = {
    "relax.add": np.add,
    "relax.subtract": np.subtract,
    "relax.multiply": np.multiply,
    "relax.divide": np.divide,
    "relax.negative": np.negative,
    "relax.sqrt": np.sqrt,
    "relax.rsqrt": lambda x: 1 / np.sqrt(x),
    "relax.exp": np.exp,
}


def fold_constant_call(walk: Walk, call: tvm.ir.Call) -> Value | None:
    """Return the constant value of ``call``, or None when it reads a variable or is not among the operators here."""
    tensors = [a for a in call.args if isinstance(a, relax.Var | tvm.ir.GenericConst)]
    if not tensors or len(tensors) != len([a for a in call.args if not isinstance(a, relax.ShapeExpr)]):
        return None
    if any(isinstance(a, relax.Var) and a not in walk.env for a in tensors):
        return None
    consts = [c for a in tensors if (c := walk.value(a).const) is not None]
    if len(consts) != len(tensors):
        return None
    name = getattr(call.op, "name", "")
    stored = walk.value(tensors[0]).stored
    if name in ("relax.reshape", "relax.expand_dims", "relax.squeeze"):
        change = lambda a: a.reshape(shape_of(call))  # noqa: E731
        array, stored = walk.coded.follow(consts[0], change), stored and stored.rearranged(change)
    elif name == "relax.permute_dims":
        axes = None if call.attrs.axes is None else [int(i) for i in call.attrs.axes]
        change = lambda a: a.transpose(axes)  # noqa: E731
        array, stored = walk.coded.follow(consts[0], change), stored and stored.rearranged(change)
    elif name == "relax.astype":
        array = consts[0].astype(str(call.attrs.dtype))
        stored = Stored(consts[0]) if str(consts[0].dtype) in NARROW and array.dtype == np.float32 else None
    elif name in EVALUATE:
        array = EVALUATE[name](*consts)
        stored = _still_stored(name, stored, consts)
    else:
        return None
    dtype = str(call.ty.dtype)
    return Value(shape_of(call), dtype, const=np.asarray(array, dtype=dtype), stored=stored, name=walk.name)


def _still_stored(name: str, stored: Stored | None, consts: list[np.ndarray]) -> Stored | None:
    """Return what is left of the first operand's stored form after ``name``."""
    if stored is None or name not in ("relax.subtract", "relax.multiply"):
        return None
    return stored.minus(consts[1]) if name == "relax.subtract" else stored.times(consts[1])
