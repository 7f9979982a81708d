"""The user's samples, kept apart: what trains, what chooses and what judges never share a sample.

    --calib    statistics and one-shot methods; labels are not looked at
    --train    gradients; a tenth of it chooses. Without --calib also the statistics
    --eval     judges. Half of it chooses when a search needs that and no --train gives it

With --calib or --train alone a part of that chooses and another judges. A sample that is in two files is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np

from ..errors import BadInput, nearest
from .result import Samples

if TYPE_CHECKING:
    from ..ir.plan import TensorInfo

LABELS = "labels"  # the name of the labels in a file, unless an input is called so
MOST_TO_SELECT = 5000  # samples; more would cost time and choose no better
Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Splits:
    """``test`` is looked at once, when everything is chosen."""

    calib: Samples | None = None
    train: Samples | None = None
    select: Samples | None = None
    test: Samples | None = None

    @property
    def sizes(self) -> dict[str, int]:
        """Number of samples in each part."""
        parts = {"calib": self.calib, "train": self.train, "select": self.select, "test": self.test}
        return {name: len(part) if part else 0 for name, part in parts.items()}


def split(
    inputs: Sequence[TensorInfo],
    calib: Arrays | None,
    train: Arrays | None,
    judge: Arrays | None,
    *,
    is_searched: bool,
    seed: int,
) -> Splits:
    """Return the parts; ``judge`` is what ``--eval`` gives. ``is_searched``: choices will be made, so some must choose.

    Raises: BadInput.
    """
    given = {
        flag: samples_of(arrays, inputs, flag)
        for flag, arrays in (("--calib", calib), ("--train", train), ("--eval", judge))
        if arrays is not None
    }
    _refuse_shared(given)
    rng = np.random.default_rng(seed)
    parts: dict[str, Samples] = {}
    if "--train" in given:
        select, parts["train"] = _cut(given["--train"], 0.1, rng)
        parts["select"] = select[:MOST_TO_SELECT]
    if "--calib" in given:
        parts["calib"] = given["--calib"]
    if "--eval" in given:
        parts["test"] = given["--eval"]
        if is_searched and "select" not in parts:
            parts["select"], parts["test"] = _cut(given["--eval"], 0.5, rng)
    else:
        source = "train" if "train" in parts else "calib"
        if source in parts and len(parts[source]) >= 8:
            parts["test"], parts[source] = _cut(parts[source], 0.125, rng)
            if is_searched and "select" not in parts:
                parts["select"], parts[source] = _cut(parts[source], 0.2, rng)
    parts.setdefault("calib", parts["train"]) if "train" in parts else None
    return Splits(**parts)


def samples_of(arrays: Arrays, inputs: Sequence[TensorInfo], flag: str) -> Samples:
    """Return the samples in the arrays of a file; ``flag`` names it in messages.

    Raises: BadInput.
    """
    names = [info.name for info in inputs]
    labels = None if LABELS in names else arrays.get(LABELS)
    for name in arrays:
        if name not in names and name != LABELS:
            known = ", ".join([*names, LABELS])
            raise BadInput(
                f"{flag}: array '{name}'", f"the model has no such input{nearest(name, names)}", f"Known: {known}."
            )
    missing = [name for name in names if name not in arrays]
    if missing:
        raise BadInput(flag, f"input '{missing[0]}' is missing", f"Give an array for each of {', '.join(names)}.")
    found = {info.name: _rows(arrays[info.name], info, flag) for info in inputs}
    counts = {name: len(array) for name, array in found.items()}
    if labels is not None:
        counts[LABELS] = len(labels)
    if len(set(counts.values())) != 1 or not min(counts.values()):
        words = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise BadInput(flag, f"the arrays hold different numbers of samples, or none: {words}", "Give as many of each.")
    return Samples(found, labels)


def _rows(array: np.ndarray, info: TensorInfo, flag: str) -> np.ndarray:
    """Return ``array`` as [M, *shape without a leading 1]."""
    shape = info.shape[1:] if info.shape[:1] == (1,) else info.shape
    if array.ndim == len(shape) + 2 and array.shape[1] == 1 and info.shape[:1] == (1,):
        array = array[:, 0]
    if array.shape[1:] != shape:
        why = f"samples of {list(array.shape[1:])}, the model takes {list(shape)}"
        raise BadInput(f"{flag}: array '{info.name}'", why, f"Give an array [samples, {', '.join(map(str, shape))}].")
    if str(array.dtype) != info.dtype:
        why = f"dtype {array.dtype}, the model takes {info.dtype}"
        raise BadInput(f"{flag}: array '{info.name}'", why, f"Convert it with array.astype('{info.dtype}').")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise BadInput(f"{flag}: array '{info.name}'", "it holds NaN or infinity", "Leave these samples out.")
    return array


def _cut(samples: Samples, share: float, rng: np.random.Generator) -> tuple[Samples, Samples]:
    """Return a random ``share`` of the samples, at least one, and the rest, both in their order."""
    count = min(max(1, round(share * len(samples))), max(len(samples) - 1, 1))
    chosen = np.zeros(len(samples), bool)
    chosen[rng.permutation(len(samples))[:count]] = True
    return samples[np.flatnonzero(chosen)], samples[np.flatnonzero(~chosen)]


def _refuse_shared(given: Mapping[str, Samples]) -> None:
    """Raise BadInput when a sample is in two files: a loss measured on it would be flattered."""
    seen: dict[bytes, str] = {}
    for flag, samples in given.items():
        shared, other = 0, ""
        for key in set(_keys(samples)):
            if key in seen:
                shared, other = shared + 1, seen[key]
            seen.setdefault(key, flag)
        if shared:
            raise BadInput(
                flag, f"{shared} of its samples are in {other} too", "Training and judging must not share samples."
            )


def _keys(samples: Samples) -> list[bytes]:
    arrays = list(samples.inputs.values())
    return [sha256(b"".join(array[row].tobytes() for array in arrays)).digest() for row in range(len(samples))]
