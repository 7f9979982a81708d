"""xnncc inspect: what is inside a model file, a package, or a folder that build made."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from xnncc.cli import flags
from xnncc.cli.output import Output
from xnncc.report.words import count, shape, size


def inspect(
    file: Annotated[
        Path, typer.Argument(metavar="FILE|DIR", help="A model, a .xnn package, or a folder that build made.")
    ],
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            "-t",
            metavar="TARGET",
            help="Of a model: what stands between it and this target, tools on this machine too. Repeatable. "
            "Default: every target, without the tools.",
            show_default=False,
        ),
    ] = None,
    shape: flags.Shapes = None,
    weights: flags.Weights = None,
    plugin: flags.Plugins = None,
    json_only: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """Show what is inside a model, package or artefact, and what of a model can be built.

    Graph, shapes, bytes, hashes, target. Of a model every node that cannot be built is named with its reason and what
    to do; the exit code is 0 all the same, "unsupported" of --json is then not empty.
    """
    out = Output(json_only=json_only, quiet=quiet)
    facts, show = _read(file, _Asked(tuple(target or ()), shape, weights, plugin or []))
    out.document(facts)
    show(out, facts)


@dataclass(frozen=True)
class _Asked:
    """What the flags say about a model."""

    targets: tuple[str, ...]
    shape: list[str] | None
    weights: Path | None
    plugins: list[Path]

    def flags(self) -> str:
        """Return the flags that a build of the model needs too."""
        shapes = "".join(f" --shape {shlex.quote(text)}" for text in self.shape or ())
        return shapes + flags.weights_flag(self.weights) + flags.plugin_flags(self.plugins)


def _read(file: Path, asked: _Asked) -> tuple[dict[str, Any], Callable[[Output, dict[str, Any]], None]]:
    """Return the facts about ``file`` and the function that prints them."""
    if file.is_dir() and not (file / "saved_model.pb").is_file():
        from xnncc.pack import read_manifest

        return {"directory": str(file), **read_manifest(file)}, _show_artefact
    if file.suffix == ".xnn":
        from xnncc.cli.package_facts import package_facts

        return package_facts(file), _show_package
    return _read_model(file, asked)


def _read_model(file: Path, asked: _Asked) -> tuple[dict[str, Any], Callable[[Output, dict[str, Any]], None]]:
    from xnncc.cli.onnx_facts import onnx_facts
    from xnncc.cli.support_facts import model_facts, support_facts
    from xnncc.frontends import LOADERS
    from xnncc.frontends.custom_ops import load_plugins
    from xnncc.frontends.survey import survey_model
    from xnncc.ir.variants import variant_shapes

    is_onnx = file.suffix not in LOADERS or file.suffix == ".onnx"
    facts = onnx_facts(file) if is_onnx and not file.is_dir() else {}  # says it of a file that is none
    load_plugins(asked.plugins)
    survey = survey_model(file, variant_shapes(flags.parse_shapes(asked.shape))[0], asked.weights)
    if survey is None:
        from xnncc.cli.imported_facts import imported_facts

        return imported_facts(file), _show_imported
    facts = {**(facts or model_facts(file, survey)), "support": support_facts(survey, asked.targets)}
    facts["build_command"] = _build_command(facts, asked.flags())
    return facts, _show_onnx if is_onnx else _show_model


def _tensor_rows(facts: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    return [
        (side, entry["name"], "any" if entry["shape"] is None else shape(entry["shape"]), entry["dtype"])
        for side, key in (("input", "inputs"), ("output", "outputs"))
        for entry in facts[key]
    ]


def _show_imported(out: Output, facts: dict[str, Any]) -> None:
    out.result(f"{facts['file']}, as imported")
    out.result()
    out.table(("", "name", "shape", "dtype"), _tensor_rows(facts))
    out.result()
    out.table(("operator", ">number"), list(facts["operators"].items()))
    out.result()
    out.result(f"constants {size(facts['constant_bytes'])}; MACs {count(facts['macs'])}; judged by {facts['runtime']}")
    if "compressed" in facts:
        out.result(_compressed_line(facts["compressed"]))
    for warning in facts["warnings"]:
        out.warn(warning)
    out.next(f"xnncc build {shlex.quote(facts['file'])} --target host")


def _compressed_line(facts: dict[str, Any]) -> str:
    """Return how an ``.xq`` file came about, in words."""
    loss = "loss not measured" if facts["loss"] is None else f"loss {facts['loss']:.3g} ({facts['metric']})"
    return (
        f"{size(facts['bytes'])}, compressed from {facts['source']} with recipe {facts['recipe']}: {loss}; "
        f"{facts['coded_constants']} of {facts['constants']} constants are coded"
    )


def _show_onnx(out: Output, facts: dict[str, Any]) -> None:
    opset = ", ".join(f"{domain} {version}" for domain, version in sorted(facts["opset"].items()))
    out.result(f"{facts['file']}: ONNX, opset {opset}" + (f", from {facts['producer']}" if facts["producer"] else ""))
    out.result()
    out.table(("", "name", "shape", "dtype"), _tensor_rows(facts))
    out.result()
    _show_operators(out, facts["support"])
    out.result()
    if facts["biggest"]:
        out.table(
            ("biggest weights", "shape", "dtype", ">size"),
            [(t["name"], shape(t["shape"]), t["dtype"], size(t["bytes"])) for t in facts["biggest"]],
        )
        out.result()
    weights = facts["weights"]
    macs = "unknown (free dimensions)" if facts["macs"] is None else count(facts["macs"])
    out.result(
        f"nodes {facts['nodes']}; weight tensors {weights['tensors']}, {count(weights['elements'])} elements, "
        f"{size(weights['bytes'])}; MACs {macs}"
    )
    _show_support(out, facts)


def _show_model(out: Output, facts: dict[str, Any]) -> None:
    out.result(f"{facts['file']}: {facts['format']}")
    out.result()
    out.table(("", "name", "shape", "dtype"), _tensor_rows(facts))
    out.result()
    _show_operators(out, facts["support"])
    out.result()
    macs = "unknown" if facts["macs"] is None else count(facts["macs"])
    out.result(f"nodes {facts['nodes']}; weights {size(facts['weights']['bytes'])}; MACs {macs}")
    _show_support(out, facts)


def _show_operators(out: Output, support: dict[str, Any]) -> None:
    rows = []
    for row in support["operators"]:
        bad, nodes = row["unsupported"], row["nodes"]
        verdict = "no" if bad == nodes else f"not {bad} of {nodes}" if bad else row["plugin"] or "yes"
        macs = "-" if row["macs"] is None else count(row["macs"])
        rows.append((row["kind"], nodes, macs, size(row["weight_bytes"]), verdict))
    out.table(("operator", ">nodes", ">MACs", ">weights", "supported"), rows)


def _show_support(out: Output, facts: dict[str, Any]) -> None:
    """Print what cannot be built and why, the verdict for each target, and the next command."""
    support = facts["support"]
    if support["unsupported"]:
        out.result()
        for node in support["unsupported"]:
            kind = f" ({node['kind']})" if node["kind"] else ""
            out.result(f"'{node['name']}'{kind}: {node['why']}. {node['next']}".rstrip(". ") + ".")
    if support["note"]:
        out.result()
        out.result(f"attributes and shapes of the nodes were not looked at: {support['note']}")
    out.result()
    rows = [
        (t["name"], t["problem"] or "yes", *([t["tools"] or t["missing"]] if "tools" in t else []), t["proof"])
        for t in support["targets"]
    ]
    columns = ("target", "supported", *(["tools here"] if "tools" in support["targets"][0] else []), "target is")
    out.table(columns, rows)
    if not support["unsupported"]:
        out.next(facts["build_command"])


def _build_command(facts: dict[str, Any], flags_: str) -> str:
    """Return the build command for this model, with a ``--shape`` for each input that has free dimensions."""
    for entry in facts["inputs"]:
        dims = entry["shape"]
        if f" --shape {entry['name']}=" in flags_:
            continue
        if dims is None or any(isinstance(dim, str) for dim in dims):
            wanted = ",".join(str(d) if isinstance(d, int) else f"<{d}>" for d in dims or ["dims"])
            flags_ += f" --shape {shlex.quote(f'''{entry['name']}={wanted}''')}"
    asked = facts["support"]["targets"]
    target = asked[0]["name"] if len(asked) == 1 else "host"
    return f"xnncc build {shlex.quote(facts['file'])} --target {target}{flags_}"


def _show_artefact(out: Output, facts: dict[str, Any]) -> None:
    out.result(f"{facts['directory']}: '{facts['name']}' for {facts['target']}, build {facts['build_id']}")
    out.result()
    out.table(("", "name", "shape", "dtype"), _tensor_rows(facts))
    out.result()
    _show_variants(out, facts)
    out.table(
        ("file", ">size", "what", "sha256"),
        [(f["path"], size(f["bytes"]), f["role"], f["sha256"]) for f in facts["files"]],
    )
    out.result()
    if facts.get("coded"):
        rows = [
            (c["name"], shape(c["shape"]), c["coder"], size(c["bytes"]), c["bits_per_weight"]) for c in facts["coded"]
        ]
        out.table(("coded weight", "shape", "coder", ">size", ">bits a weight"), rows)
        out.result()
    source = facts["source"]
    out.result(f"source {source['file']}, sha256 {source['sha256']}")
    out.result("tools  " + ", ".join(f"{tool} {version}" for tool, version in sorted(facts["tools"].items())))
    out.result(_memory(facts))
    out.next(f"xnncc bench {shlex.quote(facts['directory'])}")


def _show_package(out: Output, facts: dict[str, Any]) -> None:
    out.result(f"{facts['file']}: '{facts['name']}' for {facts['target']}, build {facts['build_id']}")
    out.result()
    out.table(("", "name", "shape", "dtype"), _tensor_rows(facts))
    out.result()
    _show_variants(out, facts)
    for section in facts["sections"]:
        out.result(f"section {section['kind']}, encoding {section['encoding']}, {size(section['bytes'])}")
    out.result(f"sha256 {facts['sha256']}; every checksum fits")
    out.result(f"{size(facts['bytes'])} in all; {_memory(facts)}")
    out.next(f"xnncc inspect {shlex.quote(str(Path(facts['file']).parent))}")


def _show_variants(out: Output, facts: dict[str, Any]) -> None:
    """Print the further shapes that the artefact takes."""
    if not facts.get("variants"):
        return
    rows = [
        (i, ", ".join(f"{t['name']} {shape(t['shape'])}" for t in variant["inputs"]), variant["op_count"],
         size(variant["arena_bytes"]))
        for i, variant in enumerate([facts, *facts["variants"]])
    ]  # fmt: skip
    out.table((">variant", "inputs", ">operators", ">arena"), rows)
    out.result()


def _memory(facts: dict[str, Any]) -> str:
    """Return what a network needs at run time, in words."""
    arena = max(variant["arena_bytes"] for variant in (facts, *facts.get("variants", ())))
    coded = f" from {size(facts['coded_bytes'])} coded" if "coded_bytes" in facts else ""
    return (
        f"{facts['op_count']} operators; weights {size(facts['weights_bytes'])}{coded}; arena {size(arena)} "
        f"+ {size(facts['thread_scratch_bytes'])} a thread"
    )
