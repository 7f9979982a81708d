"""Scenes with one QR code each and its box, for compressing and judging the WeChat detector.

A scene is a grey photograph of 384 x 384 px with one QR code pasted somewhere, and noise; its box is the truth.
Everything follows from a seed; training, selection and test scenes differ in seeds.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image

SEEDS = {"calib": 40_000, "train": 50_000, "select": 20_000, "test": 10_000}
SCENE_PX = 384


@dataclass(frozen=True)
class Scene:
    """``input`` [1, 384, 384] float32 0..1; ``box``: left, top, right, bottom in 0..1."""

    input: np.ndarray
    box: np.ndarray


@lru_cache(maxsize=4)
def _pictures(data: Path) -> tuple[Image.Image, ...]:
    paths = [*sorted((data / "imagenet-pictures").glob("*.jpg")), *sorted((data / "photos").glob("*.png"))]
    return tuple(Image.open(path).convert("RGB") for path in paths)


def _code(rng: random.Random, side: int) -> Image.Image:
    import segno

    text = f"xnncc-{rng.randrange(10**9)}"
    matrix = np.array(list(segno.make(text, micro=False, error="m").matrix), np.uint8)
    pixels = np.pad(255 * (1 - matrix), 2, constant_values=255)
    return Image.fromarray(pixels).resize((side, side), Image.Resampling.NEAREST)


def scene(data: Path, seed: int) -> Scene:
    """Return one scene on a photograph of ``data``, the folder that tools/fetch_models.py fills."""
    rng, pictures = random.Random(f"scene {seed}"), _pictures(data)
    ground = pictures[seed % len(pictures)].resize((SCENE_PX, SCENE_PX), Image.Resampling.BILINEAR).convert("L")
    side = rng.randint(90, 200)
    left, top = rng.randint(5, SCENE_PX - 5 - side), rng.randint(5, SCENE_PX - 5 - side)
    ground.paste(_code(rng, side), (left, top))
    noise = np.random.default_rng(seed).normal(0, 6, (SCENE_PX, SCENE_PX))
    pixels = np.clip(np.asarray(ground, np.float32) + noise, 0, 255).astype(np.float32) / 255
    box = np.array([left, top, left + side, top + side], np.float32) / SCENE_PX
    return Scene(pixels[None], box)


def scenes(data: Path, part: str, count: int) -> list[Scene]:
    """Return ``count`` scenes of a part of ``SEEDS``."""
    return [scene(data, SEEDS[part] + i) for i in range(count)]


def best_box(detections: np.ndarray) -> np.ndarray | None:
    """Return the surest box of class 1 in rows [..., 7]: image, label, score, left, top, right, bottom; or None."""
    rows = detections.reshape(-1, 7)
    rows = rows[rows[:, 1] == 1]
    return rows[rows[:, 2].argmax(), 3:] if len(rows) else None


def overlap(a: np.ndarray | None, b: np.ndarray) -> float:
    """Return intersection over union of two boxes; 0 without a box."""
    if a is None:
        return 0.0
    width, height = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    shared = max(float(width), 0.0) * max(float(height), 0.0)
    area = float(np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2])) - shared
    return shared / area if area > 0 else 0.0
