#!/usr/bin/env python3
"""Build the real networks, verify them against onnxruntime, ask whether their answers are right, time them.

    tools/check_models.py                                          all twelve on linux-x86-64
    tools/check_models.py blazeface silero-vad --targets linux-arm64,android-arm64,web-wasm
    tools/check_models.py --everywhere                             four of them on the emulated targets

Each network is built once for each target, and meets each place that runs the target (web-wasm has two: Node, and
Chromium where it is installed): verify within 1e-4 on real data, judge (quickly where that is slow), and time on one
thread: on this machine's own targets beside onnxruntime's, in turns; in Node and Chromium alone; under qemu never.
Writes models.json, models.md and the artefacts to --out (default: build/real) beside them. Exit code 1 when anything
failed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
from engines import artefact_engine
from peers import Contender, race, ratio, save_feeds
from real_models import MODELS, REAL_MODELS, RealModel

DEFAULT_OUT = Path(__file__).resolve().parent.parent / "build" / "real"
EMULATED = ("linux-arm64", "android-arm64", "web-wasm")
TOLERANCE = 1e-4
WEB_REPEAT = 40  # inferences in Node and Chromium, whose compilers take a few of them to settle


@dataclass
class Row:
    """What came out for one network on one target; ``failed`` says which step did not work and why."""

    network: str
    target: str
    runs_in: str = ""  # the Place's name; "" for what is only built
    build_s: float = 0.0
    worst_relative: float | None = None
    right: bool | None = None
    said: str = ""
    library_bytes: int = 0
    weights_bytes: int = 0
    arena_bytes: int = 0
    ms: float | None = None
    onnxruntime_ms: float | None = None
    onnxruntime_over_ours: float | None = None
    failed: str = ""
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Place:
    """What runs a target's artefacts: its name, and what ``--device`` calls it."""

    name: str
    device: str


def places(target: str) -> list[Place]:
    """Every place here that runs the target; none for one that is only built."""
    from xnncc.codegen.emulators import QEMU, find_browser
    from xnncc.target import load_target

    loaded = load_target(target)
    if loaded.toolchain.kind == "wasm":
        return [Place("Node", "emulator"), *([Place("Chromium", "browser")] if find_browser().found else [])]
    if loaded.device == "emulator":
        return [Place(QEMU[loaded.arch, loaded.toolchain.libc].program, "emulator")]
    return [Place("this machine", "host")] if loaded.device == "host" else []


def check(model: RealModel, target: str, out: Path, rounds: int) -> list[Row]:
    """Build one network for one target, then verify, judge and time it in each place; never raises for what it does."""
    built, directory = Row(model.name, target), out / f"{model.name}-{target}"
    feeds: dict[str, np.ndarray] = {}
    with _noting(built, "build"):
        if model.absent():
            raise FileNotFoundError(f"not fetched; run tools/fetch_models.py {' '.join(model.absent())}")
        feeds = model.sample(MODELS)
        _build(model, target, directory, feeds, built)
    if built.failed or not places(target):
        return [built]
    rows = [replace(built, runs_in=place.name) for place in places(target)]
    for row, place in zip(rows, places(target), strict=True):
        for step, take in (("verify", _verify), ("judge", _judge), ("time", _time)):
            with _noting(row, step):
                take(model, directory, feeds, place, rounds, row)
            if row.failed:
                break
    return rows


@contextmanager
def _noting(row: Row, step: str) -> Iterator[None]:
    """Note in the row what goes wrong inside, as that step's failure."""
    from xnncc.errors import XnnccError

    try:
        yield
    except (XnnccError, OSError) as error:
        row.failed = f"{step}: {error}"
    except Exception as error:
        traceback.print_exc()
        row.failed = f"{step}: {type(error).__name__}: {error}"


def _build(model: RealModel, target: str, directory: Path, feeds: dict[str, np.ndarray], row: Row) -> None:
    """Build without the build's own verification: it is a step of its own here."""
    from xnncc.build import build

    start = time.monotonic()
    result = build(model.path(), target, directory, shapes=model.shapes or None, samples=feeds, verify=False)
    row.build_s = round(time.monotonic() - start, 1)
    row.warnings = list(result.warnings)
    manifest = result.manifest
    row.weights_bytes, row.arena_bytes = manifest["weights_bytes"], manifest["arena_bytes"]
    row.library_bytes = sum(file["bytes"] for file in manifest["files"] if file["role"] == "library")


def _verify(
    model: RealModel, directory: Path, feeds: dict[str, np.ndarray], place: Place, rounds: int, row: Row
) -> None:
    """Largest difference of any output, relative to that output's largest value."""
    from xnncc.errors import VerifyFailed
    from xnncc.verify import verify

    result = verify(model.path(), directory, samples=feeds, device=place.device, tolerance=TOLERANCE)
    row.worst_relative = max((output.max_relative or 0.0 for output in result.outputs), default=0.0)
    if not result.passed:
        bad = next(output for output in result.outputs if not output.passed)
        why = f"output '{bad.name}': {bad.problem or f'relative difference {row.worst_relative:.1e}'}"
        raise VerifyFailed(model.name, f"{why}, at most {TOLERANCE:.0e} expected")


def _judge(
    model: RealModel, directory: Path, feeds: dict[str, np.ndarray], place: Place, rounds: int, row: Row
) -> None:
    """Whether the answers are right: all of them on this machine, a few where each takes a process of its own."""
    on_this_machine = place.device == "host"
    engine = artefact_engine(directory, None if on_this_machine else place.device)
    verdict = model.judge(engine, MODELS, not on_this_machine)
    row.right, row.said = verdict.right, verdict.said
    if not verdict.right:
        row.failed = "judge: the answer is wrong"


def _time(model: RealModel, directory: Path, feeds: dict[str, np.ndarray], place: Place, rounds: int, row: Row) -> None:
    """One thread: a race against onnxruntime on this machine, a median in Node and Chromium; qemu's says nothing."""
    if not rounds:
        return
    if place.device == "host":
        _race(model, directory, feeds, rounds, row)
    elif place.name in ("Node", "Chromium"):
        from xnncc.device import open_device
        from xnncc.pack import read_manifest

        manifest = read_manifest(directory)
        inputs = [feeds[tensor["name"]] for tensor in manifest["inputs"]]
        timings = open_device(place.device, manifest).time(directory, inputs, repeat=WEB_REPEAT)
        row.ms = round(timings.median_ms, 3)


def _race(model: RealModel, directory: Path, feeds: dict[str, np.ndarray], rounds: int, row: Row) -> None:
    """In turns with onnxruntime."""
    with tempfile.TemporaryDirectory(prefix="xnncc-check-") as work:
        feed_file = Path(work) / "feeds.npz"
        save_feeds(feeds, feed_file)
        with (
            Contender("xnncc", directory, feed_file, 1) as ours,
            Contender("onnxruntime", model.path(), feed_file, 1) as theirs,
        ):
            times = race({"xnncc": ours, "onnxruntime": theirs}, rounds)
    row.ms = round(statistics.median(times["xnncc"]), 3)
    row.onnxruntime_ms = round(statistics.median(times["onnxruntime"]), 3)
    row.onnxruntime_over_ours = round(ratio(times, "onnxruntime"), 2)


_HEAD = (
    "network",
    "target",
    "runs in",
    "answer",
    "difference",
    "library KiB",
    "weights KiB",
    "arena KiB",
    "build s",
    "ms",
    "onnxruntime ms",
    "ratio",
)


def _cells(row: Row) -> tuple[str, ...]:
    """The row as the table shows it."""
    answer = row.failed or ("right" if row.right else "built only")
    return (
        row.network,
        row.target,
        row.runs_in,
        answer,
        "" if row.worst_relative is None else f"{row.worst_relative:.1e}",
        *(f"{size / 1024:.0f}" if size else "" for size in (row.library_bytes, row.weights_bytes, row.arena_bytes)),
        f"{row.build_s:.1f}" if row.build_s else "",
        "" if row.ms is None else f"{row.ms:.2f}",
        "" if row.onnxruntime_ms is None else f"{row.onnxruntime_ms:.2f}",
        "" if row.onnxruntime_over_ours is None else f"{row.onnxruntime_over_ours:.2f}x",
    )


def markdown(rows: list[Row]) -> str:
    """The table for the README, numbers to the right."""
    lines = [" | ".join(_HEAD), " | ".join(["---"] * 4 + ["---:"] * (len(_HEAD) - 4))]
    lines += [" | ".join(cell.replace("|", "/").replace("\n", " ") for cell in _cells(row)) for row in rows]
    return "".join(f"| {line} |\n" for line in lines)


def _say(row: Row) -> None:
    """One line now, for who waits."""
    network, target, runs_in, answer, *numbers = _cells(row)
    print(
        f"{network:<20} {target:<14} {runs_in:<12} {answer}; "
        + ", ".join(f"{name} {value}" for name, value in zip(_HEAD[4:], numbers, strict=True) if value),
        flush=True,
    )
    if row.said:
        print(f"{'':<48} {row.said}", flush=True)


def _options(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of: {', '.join(REAL_MODELS)}")
    parser.add_argument("--targets", default="linux-x86-64", help="comma-separated (default: linux-x86-64)")
    parser.add_argument(
        "--everywhere", action="store_true", help=f"the four for all platforms, on {', '.join(EMULATED)}"
    )
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="folder for artefacts and tables")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of timing; 0 for none (default: 5)")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Command line; returns the exit code."""
    options = _options(argv)
    unknown = sorted(set(options.names) - set(REAL_MODELS))
    if unknown:
        print(f"check_models: no network '{unknown[0]}'. Known: {', '.join(REAL_MODELS)}.", file=sys.stderr)
        return 1
    everywhere = [name for name, model in REAL_MODELS.items() if model.everywhere]
    names = options.names or (everywhere if options.everywhere else list(REAL_MODELS))
    targets = EMULATED if options.everywhere else options.targets.split(",")
    if "web-wasm" in targets and len(places("web-wasm")) == 1:
        print("check_models: no Chromium here, so web-wasm meets Node only: apt-get install chromium", file=sys.stderr)
    options.out.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    for name in names:
        for target in targets:
            found = check(REAL_MODELS[name], target, options.out, options.rounds)
            rows += found
            for row in found:
                _say(row)
            document = json.dumps([asdict(row) for row in rows], indent=2)
            (options.out / "models.json").write_text(document + "\n", encoding="utf-8")
            (options.out / "models.md").write_text(markdown(rows), encoding="utf-8")
    failed = [row for row in rows if row.failed]
    print(f"{len(rows) - len(failed)} of {len(rows)} passed; {options.out / 'models.md'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
