"""TFLite tests build tiny files with tflite_models.py; expected outputs are LiteRT's, stored in tests/data/tflite."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from xnncc.errors import UnsupportedModel
from xnncc.frontends.imported import Imported

DATA = Path(__file__).resolve().parents[2] / "data" / "tflite"


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Imported]:
    """``load(data, feeds)`` imports the bytes of a file, compared with the interpreter on ``feeds``."""

    def run(data: bytes, feeds: dict[str, np.ndarray] | None = None, **options: bool) -> Imported:
        from xnncc.frontends import load_model

        path = tmp_path / "model.tflite"
        path.write_bytes(data)
        return load_model(path, None, feeds or None, **options)

    return run


@pytest.fixture
def refuses(load: Callable[..., Imported]) -> Callable[..., str]:
    """``refuses(data)`` returns the sentence with which the import refuses a file."""

    def run(data: bytes) -> str:
        with pytest.raises(UnsupportedModel) as refusal:
            load(data)
        return str(refusal.value)

    return run
