"""What a report is made of, and the JSON document it becomes. Free of TVM; no times, paths or host names in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from xnncc.ir.plan import MemoryPlan, OpRecord, Region, TensorInfo

FORMAT = 1


@dataclass(frozen=True)
class FileSize:
    """A file of the artefact: ``role`` in words ("library", "package", "header"), size in bytes."""

    path: str
    size: int
    role: str


@dataclass(frozen=True)
class ReportData:
    """One build, as the driver of the build knows it."""

    name: str  # the model's stem
    target: str
    target_summary: str
    source_file: str  # name only: a path would differ from machine to machine
    source_sha256: str
    tools: Mapping[str, str]  # tool -> version
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    ops: tuple[OpRecord, ...]
    memory: MemoryPlan
    files: tuple[FileSize, ...]
    warnings: tuple[str, ...] = ()
    facts: Mapping[str, str | int | float] = field(default_factory=dict)  # further lines: import check, verification
    coded: tuple[Mapping[str, Any], ...] = ()  # weights stored as integers: name, shape, coder, bytes, bits_per_weight


def document(data: ReportData) -> dict[str, Any]:
    """Return report.json's content: plain, with every derived number that the page shows."""
    weights = _weights_of_ops(data.ops)
    live = live_bytes(data.memory, len(data.ops))
    coded = {"coded": [dict(layer) for layer in data.coded]} if data.coded else {}
    return {
        **coded,
        "format": FORMAT,
        "name": data.name,
        "target": data.target,
        "target_summary": data.target_summary,
        "source": {"file": data.source_file, "sha256": data.source_sha256},
        "tools": dict(data.tools),
        "facts": dict(data.facts),
        "warnings": list(data.warnings),
        "inputs": [_tensor(info) for info in data.inputs],
        "outputs": [_tensor(info) for info in data.outputs],
        "files": [{"path": f.path, "bytes": f.size, "role": f.role} for f in data.files],
        "totals": {
            "op_count": len(data.ops),
            "macs": sum(op.macs for op in data.ops),
            "weights_bytes": data.memory.weights_bytes,
            "arena_bytes": data.memory.arena_bytes,
            "peak_live_bytes": data.memory.peak_live_bytes,
            "thread_scratch_bytes": data.memory.thread_scratch_bytes,
        },
        "ops": [_op(op, own, live[op.index]) for op, own in zip(data.ops, weights, strict=True)],
        "memory": {
            "buffers": [asdict(buffer) for buffer in data.memory.buffers],
            "live_bytes": live,  # sum of the buffers alive during each operator
        },
    }


def live_bytes(memory: MemoryPlan, op_count: int) -> list[int]:
    """Return, for each operator, the sum of the arena's buffers that are alive while it runs."""
    change = [0] * (op_count + 1)
    for buffer in memory.buffers:
        change[max(buffer.first, 0)] += buffer.size
        change[min(buffer.last + 1, op_count)] -= buffer.size
    live, now = [], 0
    for step in change[:op_count]:
        now += step
        live.append(now)
    return live


def _weights_of_ops(ops: tuple[OpRecord, ...]) -> list[int]:
    """Return the weight bytes of each operator; weights that several share count for the first."""
    seen: set[tuple[int, int]] = set()
    totals = []
    for op in ops:
        own = {(r.offset, r.size) for r in op.inputs if r.space == "weights"} - seen
        seen |= own
        totals.append(sum(size for _, size in own))
    return totals


def _tensor(info: TensorInfo) -> dict[str, Any]:
    return {"name": info.name, "shape": list(info.shape), "dtype": info.dtype, "bytes": info.size_bytes}


def _region(region: Region) -> dict[str, Any]:
    return {"shape": list(region.shape), "dtype": region.dtype, "layout": region.layout, "bytes": region.size}


def _op(op: OpRecord, weights: int, live: int) -> dict[str, Any]:
    return {
        "index": op.index,
        "kernel": op.kernel,
        "rule": op.rule,
        "reason": op.reason,
        "source": list(op.source),
        "macs": op.macs,
        "weights_bytes": weights,
        "live_bytes": live,
        "scratch_bytes": sum(region.size for region in op.scratch),
        "outputs": [_region(region) for region in op.outputs],
    }
