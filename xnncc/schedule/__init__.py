"""Schedule rules: how a kernel is tiled on a machine. One rule a file, each with

    NAME                                   the ``xnn.rule`` annotation it answers to
    space(numbers, machine) -> configs     a dozen at most, the analytic choice first
    apply(schedule, block, numbers, machine, config)
    wider(numbers, machine) -> configs     optional: what else tuning may try, the best guess first

``RULES`` is the list; kernels without an annotation go down ``FOREIGN`` until a rule fits. The primitives of TensorIR
keep the meaning of a kernel, so a rule that does not fit can only fail, never compute something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import tirx

from ..target import Machine
from . import (
    bmm_packed,
    conv2d_direct,
    conv2d_filter,
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
    strassen_tiles,
)
from .blocks import blocks_of, is_reduction, main_block, schedule_of
from .kernel_key import kernel_key
from .records import Record, find_config

RULES: dict[str, Any] = {
    rule.NAME: rule
    for rule in (
        conv2d_direct,
        conv2d_filter,
        conv2d_winograd,
        strassen_tiles,
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


def schedule_kernel(func: tirx.PrimFunc, machine: Machine, records: Mapping[str, Record] | None = None) -> Scheduled:
    """Return ``func`` scheduled for ``machine`` by the first rule that fits; the reason says what did not.

    ``records`` (of this machine, by ``kernel_key``) come before the analytic choice when they name a configuration of
    the rule's space.
    """
    if func.body.block.name_hint != "root":  # te.extern (cumsum, sort): the whole kernel is one opaque block
        return Scheduled(func, "none", "not scheduled; one opaque block")
    sch = schedule_of(func)
    _, name, numbers = main_block(sch)
    refused, words = "", "analytic"
    recorded: Any = None
    if name in RULES:
        space = RULES[name].space(numbers, machine)
        wide = tuning_space(RULES[name], numbers, machine) if records else space
        record = records.get(kernel_key(func, RULES[name])) if records else None
        if record is not None and (recorded := find_config(record, wide)) is None:
            refused = f"; {record.words} names no configuration of the rule's space"
        elif record is not None:
            space, words = [recorded, *space], record.words
        candidates = [(RULES[name], cfg) for cfg in space] + [(reduction, None)]
    elif any(is_reduction(sch, b) for b in blocks_of(sch)):
        candidates = [(rule, None) for rule in FOREIGN]
    else:
        candidates = [(elementwise, None)]  # also for annotations that only name a kernel
    for rule, cfg in candidates:
        sch = schedule_of(func)
        block, _, numbers = main_block(sch)
        try:
            rule.apply(sch, block, numbers, machine, cfg)
        except (tvm.error.InternalError, RuntimeError, ValueError, StopIteration, IndexError) as error:
            refused += f"; {' '.join([rule.NAME, str(cfg or '')]).strip()} did not fit: {_last_line(error)}"
            words = "analytic"
            continue
        return Scheduled(sch.mod["main"], rule.NAME, f"{words} {cfg or ''}".strip() + refused)
    return Scheduled(func, "none", f"not scheduled{refused}")


def tuning_space(rule: Any, numbers: dict[str, int], machine: Machine) -> list[Any]:
    """Return everything that a record of ``rule`` may name: its space, the analytic choice first, and what is wider."""
    space = rule.space(numbers, machine)
    return list(dict.fromkeys([*space, *(rule.wider(numbers, machine) if hasattr(rule, "wider") else [])]))


def _last_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:120] if lines else type(error).__name__
