"""quantise_small: biases, norms' scales and other small constants as integers of a few bits.

They are a hundredth of the weights, but floats: in a recogniser of 900 KB they are 4 %. Each constant gets one step.
With samples it is alpha / sqrt(mean Fisher information), as in ``quantise_fisher.py``; never finer than ``bits`` for
the largest value and never coarser than a quarter of the RMS. Without samples, ``bits`` it is. Run after the methods
that move biases. Constants that repeat themselves (grids of a detector's boxes, equal scales) stay floats: deflate
makes less of them.

``loss`` in nats for each decision over all small constants; 0 takes it from the strength s as 10^(-4.5 + 3 s).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy as np
import tvm

from ..ir.coded import CodedTensor, digest
from .constants import constant_arrays
from .layer_report import coded_bytes
from .layers import weight_layers, with_coded
from .result import Data, LayerReport, MethodReport, Progress, Squeezed, StepConfig
from .statistics import cached, collect, statistics_key

Array = np.ndarray

DEFAULTS: dict[str, bool | int | float | str | tuple] = {"bits": 10, "loss": 0.0, "samples": 32}
NEEDS = "nothing"

_SMALLEST = 8  # elements: below, a step and a header cost more than the integers save
_CAP = 0.25  # of the RMS


def quantise_small(state: Squeezed, config: StepConfig, data: Data, seed: int, progress: Progress) -> Squeezed:
    """Return ``state`` with every float constant that is no layer's weight as integers with one step."""
    params = {**DEFAULTS, **config.params}
    chosen, left = {}, {}
    for name, key, array in _small_constants(state.mod):
        reason = config.why_not(name) or ("" if np.isfinite(array).all() else "it has NaN or infinite values")
        if reason:
            left[name] = reason
        elif key not in state.coded:
            chosen[key] = (name, array)
    fisher: dict[str, Array] = {}
    decisions = 1
    if data.calib is not None and chosen:
        samples = data.calib[: int(params["samples"])]
        key = statistics_key(weight_layers(state.mod), samples, seed, "small")
        found = cached(config.journal, key, lambda: collect(state.mod, [], samples, seed, progress))
        fisher, decisions = found.fisher, found.decisions
    total = sum(array.size for _, array in chosen.values())
    coded: dict[str, CodedTensor] = {}
    lines = []
    for key, (name, array) in chosen.items():
        loss = float(params["loss"]) or 10 ** (-4.5 + 3 * config.strength_of(name))
        alpha = float(np.sqrt(24 * loss * decisions / total))
        step = small_step(array, fisher.get(key), alpha, int(params["bits"]))
        tensor = CodedTensor(np.round(array / step).astype(np.int32), steps=np.array([step], np.float32))
        before = len(zlib.compress(array.tobytes(), 9))
        if coded_bytes(tensor) < before:
            coded[key] = tensor
            lines.append(_line(name, array, tensor, before))
        else:
            left[name] = f"{array.size} values that deflate to {before} bytes"
    return with_coded(state, coded, MethodReport("quantise_small", tuple(lines), left))


def small_step(array: Array, fisher: Array | None, alpha: float, bits: int) -> np.float32:
    """Return the step for one constant by the rule in the module's docstring; 1 for zeros."""
    largest, rms = float(np.abs(array).max()), float(np.sqrt(np.mean(np.square(array, dtype=np.float64))))
    finest = largest / ((1 << (bits - 1)) - 1)
    if largest == 0 or np.float32(finest) == 0:
        return np.float32(1)
    if fisher is None or not np.isfinite(fisher).all():
        return np.float32(finest)
    return np.float32(max(finest, min(alpha / float(np.sqrt(fisher.mean() + 1e-30)), _CAP * rms)))


def _small_constants(mod: tvm.IRModule) -> Iterator[tuple[str, str, Array]]:
    """Yield name, digest and value of each."""
    weights = {layer.digest for layer in weight_layers(mod)}
    for name, array in constant_arrays(mod).items():
        if array.dtype == np.float32 and array.size >= _SMALLEST and (key := digest(array)) not in weights:
            yield name, key, array


def _line(name: str, array: Array, tensor: CodedTensor, before: int) -> LayerReport:
    size = float(np.sqrt(np.mean(np.square(array))))
    error = float(np.sqrt(np.mean(np.square(tensor.values() - array)))) / size if size else 0.0
    zeros = float(np.mean(tensor.integers == 0))
    return LayerReport(name, array.size, before, coded_bytes(tensor), array.size, zeros, error=error)
