"""Tensors from the user's files, and plausible ones for an artefact whose model is not at hand."""

from __future__ import annotations

import zipfile
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xnncc.errors import BadInput, BadPackage
from xnncc.ir.plan import TensorInfo

if TYPE_CHECKING:
    import numpy as np

    Arrays = dict[str, np.ndarray]


def tensor_infos(entries: Iterable[Mapping[str, Any]]) -> tuple[TensorInfo, ...]:
    """Return the inputs or outputs of a manifest as ``TensorInfo``."""
    return tuple(TensorInfo(e["name"], tuple(e["shape"]), e["dtype"]) for e in entries)


def fixed_entries(fixed: Mapping[str, np.ndarray]) -> list[dict[str, Any]]:
    """Return inputs that became constants as a manifest keeps them: name, shape, dtype and bytes in base64."""
    return [
        {"name": name, "shape": list(a.shape), "dtype": str(a.dtype), "base64": b64encode(a.tobytes()).decode("ascii")}
        for name, a in sorted(fixed.items())
    ]


def fixed_arrays(manifest: Mapping[str, Any]) -> Arrays:
    """Return the inputs of a manifest that became constants.

    Raises: BadPackage.
    """
    import numpy as np

    arrays: Arrays = {}
    for entry in manifest.get("fixed", ()):
        try:
            raw = np.frombuffer(b64decode(entry["base64"], validate=True), np.dtype(entry["dtype"]))
            arrays[str(entry["name"])] = raw.reshape([int(dim) for dim in entry["shape"]])
        except (KeyError, TypeError, ValueError) as error:
            raise BadPackage("manifest.json", f"its fixed inputs are damaged ({error})", "Build it again.") from error
    return arrays


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
    loaded = _load(path, ".npz file", "numpy.savez(path, NAME=array)")
    if not hasattr(loaded, "files"):
        raise BadInput(f"'{path}'", "it holds one array without a name", "Save it with numpy.savez(path, NAME=array).")
    with loaded:
        try:
            return {name: loaded[name] for name in loaded.files}
        except _UNREADABLE as error:
            raise BadInput(f"'{path}'", f"it is damaged ({error})", "Write it again.") from error


def read_npy(path: Path) -> np.ndarray:
    """Return the array of an ``.npy`` file.

    Raises: BadInput.
    """
    loaded = _load(path, ".npy file", "numpy.save(path, array)")
    if hasattr(loaded, "files"):
        loaded.close()
        raise BadInput(f"'{path}'", "it is an .npz archive", "Give the .npy file of one array.")
    return loaded


_UNREADABLE = (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error)


def _load(path: Path, what: str, how: str) -> Any:
    """Return what numpy makes of the file; pickles are refused."""
    import numpy as np

    if not path.is_file():
        raise BadInput(f"'{path}'", "there is no such file", f"Make one with {how}.")
    try:
        return np.load(path, allow_pickle=False)
    except _UNREADABLE as error:
        raise BadInput(f"'{path}'", f"it is no {what} ({error})", f"Make one with {how}.") from error
