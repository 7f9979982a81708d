"""bench: how long one inference of an artefact takes on its device."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from xnncc.inputs import random_inputs, tensor_infos


@dataclass(frozen=True)
class OpTime:
    """Median time of one operator over the repeats."""

    index: int
    kernel: str
    rule: str
    source: tuple[str, ...]
    median_ms: float


@dataclass(frozen=True)
class BenchResult:
    """Wall time of single inferences in ms, after warm-up; ``p90_ms``: nine of ten were at most that."""

    median_ms: float
    min_ms: float
    p90_ms: float
    threads: int
    repeat: int
    device: str
    target: str
    per_op: tuple[OpTime, ...] | None = None

    def document(self) -> dict[str, Any]:
        """Return the result as plain data for JSON."""
        return asdict(self)


def bench(
    directory: str | Path, *, threads: int = 1, repeat: int = 20, per_op: bool = False, device: str | None = None
) -> BenchResult:
    """Time ``repeat`` inferences of the artefact in ``directory`` on random input.

    Raises: BadPackage, DeviceError.
    """
    from xnncc.device import open_device
    from xnncc.pack import read_manifest

    directory = Path(directory)
    manifest = read_manifest(directory)
    feeds = random_inputs(tensor_infos(manifest["inputs"]))
    machine = open_device(device, manifest)
    timings = machine.time(directory, list(feeds.values()), threads, repeat, per_op)
    ops = None
    if timings.per_op_ms is not None:
        ops = tuple(
            OpTime(op["index"], op["kernel"], op["rule"], tuple(op["source"]), ms)
            for op, ms in zip(manifest["ops"], timings.per_op_ms, strict=True)
        )
    return BenchResult(
        median_ms=timings.median_ms,
        min_ms=timings.min_ms,
        p90_ms=timings.p90_ms,
        threads=threads,
        repeat=len(timings.ms),
        device=machine.name,
        target=manifest["target"],
        per_op=ops,
    )
