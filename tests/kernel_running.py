"""Runs single kernels on this machine: TVM compiles them, numpy holds what goes in and comes out."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import tvm
from tvm import te, tirx

from xnncc.target import Machine, load_target

# Machines that kernels are scheduled for. Code for both runs on any host: narrower vectors are legal everywhere.
AVX2 = Machine(lanes=8, registers=16, fma_latency=5)
NEON = Machine(lanes=4, registers=32)
AVX512 = Machine(lanes=16, registers=32, l2_kib=1024)
MACHINES = {4: NEON, 8: AVX2, 16: AVX512}


@cache
def host(optimised: bool = True) -> Any:
    """Return the TVM target of this machine; unoptimised code takes LLVM half the time to make."""
    return tvm.target.Target({**load_target("host").tvm, "opt-level": 3 if optimised else 0})


def kernel(*tensors: te.Tensor, **attrs: object) -> tirx.PrimFunc:
    """Return the PrimFunc over TE ``tensors``, inputs first; attributes of blocks survive."""
    func = te.create_prim_func(list(tensors))
    return func.with_attrs(attrs) if attrs else func


def run(func: tirx.PrimFunc, *inputs: np.ndarray, optimised: bool = True) -> np.ndarray:
    """Return the last parameter of ``func`` after a run; it starts out as NaN so that nothing is left unwritten."""
    outputs = run_all(func, *inputs, optimised=optimised)
    assert len(outputs) == 1, f"the kernel has {len(outputs)} outputs"
    return outputs[0]


def run_all(func: tirx.PrimFunc, *inputs: np.ndarray, optimised: bool = True) -> list[np.ndarray]:
    """Return all outputs of ``func``: the parameters after ``inputs``."""
    compiled = tvm.compile(tvm.IRModule({"main": func.with_attr("global_symbol", "main")}), target=host(optimised))
    outputs = []
    for param in func.params[len(inputs) :]:
        shape, dtype = [int(d) for d in param.shape], str(param.dtype)
        fill = np.nan if dtype.startswith("float") else 99
        outputs.append(tvm.runtime.tensor(np.full(shape, fill, dtype)))
    compiled["main"](*(tvm.runtime.tensor(np.ascontiguousarray(x)) for x in inputs), *outputs)
    return [o.numpy() for o in outputs]


def placeholders(*arrays: np.ndarray) -> list[te.Tensor]:
    """Return a TE placeholder of each array's shape and dtype."""
    return [te.placeholder(a.shape, str(a.dtype), f"arg{i}") for i, a in enumerate(arrays)]


def random(seed: int, *shape: int) -> np.ndarray:
    """Return standard normal float32 numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def relative_error(found: np.ndarray, expected: np.ndarray) -> float:
    """Return max |found - expected| / max |expected|; infinite when the shapes differ or a NaN is found."""
    if found.shape != expected.shape:
        return float("inf")
    error = np.abs(found.astype("float64") - expected).max()
    return float(error / max(np.abs(expected).max(), 1e-30)) if np.isfinite(error) else float("inf")


def both_ways(lanes: int, fn: Any, *inputs: np.ndarray) -> dict[str, np.ndarray]:
    """Return what the kernel that TE function ``fn`` makes of ``inputs`` computes, scheduled and (8 lanes) unscheduled.

    The scheduled one must be done by a rule: a kernel of ours that no rule fits is a slow one.
    """
    from xnncc.schedule import schedule_kernel

    args = placeholders(*inputs)
    func = kernel(*args, fn(*args))
    scheduled = schedule_kernel(func, MACHINES[lanes])
    assert scheduled.rule != "none" and "did not fit" not in scheduled.reason, scheduled.reason
    results = {scheduled.rule: run(scheduled.func, *inputs)}
    if lanes == 8:  # the expression is the same for other lanes; its schedule is not
        results["unscheduled"] = run(func, *inputs, optimised=False)
    return results
