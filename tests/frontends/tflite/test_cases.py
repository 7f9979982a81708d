"""Every operator and attribute against LiteRT's numbers: the module that is built, and the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tflite_cases import CASES

from xnncc.frontends.evaluate import evaluate
from xnncc.frontends.imported import Imported
from xnncc.frontends.tflite.interpret import Interpreter
from xnncc.frontends.tflite.read import read_tflite

EXPECTED = np.load(Path(__file__).resolve().parents[2] / "data" / "tflite" / "expected.npz")
# One operator: a few roundings of float32 and no deep sums. exp and friends differ by an ulp or two between libraries.
TOLERANCE = 2e-6


def _check(name: str, found: list[np.ndarray]) -> None:
    for i, ours in enumerate(found):
        theirs = EXPECTED[f"{name}/{i}"]
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
        if theirs.dtype.kind == "f":
            scale = max(float(np.abs(theirs).max()), 1e-2)
            assert float(np.abs(ours.astype("f8") - theirs).max()) <= TOLERANCE * scale
        else:
            steps = np.abs(ours.astype("i8") - theirs.astype("i8"))
            assert steps.max() <= (1 if _is_tabled(name) else 0)


def _is_tabled(name: str) -> bool:
    """Whether LiteRT's reference kernel approximates in fixed point what our tables round once: one step apart."""
    return any(word in name for word in ("softmax", "LOGISTIC", "TANH", "HARD_SWISH", "LEAKY", "ELU", "prelu"))


@pytest.mark.parametrize("name", CASES)
def test_module_computes_what_litert_does(name: str, load: Callable[..., Imported]) -> None:
    data, feeds = CASES[name]()
    imported = load(data, feeds)
    _check(name, evaluate(imported.mod, list(feeds.values()))[0])


@pytest.mark.parametrize("name", CASES)
def test_interpreter_computes_what_litert_does(name: str, tmp_path: Path) -> None:
    data, feeds = CASES[name]()
    (tmp_path / "model.tflite").write_bytes(data)
    _check(name, Interpreter(read_tflite(tmp_path / "model.tflite")).run(feeds)[0])
