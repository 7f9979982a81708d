"""Schedule rules: how a kernel is tiled on a machine. One rule a file, each with

    NAME                                   the ``xnn.rule`` annotation it answers to
    space(numbers, machine) -> configs     a dozen at most, the analytic choice first
    apply(schedule, block, numbers, machine, config)

``RULES`` is the list; kernels without an annotation go down ``FOREIGN`` until a rule fits. The primitives of TensorIR
keep the meaning of a kernel, so a rule that does not fit can only fail, never compute something else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tvm
from tvm import tirx

from ..target import Machine
from . import (
    bmm_packed,
    conv2d_direct,
    conv2d_winograd,
    depthwise_rows,
    elementwise,
    gemm_tiles,
    gemv_blocks,
    global_mean_lanes,
    pool_rows,
    recurrent_written,
    reduction,
    rowwise,
)
from .blocks import blocks_of, is_reduction, main_block, schedule_of

RULES: dict[str, Any] = {
    rule.NAME: rule
    for rule in (
        conv2d_direct,
        conv2d_winograd,
        depthwise_rows,
        pool_rows,
        global_mean_lanes,
        gemv_blocks,
        gemm_tiles,
        bmm_packed,
        recurrent_written,
    )
}
FOREIGN = (rowwise, reduction)  # order: the first that fits


@dataclass(frozen=True)
class Scheduled:
    """A scheduled kernel, the rule that did it, and why this configuration."""

    func: tirx.PrimFunc
    rule: str
    reason: str


def schedule_kernel(func: tirx.PrimFunc, machine: Machine) -> Scheduled:
    """Return ``func`` scheduled for ``machine`` by the first rule that fits; the reason says what did not."""
    if func.body.block.name_hint != "root":  # te.extern (cumsum, sort): the whole kernel is one opaque block
        return Scheduled(func, "none", "not scheduled; one opaque block")
    sch = schedule_of(func)
    _, name, numbers = main_block(sch)
    if name in RULES:
        candidates = [(RULES[name], cfg) for cfg in RULES[name].space(numbers, machine)] + [(reduction, None)]
    elif any(is_reduction(sch, b) for b in blocks_of(sch)):
        candidates = [(rule, None) for rule in FOREIGN]
    else:
        candidates = [(elementwise, None)]  # also for annotations that only name a kernel
    refused = ""
    for rule, cfg in candidates:
        sch = schedule_of(func)
        block, _, numbers = main_block(sch)
        try:
            rule.apply(sch, block, numbers, machine, cfg)
        except (tvm.error.InternalError, RuntimeError, ValueError, StopIteration, IndexError) as error:
            refused += f"; {' '.join([rule.NAME, str(cfg or '')]).strip()} did not fit: {_last_line(error)}"
            continue
        return Scheduled(sch.mod["main"], rule.NAME, f"analytic {cfg or ''}".strip() + refused)
    return Scheduled(func, "none", f"not scheduled{refused}")


def _last_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:120] if lines else type(error).__name__
