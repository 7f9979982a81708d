"""Tensors from the user's files, and plausible ones for an artefact whose model is not at hand."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xnncc.errors import BadInput
from xnncc.ir.plan import TensorInfo

if TYPE_CHECKING:
    import numpy as np

    Arrays = dict[str, np.ndarray]


def tensor_infos(entries: Iterable[Mapping[str, Any]]) -> tuple[TensorInfo, ...]:
    """Return the inputs or outputs of a manifest as ``TensorInfo``."""
    return tuple(TensorInfo(e["name"], tuple(e["shape"]), e["dtype"]) for e in entries)


def random_inputs(infos: Iterable[TensorInfo], seed: int = 0) -> Arrays:
    """Return one array for each tensor; same seed, same numbers.

    Floats are standard normal (what networks with normalised input expect), wide integers are 0 or 1 (valid as mask and
    as index of any table), bytes take their whole range. Where the model is at hand, ``frontends.sample_inputs`` knows
    better: it looks where the integers go.
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    arrays: Arrays = {}
    for info in infos:
        kind = np.dtype(info.dtype)
        if kind.kind == "f":
            arrays[info.name] = rng.standard_normal(info.shape).astype(kind)
        elif kind.kind in "iu" and kind.itemsize == 1:
            limits = np.iinfo(kind)
            arrays[info.name] = rng.integers(limits.min, limits.max + 1, info.shape).astype(kind)
        else:
            arrays[info.name] = rng.integers(0, 2, info.shape).astype(kind)
    return arrays


def read_npz(path: Path) -> Arrays:
    """Return the arrays of an ``.npz`` file by name.

    Raises: BadInput.
    """
    import numpy as np

    if not path.is_file():
        raise BadInput(f"'{path}'", "there is no such file", "Make one with numpy.savez(path, NAME=array).")
    try:
        with np.load(path, allow_pickle=False) as archive:
            if not hasattr(archive, "files"):
                raise BadInput(
                    f"'{path}'", "it holds one array without a name", "Save it with numpy.savez(path, NAME=a)."
                )
            return {name: archive[name] for name in archive.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise BadInput(f"'{path}'", f"it is no .npz file ({error})", "Make one with numpy.savez.") from error


def read_npy(path: Path) -> np.ndarray:
    """Return the array of an ``.npy`` file.

    Raises: BadInput.
    """
    import numpy as np

    if not path.is_file():
        raise BadInput(f"'{path}'", "there is no such file", "Make one with numpy.save(path, array).")
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise BadInput(f"'{path}'", f"it is no .npy file ({error})", "Make one with numpy.save.") from error
    if not isinstance(array, np.ndarray):
        array.close()
        raise BadInput(f"'{path}'", "it is an .npz archive", "Give the .npy file of one array.")
    return array
