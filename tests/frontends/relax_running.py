"""Runs a Relax module as TVM lowers it, without schedules: the other opinion on what an operator means."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tvm
from tvm import relax


def run_compiled(mod: tvm.IRModule, feeds: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the outputs of ``main``."""
    executable = tvm.compile(mod, tvm.target.Target("llvm"))
    machine = relax.VirtualMachine(executable, tvm.cpu())
    return [out.numpy() for out in machine["main"](*map(tvm.runtime.tensor, feeds))]
