"""Rows taken from a stored table: gathered narrow, then scaled, so that the table stays as the model stores it."""

from __future__ import annotations

import numpy as np
import tvm
from tvm import relax

from .layout_walk import Value, Walk, constant, shape_of


def take_handler(walk: Walk, call: tvm.ir.Call) -> Value | None:
    """``take`` of a table with one scale for all, or one a column; None for anything else."""
    table = walk.value(call.args[0])
    axis = call.attrs.axis
    if table.stored is None or axis is None or int(axis) % len(table.shape) != 0:
        return None
    scale = table.stored.scale
    if scale is not None and scale.size > 1 and (scale.ndim == len(table.shape) and scale.shape[0] != 1):
        return None
    index = walk.plain(walk.value(call.args[1]))
    taken = walk.builder.emit(relax.op.take(constant(table.stored.array), index, axis=0, mode=call.attrs.mode))
    rows: relax.Expr = relax.op.astype(taken, "float32")
    if scale is not None:
        by_column = np.asarray(scale, np.float32).reshape(scale.shape[-1:] if scale.size > 1 else ())
        rows = relax.op.multiply(walk.builder.emit(rows), constant(by_column))
    return Value(shape_of(call), expr=walk.relax_op(rows), name=walk.name)
