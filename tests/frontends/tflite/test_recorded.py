"""What tests/data/tflite holds is what LiteRT computes; wants the extra xnncc[references]."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from real_files import FLOAT, MODELS, SPOTTERS

pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed: xnncc[references]")

import record_expected

DATA = Path(__file__).resolve().parents[2] / "data" / "tflite"


def _assert_same(stored_in: str, now: dict[str, np.ndarray]) -> None:
    stored = np.load(DATA / stored_in)
    assert set(stored) == set(now)
    for name, value in now.items():
        assert np.allclose(stored[name], value, rtol=1e-5, atol=1e-6), name


def test_cases() -> None:
    _assert_same("expected.npz", record_expected.cases())


def test_real_files() -> None:
    missing = sorted({file.split("/")[0] for file in {**FLOAT, **SPOTTERS}.values() if not (MODELS / file).is_file()})
    if missing:
        pytest.skip(f"not fetched: tools/fetch_models.py {' '.join(missing)}")
    _assert_same("real.npz", record_expected.real())
