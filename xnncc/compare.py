"""Compare two tensors that should be the same, and say how they differ in words a person can act on."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, prod
from typing import TYPE_CHECKING, Any

from xnncc.ir.tolerance import SMALLEST_SCALE

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Difference:
    """How far a tensor is from its reference. Numbers are None where they mean nothing (other shape, not finite)."""

    name: str
    passed: bool
    max_abs: float | None = None  # largest |actual - reference|
    max_relative: float | None = None  # max_abs / largest |reference|, which counts as at least SMALLEST_SCALE
    mean_abs: float | None = None
    reference_max: float | None = None  # largest |reference|
    problem: str = ""  # what is wrong, or where the largest difference is; empty when it passed

    @property
    def sentence(self) -> str:
        """What is wrong, with the size of the difference when it has one."""
        size = f"relative difference {self.max_relative:.1e}, " if self.max_relative else ""
        return size + self.problem


def compare(name: str, actual: np.ndarray, reference: np.ndarray, tolerance: float) -> Difference:
    """Return how ``actual`` differs from ``reference``; passes when max_abs / max |reference| <= ``tolerance``.

    A reference smaller than ``SMALLEST_SCALE`` counts as that large. Integers and bools must be equal. NaN and
    infinity must stand at the same places as in the reference; the rest is compared without them.
    """
    import numpy as np

    if actual.shape != reference.shape:
        problem = f"shape {list(actual.shape)}, the reference has {list(reference.shape)}"
        return Difference(name, False, problem=problem)
    if actual.dtype != reference.dtype:
        return Difference(name, False, problem=f"dtype {actual.dtype}, the reference has {reference.dtype}")
    if actual.size == 0:
        return Difference(name, True, 0.0, 0.0, 0.0, 0.0)
    problem = _misplaced(actual, reference)
    exact = reference.dtype.kind not in "fc"
    ours, theirs = actual.astype(np.float64), reference.astype(np.float64)
    both = np.isfinite(ours) & np.isfinite(theirs)
    error = np.abs(np.where(both, ours, 0.0) - np.where(both, theirs, 0.0))
    reference_max = float(np.abs(np.where(both, theirs, 0.0)).max())
    max_abs = float(error.max())
    relative = max_abs / max(reference_max, SMALLEST_SCALE)
    within = max_abs == 0 if exact else relative <= tolerance
    if not within and not problem:
        where = np.unravel_index(int(error.argmax()), error.shape)
        place = [int(i) for i in where]
        problem = f"at {place}: {actual[where]!s} instead of {reference[where]!s}"
        if exact:
            problem = f"{int((error > 0).sum())} of {error.size} integers differ; {problem}"
    return Difference(
        name, within and not problem, max_abs, _finite(relative), float(error.mean()), reference_max, problem
    )


def _misplaced(actual: np.ndarray, reference: np.ndarray) -> str:
    """Say where ``actual`` is NaN or infinite and ``reference`` is not, or the other way; empty when they agree."""
    import numpy as np

    if actual.dtype.kind not in "fc":
        return ""
    for what, test in (("NaN", np.isnan), ("+infinity", np.isposinf), ("-infinity", np.isneginf)):
        ours, theirs = test(actual), test(reference)
        wrong = ours != theirs
        if wrong.any():
            place = [int(i) for i in np.argwhere(wrong)[0]]
            counts = f"{int(ours.sum())} values, {int(theirs.sum())} in the reference"
            return f"{what}: {counts}; first at {place}, of {actual.size}"
    return ""


def _finite(number: float) -> float | None:
    return number if isfinite(number) else None


def unpack(raw: np.ndarray, region: dict[str, Any]) -> np.ndarray:
    """Return the logical tensor that ``raw``, the bytes of a manifest's output region, holds.

    ``region``: ``shape`` (N, C, then spatial), ``dtype``, ``layout``: "plain", or "NCHW<v>c" = [N, ceil(C/v), H*W, v]
    with channels zero-padded to a multiple of v.
    """
    import numpy as np

    shape, layout = tuple(region["shape"]), region["layout"]
    values = np.frombuffer(np.ascontiguousarray(raw), dtype=np.dtype(region["dtype"]))
    if layout == "plain":
        return values[: prod(shape)].reshape(shape)
    batch, channels, *spatial = shape
    lanes = int(layout.removeprefix("NCHW").removesuffix("c"))
    blocks, pixels = -(-channels // lanes), prod(spatial)
    packed = values[: batch * blocks * pixels * lanes].reshape(batch, blocks, pixels, lanes)
    full = packed.transpose(0, 1, 3, 2).reshape(batch, blocks * lanes, pixels)
    return full[:, :channels].reshape(shape)
