"""Writes the bindings from their templates."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from xnncc.bindings.header import Signature
from xnncc.bindings.names import Argument, arguments, class_name
from xnncc.errors import OutputError, nearest
from xnncc.ir.names import c_identifier, graph_symbol
from xnncc.ir.plan import TensorInfo

# binding -> (template, path of the file it becomes; {stem}, {ident} and {cls} are filled in)
_FILES = {
    "kotlin": [
        ("kotlin_class.kt", "kotlin/{cls}.kt"),
        ("kotlin_jni.c", "kotlin/{ident}_jni.c"),
        ("kotlin_cmake.txt", "kotlin/CMakeLists.txt"),
    ],
    "swift": [
        ("swift_package.swift", "swift/Package.swift"),
        ("swift_class.swift", "swift/Sources/{cls}/{cls}.swift"),
        ("swift_module_map.txt", "swift/Sources/C{cls}/module.modulemap"),
        ("swift_shim.h", "swift/Sources/C{cls}/shim.h"),
    ],
    "js": [("module.mjs", "{stem}.mjs")],
}
BINDINGS = tuple(_FILES)


def write_bindings(
    kind: str,
    out: Path,
    stem: str,
    inputs: Sequence[TensorInfo],
    outputs: Sequence[TensorInfo],
    others: Sequence[Signature] = (),
) -> list[Path]:
    """Write the binding ``kind`` ("kotlin", "swift" or "js") into the artefact's folder; return the files.

    ``others`` are the inputs and outputs of the variants after the first.

    Raises: OutputError for an unknown kind.
    """
    if kind not in _FILES:
        known = list(BINDINGS)
        raise OutputError(f"unknown binding '{kind}'{nearest(kind, known)}", "", "Known: " + ", ".join(known) + ".")
    return [_write(name, path, out, stem, [(inputs, outputs), *others]) for name, path in _FILES[kind]]


def write_demo_page(
    out: Path,
    stem: str,
    inputs: Sequence[TensorInfo],
    outputs: Sequence[TensorInfo],
    others: Sequence[Signature] = (),
) -> list[Path]:
    """Write ``index.html``, a page that classifies photos with ``<stem>.mjs``; none for what is no classifier.

    A classifier has one input, an image: float32, [1, C, H, W] or [1, H, W, C] with C 1 or 3; and one output, scores:
    [1, K] or [1, K, 1, 1] with K of 2 or more. Of several variants the page uses the first.
    """
    if len(inputs) != 1 or inputs[0].dtype != "float32" or image_layout(inputs[0].shape) is None:
        return []
    if len(outputs) != 1 or not _are_scores(outputs[0].shape):
        return []
    return [_write("page.html", "index.html", out, stem, [(inputs, outputs), *others])]


def _are_scores(shape: Sequence[int]) -> bool:
    return len(shape) in (2, 4) and shape[1] > 1 and all(n == 1 for i, n in enumerate(shape) if i != 1)


def image_layout(shape: Sequence[int]) -> str | None:
    """Return "NCHW", "NHWC", or None for the shape of something else."""
    if len(shape) != 4 or shape[0] != 1:
        return None
    return "NCHW" if shape[1] in (1, 3) else "NHWC" if shape[3] in (1, 3) else None


def _write(template: str, path: str, out: Path, stem: str, variants: Sequence[Signature]) -> Path:
    inputs, outputs = variants[0]
    names = {"stem": stem, "ident": c_identifier(stem), "cls": class_name(stem)}
    layout = image_layout(inputs[0].shape) if inputs else None
    image = dict(zip(layout, inputs[0].shape, strict=True)) if layout else {}
    values: dict[str, Any] = {
        **names, "graph": graph_symbol(stem), "layout": layout, "image": image, "inputs": arguments(inputs),
        "outputs": arguments(outputs), "variants": [(arguments(ins), arguments(outs)) for ins, outs in variants],
        "most": {"inputs": _most([ins for ins, _ in variants]), "outputs": _most([outs for _, outs in variants])},
    }  # fmt: skip
    file = out / path.format(**names)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(_environment().get_template(template).render(values), encoding="utf-8")
    return file


def _most(sides: Sequence[Sequence[TensorInfo]]) -> list[Argument]:
    """Return each tensor of one side in the variant where it is largest."""
    return [max(column, key=lambda t: t.size_bytes) for column in zip(*map(arguments, sides), strict=True)]


def _environment() -> Any:
    """Return jinja2 with delimiters that C, Kotlin, Swift, CSS and JavaScript have no use for."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).resolve().parent / "templates"),
        block_start_string="<%", block_end_string="%>", variable_start_string="<<", variable_end_string=">>",
        comment_start_string="<#", comment_end_string="#>", trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True, undefined=jinja2.StrictUndefined, autoescape=False,
    )  # fmt: skip
    environment.filters["quoted"] = lambda text: json.dumps(text, ensure_ascii=False)
    return environment
