"""check_import: the imported module and the model's own runtime must give the same numbers, before anything else runs.

The module is run by numpy (``evaluate.py``), the model by its runtime, on the user's samples or on random input
(``sample_inputs.py``). When an output differs, the first tensor of the model that differs is named.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from ..errors import BadInput, ImportCheckFailed, nearest
from ..ir.tolerance import SMALLEST_SCALE, TOLERANCE
from .evaluate import evaluate
from .imported import CheckReport
from .sample_inputs import random_inputs

if TYPE_CHECKING:
    from .imported import Imported

Feeds = dict[str, np.ndarray]

HALF_TOLERANCE = 1e-2  # a network that computes in float16, whose own step is 1e-3


def check_import(imported: Imported, samples: Feeds | None = None, tolerance: float | None = None) -> CheckReport:
    """Return how far the module and the runtime part: largest difference relative to the output's largest value.

    Raises:
        ImportCheckFailed: an output differs by more than ``tolerance``, by shape or by dtype.
        BadInput: the samples do not fit the inputs.
    """
    start = time.perf_counter()
    sets = [_checked_samples(imported, samples)] if samples else random_inputs(imported.mod, imported.inputs)
    limit = tolerance if tolerance is not None else _tolerance_of(imported)
    worst: dict[str, float] = {}
    for feeds in sets:
        expected = imported.reference(feeds)  # first: what is no valid model should fail here, with its own words
        outputs = _evaluated(imported, feeds)
        for info, ours in zip(imported.outputs, outputs, strict=True):
            error = relative_error(ours, expected[info.name])
            worst[info.name] = max(worst.get(info.name, 0.0), error)
            if not error <= limit:
                raise _failure(imported, info.name, ours, expected[info.name], feeds, limit)
    seconds = time.perf_counter() - start
    return CheckReport(max(worst.values(), default=0.0), limit, len(sets), seconds, worst)


def _evaluated(imported: Imported, feeds: Feeds) -> list[np.ndarray]:
    try:
        return evaluate(imported.mod, [feeds[info.name] for info in imported.inputs])[0]
    except MemoryError:
        why = "the check of the import needs more memory than there is"
        raise ImportCheckFailed(f"{imported.source}", why, "Give smaller input with --shape.") from None


def relative_error(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Return max |ours - theirs| / max(|theirs|, ``SMALLEST_SCALE``), inf when shapes, dtypes or NaNs differ."""
    theirs = np.asarray(theirs)
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return float("inf")
    if ours.dtype.kind != "f":
        return float(np.max(np.abs(ours.astype("float64") - theirs.astype("float64")), initial=0.0))
    finite = np.isfinite(theirs)
    if not np.array_equal(ours[~finite], theirs[~finite], equal_nan=True) or not np.isfinite(ours[finite]).all():
        return float("inf")
    difference = np.max(np.abs(ours[finite].astype("float64") - theirs[finite]), initial=0.0)
    return float(difference / np.max(np.abs(theirs[finite]), initial=SMALLEST_SCALE))


def _tolerance_of(imported: Imported) -> float:
    half = any(info.dtype == "float16" for info in (*imported.inputs, *imported.outputs))
    return HALF_TOLERANCE if half else TOLERANCE


def _checked_samples(imported: Imported, samples: Feeds) -> Feeds:
    known = [info.name for info in imported.inputs]
    for name in samples:
        if name not in known:
            raise BadInput(f"sample '{name}'", f"the model has no such input{nearest(name, known)}", _names(known))
    for info in imported.inputs:
        if info.name not in samples:
            raise BadInput(f"samples for {imported.source}", f"input '{info.name}' is missing", _names(known))
        found = samples[info.name]
        if tuple(found.shape) != info.shape or str(found.dtype) != info.dtype:
            why = f"is {list(found.shape)} {found.dtype}, the model takes {list(info.shape)} {info.dtype}"
            raise BadInput(f"sample '{info.name}'", why, "Give one sample of exactly that shape and dtype.")
    return {name: np.asarray(samples[name], order="C") for name in known}


def _names(known: list[str]) -> str:
    return f"Inputs: {', '.join(repr(name) for name in known)}."


def _failure(
    imported: Imported, name: str, ours: np.ndarray, theirs: np.ndarray, feeds: Feeds, limit: float
) -> ImportCheckFailed:
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        found = f"is {list(ours.shape)} {ours.dtype}, {imported.runtime.name} gives {list(theirs.shape)} {theirs.dtype}"
    else:
        error = relative_error(ours, theirs)
        found = f"differs from {imported.runtime.name} by {error:.2g} of its largest value (allowed: {limit:.2g})"
    first = first_difference(imported, feeds, limit)
    where = f"; the first tensor that differs is '{first}'" if first else ""
    next_step = "This is a fault in xnncc's import: please report it with the model's operators."
    return ImportCheckFailed(f"{imported.source}: output '{name}'", f"{found}{where}", next_step)


def first_difference(imported: Imported, feeds: Feeds, limit: float = TOLERANCE) -> str:
    """Return the first tensor of the model, in order of computation, that differs; an empty string if none does."""
    _, ours = evaluate(imported.mod, [feeds[info.name] for info in imported.inputs], imported.tensors)
    theirs = imported.reference_tensors(feeds, imported.tensors)
    wrong = (name for name in ours if name in theirs and not relative_error(ours[name], theirs[name]) <= limit)
    return next(wrong, "")
