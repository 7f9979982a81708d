"""Integers as compression leaves them: rows and columns of different scale, most of them small."""

from __future__ import annotations

import numpy as np


def dense(rows: int, columns: int, density: float, seed: int) -> np.ndarray:
    """Return int32 [rows, columns] of which about ``density`` are not zero."""
    rng = np.random.default_rng(seed)
    scale = np.exp(rng.standard_normal((rows, 1)) * 0.3 + rng.standard_normal((1, columns)) * 0.3)
    weights = rng.laplace(size=(rows, columns)) * scale
    if density >= 1:
        return np.asarray(np.where(weights < 0, np.floor(weights), np.ceil(weights)), np.int32)
    step = np.quantile(np.abs(weights), 1 - density) * 2
    return np.rint(weights / step).astype(np.int32)


def scaled(rows: int, columns: int, levels: int, seed: int) -> np.ndarray:
    """Return int32 [rows, columns] as rounding with a step for each row leaves them: its largest magnitude is
    ``levels``, and how much smaller the others are differs from row to row."""
    rng = np.random.default_rng(seed)
    tails = rng.standard_normal((rows, columns)) * rng.random((rows, 1)) * 0.5
    weights = rng.standard_normal((rows, columns)) * np.exp(tails + rng.standard_normal(columns) * 0.14)
    return np.rint(weights / np.abs(weights).max(axis=1, keepdims=True) * levels).astype(np.int32)


def sparse(rows: int, columns: int, density: float, seed: int) -> np.ndarray:
    """Return int32 [rows, columns] whose columns differ in density, as after pruning."""
    rng = np.random.default_rng(seed)
    chance = rng.random(columns) ** 2 * 3 * density
    kept = rng.random((rows, columns)) < chance
    sizes = 1 + np.minimum(rng.geometric(0.6, (rows, columns)) - 1, 6)
    return (kept * sizes * rng.choice([-1, 1], (rows, columns))).astype(np.int32)


def entropy_bytes(weights: np.ndarray) -> float:
    """Return the static entropy of order 0, without any table, in bytes."""
    counts = np.unique(weights, return_counts=True)[1]
    return float(-(counts * np.log2(counts / counts.sum())).sum() / 8)
