"""xnncc inspect: what is inside a model file, a package, or a folder that build made."""

from __future__ import annotations

import shlex
from collections.abc import Callable
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
    json_only: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """Show what is inside a model, package or artefact.

    Graph, shapes, bytes, hashes, target.
    """
    out = Output(json_only=json_only, quiet=quiet)
    facts, show = _read(file)
    out.document(facts)
    show(out, facts)


def _read(file: Path) -> tuple[dict[str, Any], Callable[[Output, dict[str, Any]], None]]:
    """Return the facts about ``file`` and the function that prints them."""
    if file.is_dir() and not (file / "saved_model.pb").is_file():
        from xnncc.pack import read_manifest

        return {"directory": str(file), **read_manifest(file)}, _show_artefact
    if file.suffix == ".xnn":
        from xnncc.cli.package_facts import package_facts

        return package_facts(file), _show_package
    from xnncc.frontends import LOADERS

    if file.is_dir() or (file.suffix != ".onnx" and file.suffix in LOADERS):
        from xnncc.cli.imported_facts import imported_facts

        return imported_facts(file), _show_imported
    from xnncc.cli.onnx_facts import onnx_facts

    return onnx_facts(file), _show_onnx


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
    for warning in facts["warnings"]:
        out.warn(warning)
    out.next(f"xnncc build {shlex.quote(facts['file'])} --target host")


def _show_onnx(out: Output, facts: dict[str, Any]) -> None:
    opset = ", ".join(f"{domain} {version}" for domain, version in sorted(facts["opset"].items()))
    out.result(f"{facts['file']}: ONNX, opset {opset}" + (f", from {facts['producer']}" if facts["producer"] else ""))
    out.result()
    out.table(("", "name", "shape", "dtype"), _tensor_rows(facts))
    out.result()
    out.table(("operator", ">nodes"), list(facts["operators"].items()))
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
    out.next(_build_command(facts))


def _build_command(facts: dict[str, Any]) -> str:
    """Return the build command for this model, with a ``--shape`` for each input that has free dimensions."""
    flags_ = ""
    for entry in facts["inputs"]:
        dims = entry["shape"]
        if dims is None or any(isinstance(dim, str) for dim in dims):
            wanted = ",".join(str(d) if isinstance(d, int) else f"<{d}>" for d in dims or ["dims"])
            flags_ += f" --shape {shlex.quote(f'''{entry['name']}={wanted}''')}"
    return f"xnncc build {shlex.quote(facts['file'])} --target host{flags_}"


def _show_artefact(out: Output, facts: dict[str, Any]) -> None:
    out.result(f"{facts['directory']}: '{facts['name']}' for {facts['target']}, build {facts['build_id']}")
    out.result()
    out.table(("", "name", "shape", "dtype"), _tensor_rows(facts))
    out.result()
    out.table(
        ("file", ">size", "what", "sha256"),
        [(f["path"], size(f["bytes"]), f["role"], f["sha256"]) for f in facts["files"]],
    )
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
    for section in facts["sections"]:
        out.result(f"section {section['kind']}, encoding {section['encoding']}, {size(section['bytes'])}")
    out.result(f"sha256 {facts['sha256']}; every checksum fits")
    out.result(f"{size(facts['bytes'])} in all; {_memory(facts)}")
    out.next(f"xnncc inspect {shlex.quote(str(Path(facts['file']).parent))}")


def _memory(facts: dict[str, Any]) -> str:
    """Return what a network needs at run time, in words."""
    return (
        f"{facts['op_count']} operators; weights {size(facts['weights_bytes'])}; arena {size(facts['arena_bytes'])} "
        f"+ {size(facts['thread_scratch_bytes'])} a thread"
    )
