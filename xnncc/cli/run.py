"""xnncc run: one inference on tensors from files."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from xnncc.cli import flags
from xnncc.cli.output import Output
from xnncc.report.words import shape


def run(
    directory: flags.Artefact,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="OUT.npz", help="Where the outputs go, by name.")],
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            metavar="NAME=x.npy",
            help="An input's array. Repeatable, one for each input.",
            show_default=False,
        ),
    ] = None,
    device: flags.Device = None,
    threads: flags.Threads = 1,
    json_only: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """Run an artefact once, on arrays from files."""
    from xnncc.device import open_device
    from xnncc.device.artefact import inputs_by_name, variant_for
    from xnncc.inputs import read_npy, tensor_infos
    from xnncc.pack import read_manifest

    out = Output(json_only=json_only, quiet=quiet)
    manifest = read_manifest(directory)
    arrays = {name: read_npy(path) for name, path in flags.parse_assignments(given).items()}
    feeds = inputs_by_name(manifest, arrays)
    with out.progress(f"running {directory}"):
        results = open_device(device, manifest).run(directory, feeds, threads)
    infos = tensor_infos(variant_for(manifest, feeds)["outputs"])
    _write(output, {info.name: array for info, array in zip(infos, results, strict=True)})
    out.table(("output", "shape", "dtype"), [(i.name, shape(i.shape), i.dtype) for i in infos])
    out.document(
        {"output": str(output), "outputs": [{"name": i.name, "shape": i.shape, "dtype": i.dtype} for i in infos]}
    )
    out.next(f'python3 -c "import numpy; print(dict(numpy.load({str(output)!r})))"')


def _write(path: Path, arrays: dict) -> None:
    """Write ``arrays`` as ``.npz`` aside, then rename: a full disk or Ctrl-C leaves no half file."""
    import zipfile

    import numpy as np

    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        # numpy.savez takes names as keyword arguments, which a tensor called "file" would break
        with zipfile.ZipFile(aside, "w") as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                    np.lib.format.write_array(entry, np.asarray(array, order="C"), allow_pickle=False)
        aside.replace(path)
    except FileNotFoundError as error:
        from xnncc.errors import OutputError

        raise OutputError(
            f"'{path}'", "its folder does not exist", f"mkdir -p {shlex.quote(str(path.parent))}"
        ) from error
    finally:
        aside.unlink(missing_ok=True)
