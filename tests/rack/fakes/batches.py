"""Batches of known kernels and of the tiny network, as the broker hands them to a phone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from fakes.known_kernels import SYMBOL, known_kernels
from tiny import INPUT, tiny_artefact

from xnncc.rack.phone import Batch
from xnncc.target import load_target

Blobs = dict[str, Path]


def kernels(
    folder: Path,
    target: str = "linux-arm64",
    count: int = 4,
    crash: Iterable[int] = (),
    hang: Iterable[int] = (),
    wrong: Iterable[int] = (),
) -> tuple[Batch, Blobs]:
    """Return a batch of ``count`` candidates with known faults, and its blobs."""
    library, (group,) = known_kernels(load_target(target), folder / "kernels", count, crash, hang, wrong)
    files, blobs = _stored({"library": library.library, "package": library.package})
    more = {"graph_symbol": SYMBOL, "dumps": True, "run_seconds": 1.0}
    return Batch("measure", target, files, (group,), 3, arguments=more), blobs


def stuck(folder: Path, target: str = "linux-arm64") -> tuple[Batch, Blobs]:
    """Return a batch that gives two measurements and then computes for a minute: time to break something."""
    batch, blobs = kernels(folder, target, hang=[2])
    (group,) = batch.groups
    groups = (replace(group, candidates=(0, 1)), replace(group, candidates=(0, 2)))
    return replace(batch, groups=groups, arguments={**batch.arguments, "run_seconds": 60.0}), blobs


def network(folder: Path, target: str = "linux-arm64", defines: tuple[str, ...] = ()) -> tuple[Batch, Blobs]:
    """Return a batch that runs the tiny network once, and its blobs. See ``timed``."""
    artefact = tiny_artefact(load_target(target), folder / "artefact", defines=defines)
    inputs = folder / "in.bin"
    inputs.write_bytes(INPUT.tobytes())
    files, blobs = _stored({"library": artefact / "libtiny.so", "package": artefact / "tiny.xnn", "inputs": inputs})
    more = {"graph_symbol": "xnn_tiny_graph", "words": [f"0@{INPUT.nbytes}:{INPUT.nbytes}"]}
    return Batch("run", target, files, arguments=more), blobs


def timed(batch: Batch, repeat: int) -> Batch:
    """Return the batch that times the network of ``batch``."""
    words = [*batch.arguments["words"], str(repeat), "0"]  # type: ignore[misc]
    return replace(batch, kind="time", arguments={**batch.arguments, "words": words})


def _stored(named: dict[str, Path]) -> tuple[dict[str, str], Blobs]:
    files = {name: sha256(path.read_bytes()).hexdigest() for name, path in named.items()}
    return files, {files[name]: path for name, path in named.items()}
