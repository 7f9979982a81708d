"""Which weights of a network to cut: a score for each, and masks by one budget over all layers.

Patterns (rows are outputs, columns are one output's weights in the order of the weight matrix):

    unstructured   any weight
    1x4            4 neighbouring columns of a row: one vector load of the input
    4x1, 8x1       the same column of 4 or 8 neighbouring rows: one input for a vector of outputs
    N:M            the N largest of every M neighbouring columns of a row stay ("2:4")

Blocks that do not divide a layer end with a smaller one. N:M fixes every layer's sparsity and so has no budget.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import numpy as np

from ..errors import CompressError

Array = np.ndarray
_BLOCKS = {"unstructured": (1, 1), "1x4": (1, 4), "4x1": (4, 1), "8x1": (8, 1)}
# A layer keeps at least this part of the share that it would keep if all were cut alike: scores are the cost of cutting
# one weight alone, and say nothing of a layer that is nearly gone.
_KEPT_IN_A_LAYER = 1 / 3


def block_of(pattern: str) -> tuple[int, int] | None:
    """Return (rows, columns) of a pattern's block, None for N:M.

    Raises: CompressError for a pattern that does not exist.
    """
    if pattern in _BLOCKS:
        return _BLOCKS[pattern]
    match = re.fullmatch(r"(\d+):(\d+)", pattern)
    if match and 0 < int(match[1]) < int(match[2]) <= 32:
        return None
    raise CompressError(
        f"pattern '{pattern}'", "there is none of that name", f"There are {', '.join(_BLOCKS)} and 2:4."
    )


def group_scores(scores: Array, block: tuple[int, int]) -> Array:
    """Return the mean score of each block of [G, R, n]: [G, ceil(R / rows), ceil(n / columns)]."""
    total = _summed(_summed(scores, 1, block[0]), 2, block[1])
    return total / _summed(_summed(np.ones_like(scores), 1, block[0]), 2, block[1])


def _summed(array: Array, axis: int, size: int) -> Array:
    return array if size == 1 else np.add.reduceat(array, np.arange(0, array.shape[axis], size), axis=axis)


def spread(kept: Array, block: tuple[int, int], shape: tuple[int, ...]) -> Array:
    """Return a mask of ``shape`` [G, R, n] from one of blocks."""
    return kept.repeat(block[0], axis=1).repeat(block[1], axis=2)[:, : shape[1], : shape[2]]


def global_masks(scores: Mapping[str, Array], sparsity: Mapping[str, float], pattern: str) -> dict[str, Array]:
    """Return for each layer the mask of weights to keep: the blocks of least score in the whole network go.

    ``sparsity``: of each layer its wanted share of zeros, the budget being their sum over all weights; layers of
    sparsity 0 keep everything.
    """
    block = block_of(pattern)
    chosen = {key: score for key, score in scores.items() if sparsity[key] > 0}
    if block is None:
        keep, of = map(int, pattern.split(":"))
        masks = {key: _largest_of(score, keep, of) for key, score in chosen.items()}
        return {key: masks.get(key, np.ones(score.shape, bool)) for key, score in scores.items()}
    pooled = {key: group_scores(score, block) for key, score in chosen.items()}
    budget = sum(scores[key].size * sparsity[key] for key in chosen)
    masks = {key: np.ones(score.shape, bool) for key, score in scores.items()}
    last = {key: max(math.ceil(s.size * (1 - sparsity[key]) * _KEPT_IN_A_LAYER), 1) for key, s in pooled.items()}
    for key, kept in _cheapest(pooled, last, budget, block, {k: s.shape for k, s in chosen.items()}).items():
        masks[key] = spread(kept, block, scores[key].shape)
    return masks


def _cheapest(
    pooled: Mapping[str, Array],
    last: Mapping[str, int],
    budget: float,
    block: tuple[int, int],
    shapes: Mapping[str, tuple[int, ...]],
) -> dict[str, Array]:
    """Return masks of blocks such that about ``budget`` weights go: least scores first, none of a layer's ``last``."""
    if not pooled:
        return {}
    safe = {}
    for key, score in pooled.items():
        safe[key] = np.zeros(score.shape, bool)
        safe[key].ravel()[np.argsort(score, axis=None, kind="stable")[-last[key] :]] = True
    loose = np.concatenate([score[~safe[key]] for key, score in pooled.items()])
    sizes = np.concatenate([_block_sizes(shapes[key], block)[~safe[key]] for key in pooled])
    order = np.argsort(loose, kind="stable")
    gone = int(np.searchsorted(np.cumsum(sizes[order]), budget)) if len(order) else 0
    goes = np.zeros(len(loose), bool)
    goes[order[:gone]] = True  # by place, not by score: scores may be equal, those behind a dead input are all zero
    masks, begin = {}, 0
    for key in pooled:
        masks[key] = safe[key].copy()
        count = int((~safe[key]).sum())
        masks[key][~safe[key]] = ~goes[begin : begin + count]
        begin += count
    return masks


def _block_sizes(shape: tuple[int, ...], block: tuple[int, int]) -> Array:
    return _summed(_summed(np.ones(shape, np.int64), 1, block[0]), 2, block[1])


def _largest_of(score: Array, keep: int, of: int) -> Array:
    """Return the mask of the ``keep`` largest of every ``of`` neighbouring columns; a shorter rest keeps its share."""
    mask = np.zeros(score.shape, bool)
    for begin in range(0, score.shape[2], of):
        part = score[:, :, begin : begin + of]
        rank = np.argsort(np.argsort(-part, axis=2, kind="stable"), axis=2, kind="stable")
        mask[:, :, begin : begin + of] = rank < max(round(keep * part.shape[2] / of), 1)
    return mask
