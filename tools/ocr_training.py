"""PP-OCRv4 trained small: quantised in one shot, then distilled from itself on drawn, unlabelled lines and pages.

    1  quantise_fisher     steps by Fisher information and compensated rounding, coarser than what is wanted at the end
    2  quantise_entropy    the integers trained from there; the rate is steered to a goal of bits
    3  tune_scales         steps and vectors trained with the integers frozen

The recogniser trains on lines of 240 columns, half as long as the others: every update costs half. The last step sees
full lines again, because its squeeze-and-excite layers average over the whole line.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import drawn_text
import numpy as np

NARROW_PX = 240


@dataclass(frozen=True)
class Plan:
    """Parameters of the three steps, by method; samples of each part."""

    quantise_fisher: dict[str, Any]
    quantise_entropy: dict[str, Any]
    tune_scales: dict[str, Any]


REC = Plan(
    {"loss": 2.0, "cap": 1.0, "compensate": "always"},
    {"bits": 2.15, "steps": 3000, "batch": 8, "lr": 3e-4, "temperature": 1.0},
    {"steps": 240, "batch": 8},
)
DET = Plan(
    {"loss": 0.3, "cap": 1.0, "compensate": "measured"},
    {"bits": 2.2, "steps": 700, "batch": 2, "lr": 3e-4},
    {"steps": 150, "batch": 2},
)
_NARROW_LINES = {"latin": 1600, "random": 2400, "chinese": 5600}
_WIDE_LINES = {"latin": 400, "random": 600, "chinese": 1000}
_PAGES = 400


def trained_rec(model: Path, calib: np.ndarray, shape: tuple[int, ...], journal: Path, plan: Plan = REC) -> bytes:
    """Return the recogniser as an .xq file; ``calib`` [M, 3, 48, 480], ``shape`` of the network's input."""
    from xnncc.compress.result import Samples

    seed = drawn_text.SEEDS["train"]
    wide, names = _original(model, shape)
    narrow, _ = _original(model, (*shape[:3], NARROW_PX))
    state = _step("quantise_fisher", plan, wide, wide, Samples({"x": calib}), journal)
    lines = drawn_text.mixed_lines(seed, _NARROW_LINES, width=NARROW_PX)
    state = _step("quantise_entropy", plan, _moved(state, narrow.mod), narrow, Samples({"x": lines.inputs}), journal)
    lines = drawn_text.mixed_lines(seed + 1, _WIDE_LINES)
    state = _step("tune_scales", plan, _moved(state, wide.mod), wide, Samples({"x": lines.inputs}), journal)
    return _file(state, names, model)


def trained_det(model: Path, calib: np.ndarray, shape: tuple[int, ...], journal: Path, plan: Plan = DET) -> bytes:
    """Return the detector as an .xq file; ``calib`` [M, 3, 480, 480]."""
    from xnncc.compress.result import Samples

    seed = drawn_text.SEEDS["train"]
    original, names = _original(model, shape)
    state = _step("quantise_fisher", plan, original, original, Samples({"x": calib}), journal)
    pages = Samples({"x": np.stack([drawn_text.page(seed + i, noisy=i % 2 == 0)[0] for i in range(_PAGES)])})
    for method in ("quantise_entropy", "tune_scales"):
        state = _step(method, plan, state, original, pages, journal)
    return _file(state, names, model)


def _original(model: Path, shape: tuple[int, ...]) -> tuple[Any, list[str]]:
    """Return the network as it is before compression, and the names of its outputs."""
    from xnncc.compress.result import Squeezed
    from xnncc.frontends import load_model
    from xnncc.squeeze.file import recorded
    from xnncc.transform.simplify import simplify

    imported = load_model(model, {"x": shape}, check=False)
    return Squeezed(recorded(simplify(imported.mod))), [info.name for info in imported.outputs]


def _moved(state: Any, mod: Any) -> Any:
    """Return the weights of ``state`` in ``mod``, the same network for another width."""
    from xnncc.compress.constants import constant_arrays, rebuilt
    from xnncc.compress.result import Squeezed

    arrays, there = constant_arrays(state.mod), constant_arrays(mod)
    same = {name: array for name, array in arrays.items() if array.shape == there[name].shape}
    return Squeezed(rebuilt(mod, same), state.coded, state.report)


def _step(method: str, plan: Plan, state: Any, original: Any, samples: Any, journal: Path) -> Any:
    """Return ``state`` after one method, with samples for its statistics and gradients."""
    from importlib import import_module

    from xnncc.compress.result import Data, StepConfig

    module = import_module(f"xnncc.compress.{method}")
    params = {**module.DEFAULTS, **getattr(plan, method)}
    data = Data(calib=samples, train=samples, original=original.mod)
    return getattr(module, method)(state, StepConfig(params, journal=str(journal / method)), data, 0, _say)


def _say(text: str, done: int, total: int) -> None:
    if done % 100 == 0 or done == total:
        print(f"  {text} {done}/{total}", file=sys.stderr, flush=True)


def _file(state: Any, names: list[str], model: Path) -> bytes:
    from xnncc.squeeze.file import to_bytes

    return to_bytes(state, names, {"source": model.name, "recipe": "trained"}, is_final=True)
