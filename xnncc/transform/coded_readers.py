"""Which operator reads a coded weight: reports name weights after it, for constants have no names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import tvm
from tvm import relax

from ..ir.coded import CodedTensor, digest


def coded_readers(mod: tvm.IRModule, coded: Mapping[str, CodedTensor]) -> dict[str, str]:
    """Return, for each coded weight that is a constant of ``mod``, the tensor that its first reader computes."""
    found: dict[str, str] = {}
    if not coded:
        return found
    for block in mod["main"].body.blocks:
        for binding in block.bindings:
            for array in _constants(binding.value):
                key = digest(array) if array.dtype == np.float32 else ""
                if key in coded:
                    found.setdefault(key, binding.var.name)
    return found


def _constants(expr: relax.Expr) -> Iterator[np.ndarray]:
    if isinstance(expr, tvm.ir.GenericConst):
        yield expr.value.numpy()
    elif isinstance(expr, relax.Tuple):
        for field in expr.fields:
            yield from _constants(field)
    elif isinstance(expr, tvm.ir.Call):
        for arg in expr.args:
            yield from _constants(arg)
