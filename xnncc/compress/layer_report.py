"""The line of a report for a weight that became integers, or lost some of its values."""

from __future__ import annotations

import numpy as np

from ..ir.coded import CodedTensor
from .layers import Layer
from .result import LayerReport


def entropy_bytes(integers: np.ndarray) -> float:
    """Return the static order-0 entropy of all integers, in bytes: about what the range coder needs."""
    _, counts = np.unique(integers, return_counts=True)
    share = counts / max(integers.size, 1)
    return float(-(counts * np.log2(share)).sum() / 8) if integers.size else 0.0


def coded_bytes(tensor: CodedTensor) -> float:
    """Return the entropy of the integers and the bytes of steps or codebook."""
    table = tensor.steps if tensor.steps is not None else tensor.codebook
    assert table is not None
    return entropy_bytes(tensor.integers) + table.nbytes


def coded_line(
    layer: Layer, tensor: CodedTensor, before: CodedTensor | None, error: float | None = None
) -> LayerReport:
    """Return the report of ``layer`` after it became ``tensor``; ``before``: as it was coded until now.

    ``error`` as in ``LayerReport``; None: of the weights.
    """
    values = tensor.values()
    if error is None:
        size = float(np.sqrt(np.mean(np.square(layer.weights))))
        error = float(np.sqrt(np.mean(np.square(values - layer.weights)))) / size if size else 0.0
    return LayerReport(
        name=layer.name,
        weights=layer.weights.size,
        bytes_before=coded_bytes(before) if before is not None else layer.weights.nbytes,
        bytes_after=coded_bytes(tensor),
        kept=layer.weights.size,
        sparsity=float(np.mean(values == 0)),
        macs_before=layer.macs,
        macs_after=layer.macs,
        error=error,
    )


def pruned_line(layer: Layer, array: np.ndarray, error: float = 0.0) -> LayerReport:
    """Return the report of ``layer`` after it became ``array``, floats still: bytes are those of the non-zero weights
    and one bit for each position."""
    kept = int(np.count_nonzero(array))
    return LayerReport(
        name=layer.name,
        weights=array.size,
        bytes_before=layer.weights.nbytes,
        bytes_after=4 * kept + array.size / 8,
        kept=array.size,
        sparsity=1 - kept / array.size,
        macs_before=layer.macs,
        macs_after=layer.macs,
        error=error,
    )
