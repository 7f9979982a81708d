"""bench: how long one inference of an artefact takes on its device."""

from __future__ import annotations

from collections.abc import Mapping
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
    directory: str | Path,
    *,
    threads: int = 1,
    repeat: int = 20,
    per_op: bool = False,
    device: str | None = None,
    shapes: Mapping[str, Any] | None = None,
) -> BenchResult:
    """Time ``repeat`` inferences of the artefact in ``directory`` on random input.

    ``shapes``: dims by input, of an artefact that was built for several; the first by default.

    Raises: BadPackage, ShapeError, DeviceError.
    """
    from xnncc.device import open_device
    from xnncc.pack import read_manifest

    directory = Path(directory)
    whole = read_manifest(directory)
    manifest = _variant(whole, directory, shapes or {})
    feeds = random_inputs(tensor_infos(manifest["inputs"]))
    machine = open_device(device, whole)
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


def _variant(manifest: dict[str, Any], directory: Path, shapes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest of the first variant with these inputs."""
    from xnncc.errors import ShapeError
    from xnncc.ir.variants import shapes_in_words
    from xnncc.pack import variant_manifests

    variants = variant_manifests(manifest)
    for variant in variants:
        dims = {t["name"]: tuple(t["shape"]) for t in variant["inputs"]}
        if all(dims.get(name) == shape for name, shape in shapes.items()):
            return variant
    words = ", ".join(f"{name} {list(shape)}" for name, shape in shapes.items())
    built = " | ".join(shapes_in_words(tensor_infos(v["inputs"])) for v in variants)
    raise ShapeError(f"--shape {words}", f"'{directory}' was built for {built}", "Give one of these.")
