"""Caffe tests write their own prototxt and caffemodel files with caffe_files.py."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from caffe_files import Blobs, save

from xnncc.frontends.imported import Imported


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Imported]:
    """``load(text, blobs, feeds)`` returns the import of a network, compared with Caffe's formulas on ``feeds``."""

    def run(
        text: str, blobs: Blobs | None = None, feeds: dict[str, np.ndarray] | None = None, **options: Any
    ) -> Imported:
        from xnncc.frontends import load_model

        return load_model(save(tmp_path, text, blobs, **options), None, feeds)

    return run
