"""MNIST out of its IDX files, in three parts that never mix.

train       55,000 images   fine-tuning, importance, calibration
validation   5,000 images   every choice: densities, rate weights, when to stop (the last 5,000 of the training file)
test        10,000 images   looked at once, for the number that is reported
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parent.parent.parent / "models" / "mnist"
VALIDATION_IMAGES = 5_000


@dataclass(frozen=True)
class Digits:
    """images: [N, 1, 28, 28] float32 in 0..1; labels: [N] int64."""

    images: np.ndarray
    labels: np.ndarray


def _read(name: str, header_bytes: int) -> np.ndarray:
    path = FOLDER / name
    if not path.exists():
        raise FileNotFoundError(f"{path} is not there. Fetch it with: tools/fetch_models.py mnist")
    return np.frombuffer(path.read_bytes(), np.uint8)[header_bytes:]


def _digits(stem: str) -> Digits:
    images = _read(f"{stem}-images-idx3-ubyte", 16).reshape(-1, 1, 28, 28)
    return Digits(images.astype(np.float32) / np.float32(255), _read(f"{stem}-labels-idx1-ubyte", 8).astype(np.int64))


def train_and_validation() -> tuple[Digits, Digits]:
    """Return the two parts of the training file."""
    both = _digits("train")
    cut = len(both.labels) - VALIDATION_IMAGES
    return Digits(both.images[:cut], both.labels[:cut]), Digits(both.images[cut:], both.labels[cut:])


def test() -> Digits:
    """Return the test file."""
    return _digits("t10k")
