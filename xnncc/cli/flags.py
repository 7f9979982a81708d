"""Flags that several commands share, each defined once, and the parsers of flag values."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from xnncc.errors import BadInput, ShapeError

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
        help="Where to run: host, emulator (qemu-user; Node for wasm), browser (wasm) or adb:SERIAL. "
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
        help="Size of an input with free dimensions, in elements: data=1,3,224,224. Repeatable. Default: the model's.",
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
Threads = Annotated[int, typer.Option(metavar="N", min=0, help="Threads that compute; 0 = every core of the device.")]


def weights_flag(weights: Path | None) -> str:
    """Return `` --weights FILE`` for the next command that a message names, or nothing."""
    return f" --weights {shlex.quote(str(weights))}" if weights else ""


def parse_shapes(flags: list[str] | None) -> dict[str, tuple[int, ...]]:
    """Return ``{name: dims}`` of the ``--shape NAME=1,3,224,224`` flags. Dims are positive.

    Raises: ShapeError.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for flag in flags or ():
        name, equals, dims = flag.rpartition("=")  # names may contain "=", dims may not
        if not equals or not name:
            dims = dims if not equals else flag.lstrip("=")
            raise ShapeError(
                f"--shape '{flag}'", "there is no input name before '='", f"Write --shape NAME={dims or '1,3,224,224'}"
            )
        try:
            parsed = tuple(int(d) for d in dims.split(",")) if dims.strip() else ()
        except ValueError:
            raise ShapeError(
                f"--shape '{flag}'",
                f"'{dims}' is no list of whole numbers with commas",
                f"Write it like --shape {name}=1,3,224,224",
            ) from None
        if any(d < 1 for d in parsed):
            bad = next(d for d in parsed if d < 1)
            raise ShapeError(
                f"--shape '{flag}'", f"dimension {bad} is not positive", "Every dimension must be 1 or more."
            )
        if name in shapes:
            raise ShapeError(f"--shape '{flag}'", f"input '{name}' already has a shape", "Give one --shape an input.")
        shapes[name] = parsed
    return shapes


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
