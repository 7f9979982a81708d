"""xnncc tune: search for the fastest schedules of a network's kernels on a device, and keep them as records."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from xnncc.cli import flags
from xnncc.cli.output import Output

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


def tune(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="MODEL", help="The model file; with --merge, folders of records.", show_default=False),
    ],
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            "-t",
            metavar="TARGET",
            help="What to tune for. Default: none, it must be given.",
            show_default=False,
        ),
    ] = None,
    device: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DEVICE",
            help="Where to measure: host, emulator, adb:SERIAL, tcp:HOST:PORT, tvm-rpc:HOST:PORT:KEY or rack:KEY. "
            "Repeatable, for equal devices. Default: the target's own.",
            show_default=False,
        ),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Stop after N measured candidates. Default: no limit.", show_default=False
        ),
    ] = None,
    time: Annotated[str, typer.Option(metavar="TIME", help="Stop after so long, as 90s, 15m or 2h.")] = "15m",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Folder of records. Default: schedules/<target>.", show_default=False
        ),
    ] = None,
    shape: flags.Shapes = None,
    fix: flags.Fixed = None,
    nms_rows: flags.NmsRows = None,
    weights: flags.Weights = None,
    threads: Annotated[int, typer.Option(metavar="N", min=1, help="Threads of an inference.")] = 1,
    exact: Annotated[
        bool, typer.Option("--exact", help="For builds with --exact: plain sums only. Default: off.")
    ] = False,
    merge: Annotated[
        bool, typer.Option("--merge", help="Merge folders of records into -o DIR instead. Default: off.")
    ] = False,
    json_only: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """Search for fast schedules of MODEL's kernels and keep them as records for xnncc build.

    Ctrl-C keeps what was measured; the same command goes on from there.
    """
    out = Output(json_only=json_only, quiet=quiet)
    if merge:
        _merge(out, paths, output)
        return
    if len(paths) != 1 or target is None:
        raise typer.BadParameter("give one MODEL and --target, or --merge and folders of records")
    from xnncc.tune import tune as tune_model

    (model,) = paths
    with out.progress(f"tuning {model.name}") as progress:
        outcome = tune_model(
            model,
            target,
            devices=tuple(device or ()),
            trials=trials,
            seconds=parse_time(time),
            output=output,
            shapes=flags.parse_single_shapes(shape),
            fixed=flags.parse_fixed(fix),
            nms_rows=nms_rows,
            weights=weights,
            threads=threads,
            exact=exact,
            progress=progress,
        )
    _show(out, outcome)
    if outcome.is_interrupted:
        out.say("interrupted: everything measured is kept, the same command goes on from there")
    command = f"xnncc build {shlex.quote(str(model))} --target {target} --records {shlex.quote(str(outcome.folder))}"
    out.next(command if outcome.records else f"xnncc build {shlex.quote(str(model))} --target {target}")


def parse_time(text: str) -> float:
    """Return the seconds of "90s", "15m", "1.5h" or "90"."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text.strip())
    if found is None or float(found[1]) <= 0:
        raise typer.BadParameter(f"--time: '{text}' is no time. Write it like 90s, 15m or 2h.")
    return float(found[1]) * _UNITS[found[2]]


def _merge(out: Output, folders: list[Path], output: Path | None) -> None:
    from xnncc.tune.write_records import merge_folders

    if output is None:
        raise typer.BadParameter("--merge wants -o DIR, the folder to write")
    read, kept, notes = merge_folders(folders, output)
    for note in notes:
        out.warn(note)
    out.result(f"{output}/: {kept} records out of {read}")
    out.document({"directory": str(output), "read": read, "kept": kept})


def _show(out: Output, outcome: Any) -> None:
    """Print what was found."""
    for warning in outcome.warnings:
        out.warn(warning)
    faults = {kind: count for kind, count in sorted(outcome.faults.items()) if kind}
    if faults:
        words = ", ".join(f"{count} {kind}" for kind, count in faults.items())
        out.say(f"candidates that cost nothing but their time: {words}")
    records = sorted(outcome.records, key=lambda r: r.us - r.analytic_us)
    rows = [(_name(r), f"{r.analytic_us:.1f}", f"{r.us:.1f}", f"{r.gain:.2f}x", _choice(r.choice)) for r in records]
    out.table(("kernel", ">analytic us", ">tuned us", ">gain", "choice"), rows)
    state = "interrupted" if outcome.is_interrupted else "done"
    out.result(
        f"{state}: {outcome.gain:.3f}x over the kernels that can be tuned "
        f"({outcome.analytic_us / 1e3:.3f} -> {outcome.best_us / 1e3:.3f} ms), {outcome.trials} measured now, "
        f"{outcome.resumed} before, {len(outcome.records)} records in {outcome.folder}/"
    )
    out.document(
        {
            "directory": str(outcome.folder), "gain": outcome.gain, "analytic_us": outcome.analytic_us,
            "best_us": outcome.best_us, "trials": outcome.trials, "resumed": outcome.resumed,
            "candidates": outcome.candidates, "records": len(outcome.records), "faults": faults,
            "curve": outcome.curve, "interrupted": outcome.is_interrupted, "warnings": outcome.warnings,
        }
    )  # fmt: skip


def _name(record: Any) -> str:
    """Return what a person calls a kernel: a layer that it computes, or the convolution."""
    if isinstance(record.choice, str):
        return str(record.kernel).partition(" s ")[0]
    return str(next(iter(record.extra.get("layers", [])), record.kernel.partition(" ")[0]))


def _choice(choice: Any) -> str:
    return choice if isinstance(choice, str) else " ".join(f"{k}={v}" for k, v in choice.items())
