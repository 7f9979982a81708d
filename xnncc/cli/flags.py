"""Flags that several commands share, each defined once, and the parsers of flag values."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from xnncc.errors import BadInput, ShapeError

if TYPE_CHECKING:
    import numpy as np

Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="The model file (.onnx, .prototxt, .tflite).", show_default=False)
]
Artefact = Annotated[Path, typer.Argument(metavar="DIR", help="A folder that `xnncc build` made.", show_default=False)]
Target = Annotated[
    str,
    typer.Option("--target", "-t", metavar="TARGET", help="What to build for; `xnncc targets` lists them."),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on stdout, nothing else there. Default: off.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No talk: only result, warnings, errors. Default: off.")]
Device = Annotated[
    str | None,
    typer.Option(
        metavar="DEVICE",
        help="Where to run: host, emulator (qemu-user; Node for wasm), browser (wasm), adb:SERIAL, tcp:HOST:PORT "
        "or rack:KEY. "
        "Default: the target's own.",
        show_default=False,
    ),
]
Samples = Annotated[
    Path | None,
    typer.Option(
        metavar="S.npz",
        help="One array for each input, by the input's name. Default: random numbers, fixed seed.",
        show_default=False,
    ),
]
Weights = Annotated[
    Path | None,
    typer.Option(
        "--weights",
        metavar="FILE",
        help="Weights of a Caffe network. Default: the .caffemodel beside MODEL, of the same stem.",
        show_default=False,
    ),
]
Shapes = Annotated[
    list[str] | None,
    typer.Option(
        "--shape",
        metavar="NAME=DIMS",
        help="Size of an input with free dimensions, in elements: data=1,3,224,224. Several sizes in one artefact, "
        "chosen by the input when it runs: x=1,3,48,160|320. Repeatable. Default: the model's.",
        show_default=False,
    ),
]
ChosenShapes = Annotated[
    list[str] | None,
    typer.Option(
        "--shape",
        metavar="NAME=DIMS",
        help="Of an artefact built for several shapes, the one to take: x=1,3,48,320. Repeatable. Default: the first.",
        show_default=False,
    ),
]
States = Annotated[
    list[str] | None,
    typer.Option(
        "--state",
        metavar="IN:OUT",
        help="Output OUT is input IN of the next run: kept inside, zero at first. Repeatable. Default: none.",
        show_default=False,
    ),
]
Fixed = Annotated[
    list[str] | None,
    typer.Option(
        "--fix",
        metavar="NAME=VALUES",
        help="Value of an ONNX input that decides a size, then no input any more: shape=1,-1 or shape=FILE.npy. "
        "Repeatable. Default: none.",
        show_default=False,
    ),
]
NmsRows = Annotated[
    int | None,
    typer.Option(
        "--nms-rows",
        metavar="N",
        min=1,
        help="Rows of an ONNX NonMaxSuppression, -1 in those behind its boxes: 100. Default: refused.",
        show_default=False,
    ),
]
Plugins = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        metavar="FILE.py",
        help="Python file with operators of your own (docs/plugins.md). It is executed: give only files that "
        "you trust. Repeatable. Default: none.",
        show_default=False,
    ),
]
Threads = Annotated[int, typer.Option(metavar="N", min=0, help="Threads that compute; 0 = every core of the device.")]


def weights_flag(weights: Path | None) -> str:
    """Return `` --weights FILE`` for the next command that a message names, or nothing."""
    return f" --weights {shlex.quote(str(weights))}" if weights else ""


def plugin_flags(plugins: list[Path] | None) -> str:
    """Return `` --plugin FILE`` of each, for the next command that a message names."""
    return "".join(f" --plugin {shlex.quote(str(path))}" for path in plugins or ())


def parse_shapes(flags: list[str] | None) -> dict[str, tuple[int, ...] | list[tuple[int, ...]]]:
    """Return ``{name: dims}`` of the ``--shape NAME=1,3,224,224`` flags. Dims are positive.

    ``1,3,48,160|320`` is a list of two shapes; where several dims have alternatives, those of one place go together.

    Raises: ShapeError.
    """
    shapes: dict[str, tuple[int, ...] | list[tuple[int, ...]]] = {}
    for flag in flags or ():
        name, equals, dims = flag.rpartition("=")  # names may contain "=", dims may not
        if not equals or not name:
            dims = dims if not equals else flag.lstrip("=")
            raise ShapeError(
                f"--shape '{flag}'", "there is no input name before '='", f"Write --shape NAME={dims or '1,3,224,224'}"
            )
        try:
            parsed = [[int(d) for d in place.split("|")] for place in dims.split(",")] if dims.strip() else []
        except ValueError:
            raise ShapeError(
                f"--shape '{flag}'",
                f"'{dims}' is no list of whole numbers with commas",
                f"Write it like --shape {name}=1,3,224,224",
            ) from None
        bad = next((d for place in parsed for d in place if d < 1), None)
        if bad is not None:
            raise ShapeError(
                f"--shape '{flag}'", f"dimension {bad} is not positive", "Every dimension must be 1 or more."
            )
        if name in shapes:
            raise ShapeError(f"--shape '{flag}'", f"input '{name}' already has a shape", "Give one --shape an input.")
        counts = {len(place) for place in parsed if len(place) > 1}
        if len(counts) > 1:
            few, many = min(counts), max(counts)
            why = f"one dimension has {few} alternatives and another {many}; those of one place go together"
            raise ShapeError(f"--shape '{flag}'", why, "Give every dimension one number, or the same count of them.")
        choices = [tuple(place[i % len(place)] for place in parsed) for i in range(max(counts, default=1))]
        shapes[name] = choices[0] if len(choices) == 1 else choices
    return shapes


def parse_fixed(flags: list[str] | None) -> dict[str, np.ndarray]:
    """Return ``{name: array}`` of the ``--fix NAME=1,2,3`` and ``--fix NAME=FILE.npy`` flags; lists are flat.

    Raises: BadInput.
    """
    import numpy as np

    from xnncc.inputs import read_npy

    fixed: dict[str, np.ndarray] = {}
    for flag in flags or ():
        name, _, text = flag.rpartition("=")  # names may contain "=", values do not
        if not name or not text:
            raise BadInput(f"--fix '{flag}'", "expected NAME=VALUES", "Write it like --fix shape=1,-1")
        if name in fixed:
            raise BadInput(f"--fix '{flag}'", f"input '{name}' is already fixed", "Give one --fix an input.")
        fixed[name] = read_npy(Path(text)) if text.endswith(".npy") else np.array(_numbers(flag, name, text))
    return fixed


def _numbers(flag: str, name: str, text: str) -> list[bool] | list[int] | list[float]:
    words = text.split(",")
    if set(words) <= {"true", "false"}:
        return [word == "true" for word in words]
    for kind in (int, float):
        try:
            return [kind(word) for word in words]  # type: ignore[return-value]
        except ValueError:
            continue
    why = f"'{text}' is no list of numbers with commas, and no .npy file"
    raise BadInput(f"--fix '{flag}'", why, f"Write it like --fix {name}=1,-1")


def parse_single_shapes(flags: list[str] | None) -> dict[str, tuple[int, ...]]:
    """Return ``{name: dims}`` for commands that work on one choice of shapes.

    Raises: ShapeError, also for alternatives.
    """
    single: dict[str, tuple[int, ...]] = {}
    for name, dims in parse_shapes(flags).items():
        if isinstance(dims, list):
            why = f"it gives {len(dims)} shapes and this command takes one"
            raise ShapeError(f"--shape for '{name}'", why, "Give each dimension one number.")
        single[name] = dims
    return single


def parse_assignments(flags: list[str] | None) -> dict[str, Path]:
    """Return ``{name: file}`` of the ``-i NAME=x.npy`` flags.

    Raises: BadInput.
    """
    files: dict[str, Path] = {}
    for flag in flags or ():
        name, equals, path = flag.partition("=")
        if not equals or not name or not path:
            raise BadInput(f"--input '{flag}'", "expected NAME=FILE.npy", "Write it like --input data=photo.npy")
        if name in files:
            raise BadInput(f"--input '{flag}'", f"input '{name}' is already given", "Give one --input an input.")
        files[name] = Path(path)
    return files
