"""Second-order compensation: what one weight loses to rounding or cutting, the others of its row make good.

For a row w and the second moment H [n, n] of the inputs the output error is (w - q) H (w - q)'. Optimal Brain Surgeon
(Hassibi and Stork 1993) gives the best change of the remaining weights after one is fixed; GPTQ (Frantar, Ashkboos,
Hoefler and Alistarh 2022, "GPTQ: Accurate Post-Training Quantization for Generative Pre-trained Transformers",
algorithm 1, equations 2 and 3) goes through the columns in one order for all rows, which needs H's inverse only once,
as the Cholesky factor U of H^-1 = U'U: column c moves the later ones by -(w_c - q_c) / U_cc * U_c.
Where we differ: columns go by falling H_cc, groups of a convolution run side by side, steps differ from row to row.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Array = np.ndarray
_PRUNED = 0.1  # share of zeros from which they are taken for a pruned pattern
_BLOCK = 64  # columns between two updates of all later ones

Fix = Callable[[Array, Array, Array], Array]


def inverse_factor(second: Array, damp: float) -> Array:
    """Return U [G, n, n] float32, upper, with U'U = (H + damp * mean(diag H) * I)^-1.

    A column that was zero in all samples has H_cc = 0: damping leaves it to plain rounding. Moments of float32 sums may
    have eigenvalues a little below zero: then the damping is raised tenfold until none is left.
    """
    h = second.astype(np.float64)
    n = h.shape[1]
    mean = np.trace(h, axis1=1, axis2=2) / n
    mean = np.maximum(mean, max(1e-6 * float(mean.max()), 1e-30))
    h = h / mean[:, None, None]  # so that one damping fits groups of any size; U is scaled back below
    while True:
        try:
            lower = np.linalg.inv(np.linalg.cholesky(h + damp * np.eye(n)))
            factor = np.linalg.cholesky(np.matmul(lower.swapaxes(1, 2), lower))
            break
        except np.linalg.LinAlgError:
            damp *= 10
    return (factor.swapaxes(1, 2) / np.sqrt(mean)[:, None, None]).astype(np.float32)


def walk_columns(w: Array, second: Array, damp: float, fix: Fix) -> Array:
    """Return w [G, R, n] with every column replaced by what ``fix`` makes of it, later columns compensating.

    ``fix(column [G, R] as compensated, index [G] of the column, U_cc [G, 1]) -> [G, R]``.
    """
    groups, _, n = w.shape
    order = np.argsort(-np.diagonal(second, axis1=1, axis2=2), axis=1, kind="stable")
    lead = np.arange(groups)[:, None]
    u = inverse_factor(second[lead[:, :, None], order[:, :, None], order[:, None, :]], damp)
    left = np.take_along_axis(w, order[:, None, :], axis=2).astype(np.float32)
    done = np.empty_like(left)
    for begin in range(0, n, _BLOCK):
        end = min(begin + _BLOCK, n)
        errors = np.empty((*left.shape[:2], end - begin), np.float32)
        for c in range(begin, end):
            pivot = u[:, c, c][:, None]
            done[:, :, c] = fix(left[:, :, c], order[:, c], pivot)
            error = (left[:, :, c] - done[:, :, c]) / pivot
            errors[:, :, c - begin] = error
            left[:, :, c + 1 : end] -= error[:, :, None] * u[:, c, None, c + 1 : end]
        if end < n:
            left[:, :, end:] -= np.matmul(errors, u[:, begin:end, end:])
    result = np.empty_like(done)
    np.put_along_axis(result, np.broadcast_to(order[:, None, :], done.shape), done, axis=2)
    return result


def round_with_compensation(w: Array, second: Array, steps: Array, damp: float) -> Array:
    """Return integers [G, R, n] (as float32) with steps [G, R] for w [G, R, n]; a pruned w keeps its zeros."""
    is_pruned = np.mean(w == 0) > _PRUNED
    lead = np.arange(w.shape[0])

    def nearest(column: Array, index: Array, pivot: Array) -> Array:
        rounded = np.round(column / steps) * steps
        return np.where(w[lead, :, index] == 0, 0, rounded) if is_pruned else rounded

    return np.round(walk_columns(w, second, damp, nearest) / steps[:, :, None])


def output_error(change: Array, second: Array) -> float:
    """Return the mean square of the layer's output error, for a change [G, R, n] of the weight."""
    return float(np.einsum("grn,grn->", np.matmul(change, second), change)) / (change.shape[0] * change.shape[1])
