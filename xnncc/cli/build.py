"""xnncc build: the whole flow, from a model file to a folder that an app can link."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from xnncc.cli import flags
from xnncc.cli.output import Output
from xnncc.report.words import size

BINDINGS = ("kotlin", "swift", "js")


def build(
    model: flags.Model,
    target: flags.Target,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Folder to write. Default: <model's stem>-<target>.",
            show_default=False,
        ),
    ] = None,
    shape: flags.Shapes = None,
    samples: flags.Samples = None,
    state: flags.States = None,
    fix: flags.Fixed = None,
    nms_rows: flags.NmsRows = None,
    weights: flags.Weights = None,
    plugin: flags.Plugins = None,
    threads: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Cores to compile with. Default: all.", show_default=False),
    ] = None,
    max_kib: Annotated[
        int | None,
        typer.Option(
            "--max-kib",
            metavar="N",
            min=1,
            help="Fail when the library is over N KiB. Default: no limit.",
            show_default=False,
        ),
    ] = None,
    no_verify: Annotated[
        bool, typer.Option("--no-verify", help="Skip running the result against the source model. Default: verify.")
    ] = False,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact",
            help="Plain sums only: neither Winograd convolutions nor Strassen products, whose rounding is larger. "
            "Default: off.",
        ),
    ] = False,
    records: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Tuned records (xnncc tune). Default: those shipped for TARGET.", show_default=False
        ),
    ] = None,
    bindings: Annotated[
        str, typer.Option(metavar="LIST", help="Wrappers to add, with commas between: kotlin,swift,js. Default: none.")
    ] = "",
    dump: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write the IR after every pass there, numbered. Default: off.", show_default=False
        ),
    ] = None,
    stop_after: Annotated[
        str | None,
        typer.Option(
            "--stop-after",
            metavar="STAGE",
            help="End after this stage, for --dump. Default: the last.",
            show_default=False,
        ),
    ] = None,
    json_only: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """Compile MODEL into a library for TARGET.

    Writes the library, its header, the weights package, manifest.json and report.html into DIR: all or nothing.
    """
    from xnncc.build import build as build_model
    from xnncc.inputs import read_npz

    out = Output(json_only=json_only, quiet=quiet)
    debug: dict[str, Any] = {"dump": dump, "stop_after": stop_after}
    with out.progress(f"building {model.name}") as progress:
        result = build_model(
            model,
            target,
            output,
            shapes=flags.parse_shapes(shape),
            samples=read_npz(samples) if samples else None,
            weights=weights,
            threads=threads,
            max_kib=max_kib,
            verify=not no_verify,
            exact=exact,
            records=records,
            bindings=_parse_bindings(bindings),
            states=tuple(state or ()),
            fixed=flags.parse_fixed(fix),
            nms_rows=nms_rows,
            plugins=tuple(plugin or ()),
            progress=progress,
            **{name: value for name, value in debug.items() if value is not None},
        )
    for warning in result.warnings:
        out.warn(warning)
    if stop_after is not None:
        out.document({"stopped_after": stop_after})
        out.result(f"stopped after {stop_after}")
        return
    _show(out, result)
    out.document({"directory": str(result.directory), "manifest": result.manifest, "warnings": list(result.warnings)})
    folder = shlex.quote(str(result.directory))
    apart = flags.weights_flag(weights) + flags.plugin_flags(plugin)
    out.next(f"xnncc verify {shlex.quote(str(model))} {folder}{apart}" if no_verify else f"xnncc bench {folder}")


def _parse_bindings(text: str) -> tuple[str, ...]:
    """Return the languages of ``--bindings kotlin,swift``."""
    from xnncc.errors import nearest

    names = tuple(name for name in text.split(",") if name)
    for name in names:
        if name not in BINDINGS:
            near = nearest(name, list(BINDINGS))
            raise typer.BadParameter(f"--bindings: no language '{name}'{near} Known: {', '.join(BINDINGS)}.")
    return names


def _show(out: Output, result: Any) -> None:
    """Print what was made: the folder, its files, and what the network needs at run time."""
    manifest = result.manifest
    out.result(f"{result.directory}/")
    out.table(("file", ">size", "what"), [(f["path"], size(f["bytes"]), f["role"]) for f in manifest["files"]])
    scratch, variants = manifest["thread_scratch_bytes"], manifest.get("variants", [])
    arena = max(variant["arena_bytes"] for variant in (manifest, *variants))
    out.result(
        f"{manifest['op_count']} operators; weights {size(manifest['weights_bytes'])}; "
        f"memory while running {size(arena)}" + (f" + {size(scratch)} a thread" if scratch else "")
    )
    if variants:
        out.result(f"{len(variants) + 1} shapes, one copy of the weights")
