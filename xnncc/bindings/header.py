"""``<stem>.h`` and ``xnnrt.h``: what a C or C++ user includes."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from xnncc.ir.names import c_identifier, graph_symbol
from xnncc.ir.plan import TensorInfo

Signature = tuple[Sequence[TensorInfo], Sequence[TensorInfo]]  # inputs and outputs

RUNTIME_HEADER = Path(__file__).resolve().parent.parent / "runtime" / "include" / "xnnrt.h"


def write_header(
    out: Path,
    stem: str,
    inputs: Sequence[TensorInfo],
    outputs: Sequence[TensorInfo],
    others: Sequence[Signature] = (),
) -> list[Path]:
    """Write the model's header, and the runtime's beside it, into the artefact's folder; return both.

    ``others`` are the inputs and outputs of the variants after the first.
    """
    guard = f"XNN_{c_identifier(stem).upper()}_H"
    macro = c_identifier(stem).upper()
    lines = [
        f"/* {stem}: made by xnncc. xnnrt.h is the manual; a whole use stands at its top.",
        " *",
        *(f" * input {i}:  {_line(t)}" for i, t in enumerate(inputs)),
        *(f" * output {i}: {_line(t)}" for i, t in enumerate(outputs)),
        *_variant_lines(others),
        " */",
        f"#ifndef {guard}",
        f"#define {guard}",
        '#include "xnnrt.h"',
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        f"#define {macro}_INPUTS {len(inputs)}",
        f"#define {macro}_OUTPUTS {len(outputs)}",
        "",
        "/* The network, for xnnrt_open_file and xnnrt_open_memory. */",
        f"int32_t {graph_symbol(stem)}(const void *weights, void *arena, const int64_t *io, int32_t first,",
        "                              int32_t last);",
        "",
        "#ifdef __cplusplus",
        "}",
        "#endif",
        "#endif",
        "",
    ]
    header = out / f"{stem}.h"
    header.write_text("\n".join(lines), encoding="utf-8")
    return [header, Path(shutil.copyfile(RUNTIME_HEADER, out / RUNTIME_HEADER.name))]


def _variant_lines(others: Sequence[Signature]) -> list[str]:
    if not others:
        return []
    lines = [" *", " * These are the shapes of variant 0, with which it opens. xnnrt_set_shapes chooses another:"]
    for index, (inputs, outputs) in enumerate(others, 1):
        lines.append(f" * variant {index}: {', '.join(map(_line, inputs))} -> {', '.join(map(_line, outputs))}")
    return lines


def _line(info: TensorInfo) -> str:
    name = info.name.replace("*/", "* /").replace("\n", " ")
    return f"{name} {info.dtype}[{', '.join(map(str, info.shape))}], {info.size_bytes} bytes"
