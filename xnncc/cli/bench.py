"""xnncc bench: how long does one inference take?"""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from xnncc.cli import flags
from xnncc.cli.output import Output


def bench(
    directory: flags.Artefact,
    threads: flags.Threads = 1,
    repeat: Annotated[int, typer.Option(metavar="N", min=1, help="Inferences that are timed, after warm-up.")] = 20,
    per_op: Annotated[bool, typer.Option("--per-op", help="Time every operator too. Default: off.")] = False,
    device: flags.Device = None,
    shape: flags.ChosenShapes = None,
    json_only: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """Time an artefact, in milliseconds an inference.

    Feeds random input and warms up first.
    """
    from xnncc.bench import bench as bench_artefact

    out = Output(json_only=json_only, quiet=quiet)
    with out.progress(f"timing {directory}"):
        result = bench_artefact(
            directory,
            threads=threads,
            repeat=repeat,
            per_op=per_op,
            device=device,
            shapes=flags.parse_single_shapes(shape),
        )
    out.document(result.document())
    if result.per_op is not None:
        total = sum(op.median_ms for op in result.per_op) or 1.0
        out.table(
            (">op", "kernel", "rule", ">ms", ">share"),
            [
                (op.index, op.kernel, op.rule, f"{op.median_ms:.3f}", f"{op.median_ms / total:.1%}")
                for op in sorted(result.per_op, key=lambda op: -op.median_ms)
            ],
        )
    plural = "" if threads == 1 else "s"
    out.result(
        f"median {result.median_ms:.3f} ms   min {result.min_ms:.3f} ms   p90 {result.p90_ms:.3f} ms   "
        f"({threads or 'all'} thread{plural}, {result.repeat} runs, {result.device})"
    )
    if result.device == "emulator":
        out.warn("an emulator's times say nothing about the device's; use them to compare operators at most")
    if not per_op:
        out.next(f"xnncc bench {shlex.quote(str(directory))} --per-op")
