"""xnncc compress: the squeeze, from a model file to a much smaller model file with a report of what it cost."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from xnncc.cli import flags
from xnncc.cli.output import Output
from xnncc.report.words import count, size

_DATA = "An array [samples, ...] for each input, and 'labels' where there are some."


def compress(
    model: flags.Model,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="OUT.xq", help="File to write; its report lies beside it.", show_default=False
        ),
    ],
    recipe: Annotated[
        str | None,
        typer.Option(
            metavar="R",
            help="safe, balanced, max, deep-compression, or a .toml file. "
            "Default: what the data allows: safe; balanced with --calib; max with --train.",
            show_default=False,
        ),
    ] = None,
    calib: Annotated[
        Path | None,
        typer.Option(
            metavar="C.npz", help=f"A few hundred samples for statistics. {_DATA} Default: none.", show_default=False
        ),
    ] = None,
    train: Annotated[
        Path | None,
        typer.Option(
            metavar="T.npz", help="Samples to train on; needs xnncc[train]. Default: none.", show_default=False
        ),
    ] = None,
    eval: Annotated[
        Path | None,
        typer.Option(
            metavar="E.npz", help="Samples to judge by; no method sees them. Default: none.", show_default=False
        ),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="M",
            help="top1, top5, agreement, sqnr, cosine, or FILE.py:FUNCTION of (outputs, labels), larger is better. "
            "Default: what fits the data.",
            show_default=False,
        ),
    ] = None,
    max_loss: Annotated[
        str | None,
        typer.Option(
            "--max-loss", metavar="X", help="Contract: lose at most this, like 0.5%. Default: none.", show_default=False
        ),
    ] = None,
    target_kib: Annotated[
        float | None,
        typer.Option(
            "--target-kib", metavar="N", help="Contract: a file of at most N KiB. Default: none.", show_default=False
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Of all that is random.")] = 0,
    shape: flags.Shapes = None,
    fix: flags.Fixed = None,
    weights: flags.Weights = None,
    json_only: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """Compress MODEL into OUT.xq, which is a model file again.

    Build, verify, inspect and compress take it. Interrupted runs go on where they were. Exit code 1 when a contract
    cannot be met; the nearest is left at OUT.best.xq then.
    """
    from xnncc.squeeze.compress import compress as compress_model

    out = Output(json_only=json_only, quiet=quiet)
    with out.progress(f"compressing {model.name}") as progress:
        result = compress_model(
            model,
            output,
            recipe=recipe,
            calib=calib,
            train=train,
            eval=eval,
            metric=metric,
            max_loss=parse_loss(max_loss),
            target_kib=target_kib,
            seed=seed,
            shapes=flags.parse_single_shapes(shape),
            fixed=flags.parse_fixed(fix),
            weights=weights,
            progress=progress,
        )
    for warning in result.warnings:
        out.warn(warning)
    _show(out, result)
    out.document(
        {"path": str(result.path), "holds": result.holds, "warnings": list(result.warnings), "report": result.report}
    )
    if not result.holds:
        raise _broken_contract(result)
    out.next(f"xnncc build {shlex.quote(str(result.path))} --target host")


def parse_loss(text: str | None) -> float | None:
    """Return ``0.005`` for ``0.5%`` and for ``0.005``."""
    if text is None:
        return None
    number = text.strip()
    try:
        value = float(number.rstrip("% ")) / (100 if number.endswith("%") else 1)
    except ValueError:
        raise typer.BadParameter(f"--max-loss: '{text}' is no number. Write it like 0.5% or 0.005.") from None
    if not 0 <= value < float("inf"):
        raise typer.BadParameter(f"--max-loss: '{text}' is not a loss from 0 on.")
    return value


def _show(out: Output, result: Any) -> None:
    """Print the sizes, what each step did, and the loss."""
    from xnncc.report.squeeze_page import loss_words

    report = result.report
    source, made = report["source"], report["result"]

    def words(loss: float | None) -> str:
        return "" if loss is None else loss_words(loss, report["is_share"])

    out.result(f"{result.path}  {size(made['bytes'])}, {report['ratio']:.1f}x smaller than {source['file']}'s weights")
    out.result()
    rows = [
        (step["method"], len(step["layers"]), len(step["left_alone"]), size(step["bytes_after"]), words(step["loss"]))
        for step in report["steps"]
    ]
    if rows:
        out.table(("step", ">layers", ">left alone", ">weights after", ">loss"), rows)
        out.result()
    out.result(
        f"{report['bits_per_weight']:.2f} bits a weight; weights {count(made['parameters'])} of "
        f"{count(source['parameters'])}; MACs {count(made['macs'])} of {count(source['macs'])}"
    )
    test = report["loss"]["test"]
    if test is not None:
        out.result(
            f"loss {words(test)} ({report['metric']}, {report['samples']['test']} samples that nothing else saw)"
        )


def _broken_contract(result: Any) -> Exception:
    """Return the error of a contract that cannot be met: the best that was reached and what costs most."""
    from xnncc.errors import CompressError
    from xnncc.report.squeeze_page import loss_words

    report, contract = result.report, result.report["contract"]
    is_share = report["is_share"]
    if contract["max_loss"] is not None:
        asked = f"--max-loss {loss_words(contract['max_loss'], is_share)}"
        reached = f"the least loss is {loss_words(report['loss']['select'], is_share)}"
    else:
        asked = f"--target-kib {contract['target_bytes'] / 1024:.4g}"
        reached = f"the smallest file is {size(report['result']['bytes'])}"
    costly = ", ".join(entry["layer"] for entry in report["costly"][:3])
    step = f"The best is in {result.path}; see its report." + (f" Layers that cost most: {costly}." if costly else "")
    return CompressError(asked, f"this recipe cannot do it, {reached}", step)
