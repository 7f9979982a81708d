"""Is the analytic choice itself right? Its output on the device against the kernel as TE defines it, unscheduled.

The other candidates of a group are compared with the analytic choice on the device, so this one closes the chain.
"""

from __future__ import annotations

import numpy as np
import tvm

from ..device.bench import filled
from .tasks import Task

# Float32 sums in another order: up to 4,608 products give 1e-6; a Winograd layer of tiles of 4 adds its transforms'.
TOLERANCE = 1e-5
WINOGRAD_TOLERANCE = 1e-4


def tolerance(task: Task) -> float:
    """Return the largest difference that rounding explains, relative to the output's largest value."""
    return WINOGRAD_TOLERANCE if task.rule.NAME == "winograd" else TOLERANCE


def reference_output(task: Task) -> np.ndarray:
    """Return what the unscheduled kernel, compiled for this machine, makes of a measurement's numbers: float32 [n]."""
    func = task.func.with_attr("global_symbol", "main")
    target = tvm.target.Target({"kind": "llvm", "opt-level": 1})
    compiled = tvm.compile(tvm.IRModule({"main": func}), target=target)
    *places, _ = task.offsets
    data = filled(places[-1] // 4)
    arrays = [data[p // 4 : p // 4 + n] for p, n in zip(places[:-1], task.sizes[:-1], strict=True)]
    shapes = [[int(d) for d in p.shape] for p in task.func.params]
    tensors = [tvm.runtime.tensor(a.reshape(s)) for a, s in zip(arrays, shapes[:-1], strict=True)]
    out = tvm.runtime.tensor(np.full(shapes[-1], np.nan, "float32"))
    compiled["main"](*tensors, out)
    return out.numpy().ravel()


def relative_error(found: np.ndarray, wanted: np.ndarray) -> float:
    """Return max |found - wanted| / max |wanted|; infinite when something is not a number."""
    error = float(np.abs(found - wanted).max())
    return error / max(float(np.abs(wanted).max()), 1e-30) if np.isfinite(error) else float("inf")
