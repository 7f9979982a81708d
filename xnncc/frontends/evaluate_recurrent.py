"""What ``xnn.recurrent`` means, for the judge of an import: ``ir/recurrent.py`` on its operands."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax
from tvm.ir import Call

from ..ir.recurrent import NAME, Recurrent, compute


def recurrent(call: Call, function: relax.ExternFunc, *operands: Any) -> Any:
    """Return the layer's output, a tuple of several; NotImplemented for calls of other functions."""
    if function.global_symbol != NAME:
        return NotImplemented
    *arrays, text = operands
    spec = Recurrent.from_json(text.value)
    found = compute(spec, dict(zip(spec.operands, arrays, strict=True)))
    results = tuple(np.asarray(found[name], "float32") for name in spec.outputs)
    return results if len(results) > 1 else results[0]
