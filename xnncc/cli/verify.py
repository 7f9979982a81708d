"""xnncc verify: does the artefact give the source model's numbers?"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from xnncc.cli import flags
from xnncc.cli.output import Output
from xnncc.report.words import shape

if TYPE_CHECKING:
    from xnncc.compare import Difference
    from xnncc.verify import VerifyResult


def verify(
    model: flags.Model,
    directory: flags.Artefact,
    samples: flags.Samples = None,
    weights: flags.Weights = None,
    plugin: flags.Plugins = None,
    layers: Annotated[
        bool, typer.Option("--layers", help="Compare operator by operator: where they part. Default: outputs only.")
    ] = False,
    device: flags.Device = None,
    tolerance: Annotated[
        float,
        typer.Option(metavar="X", min=0.0, help="Largest difference allowed, relative to the output's largest value."),
    ] = 1e-4,
    json_only: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """Compare an artefact with MODEL's own runtime.

    Runs the artefact in DIR on its device; exit code 1 when an output is beyond the tolerance.
    """
    from xnncc.verify import verify as verify_artefact

    out = Output(json_only=json_only, quiet=quiet)
    with out.progress(f"verifying {directory}"):
        result = verify_artefact(
            model, directory, samples=samples, weights=weights, layers=layers, device=device, tolerance=tolerance,
            plugins=tuple(plugin or ()),
        )  # fmt: skip
    out.document(result.document())
    for one in (result, *result.further):
        _show(out, one)
    folder = shlex.quote(str(directory))
    if not result.passed:
        apart = flags.weights_flag(weights) + flags.plugin_flags(plugin)
        if not layers:
            out.next(f"xnncc verify {shlex.quote(str(model))} {folder}{apart} --layers")
        raise typer.Exit(1)
    out.next(f"xnncc bench {folder}")


def _show(out: Output, result: VerifyResult) -> None:
    """Print the layers, the outputs, and the verdict at one choice of shapes."""
    if result.shapes:
        out.result(result.shapes)
    if result.layers is not None:
        bad = result.first_bad_layer
        layer_rows = [
            (layer.index, layer.kernel, layer.tensor, shape(layer.shape), *_numbers(layer.difference))
            for layer in result.layers
        ]
        columns = (">op", "kernel", "tensor", "shape", ">max abs", ">relative", "")
        out.table(columns, layer_rows, mark=result.layers.index(bad) if bad else None)
        if bad and bad.difference:
            out.result(
                f"they part at operator {bad.index}, {bad.kernel}, tensor '{bad.tensor}': {bad.difference.problem}"
            )
        else:
            out.result("no operator is beyond the tolerance")
        out.result()
    rows = [(output.name, *_numbers(output)) for output in result.outputs]
    out.table(("output", ">max abs", ">relative", ""), rows)
    verdict = "verified" if all(output.passed for output in result.outputs) else "NOT the same"
    out.result(f"{verdict}: tolerance {result.tolerance:g}, on {result.device}, {result.data}")


def _numbers(difference: Difference | None) -> tuple[str, str, str]:
    """Return the cells max abs, relative and verdict."""
    if difference is None:
        return "-", "-", "not in the source model"
    absolute = "-" if difference.max_abs is None else f"{difference.max_abs:.2e}"
    relative = "-" if difference.max_relative is None else f"{difference.max_relative:.2e}"
    return absolute, relative, "ok" if difference.passed else f"FAIL {difference.problem}"
