"""Labels on the axes of every tensor: which positions stand for the same neuron, and can only be cut together.

Each axis of each tensor has one label for each position. Two positions that must be cut together have labels of one
class (union-find). Class 0 is fixed: positions of images, of inputs and outputs, and everything that an operator ties
to its neighbours (a softmax, a mean over channels, an unknown kernel).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

Array = np.ndarray
Axes = list[Array]  # one int64 array of labels for each axis

FIXED = 0


@dataclass
class Labels:
    """Union-find over labels, with the reason why a class is fixed and the layer whose neurons a label counts."""

    parents: list[int] = field(default_factory=lambda: [FIXED])
    makers: dict[int, list[str]] = field(default_factory=dict)  # label -> tensors that compute the neuron
    reasons: dict[int, str] = field(default_factory=dict)  # label -> why it became fixed

    def fresh(self, size: int) -> Array:
        """Return new labels for an axis; an axis of one position is fixed, since it can never be cut."""
        if size <= 1:
            return np.zeros(size, np.int64)
        first = len(self.parents)
        self.parents.extend(range(first, first + size))
        return np.arange(first, first + size)

    def made(self, labels: Array, maker: str) -> Array:
        """Return ``labels``, noted as the neurons that the tensor ``maker`` computes. Only such are ever cut."""
        for label in labels.tolist():
            self.makers.setdefault(label, []).append(maker)
        return labels

    def find(self, label: int) -> int:
        """Return the class of a label."""
        while self.parents[label] != label:
            self.parents[label] = self.parents[self.parents[label]]
            label = self.parents[label]
        return label

    def classes(self, labels: Array) -> Array:
        """Return the class of each label."""
        return np.array([self.find(int(label)) for label in labels.ravel()], np.int64).reshape(labels.shape)

    def tie(self, a: Array, b: Array) -> None:
        """Make each pair of positions one class; the smaller class number stays, so that 0 wins."""
        for x, y in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True):
            x, y = self.find(x), self.find(y)
            if x != y:
                low, high = min(x, y), max(x, y)
                self.parents[high] = low
                if low == FIXED:
                    self.reasons.setdefault(high, "tied to a fixed tensor")

    def freeze(self, labels: Array, reason: str) -> None:
        """Make the classes of ``labels`` fixed."""
        for label in np.unique(labels).tolist():
            found = self.find(label)
            if found != FIXED:
                self.reasons.setdefault(found, reason)
                self.parents[found] = FIXED

    def is_cuttable(self, labels: Array) -> bool:
        """Whether any position can be cut."""
        return bool(np.any(self.classes(labels)))


def fixed(shape: Sequence[int]) -> Axes:
    """Return axes in which nothing can be cut."""
    return [np.zeros(size, np.int64) for size in shape]


def broadcast(labels: Labels, operands: Sequence[Axes], shape: Sequence[int]) -> Axes:
    """Return the axes of an element by element result, with the operands' positions tied where they meet."""
    result = fixed(shape)
    for out, size in enumerate(shape):
        seen = None
        for axes in operands:
            axis = out - (len(shape) - len(axes))
            if axis < 0 or len(axes[axis]) != size or size == 1:
                continue
            if seen is None:
                seen = axes[axis]
            else:
                labels.tie(seen, axes[axis])
        if seen is not None:
            result[out] = seen
    return result


def reshape(labels: Labels, axes: Axes, shape: Sequence[int]) -> Axes:
    """Return the axes after a reshape.

    Input and output axes are matched in the smallest runs of equal size. In a run one input axis may carry channels: a
    position of the output then has the label of the channel that it belongs to. When a run has several output axes,
    the one that keeps most classes apart carries the labels, and the positions of the others are tied (a channel
    shuffle, the heads of an attention).
    """
    result = fixed(shape)
    for before, after in _runs([len(axis) for axis in axes], shape):
        flat = _flat(labels, [axes[i] for i in before])
        wide = [i for i in after if shape[i] > 1]
        if flat is None or not wide:
            continue
        if len(wide) == 1:
            result[wide[0]] = flat
            continue
        cube = flat.reshape([shape[i] for i in wide])
        rows = [np.moveaxis(cube, k, 0).reshape(cube.shape[k], -1) for k in range(len(wide))]
        best = max(range(len(wide)), key=lambda k: (_classes_after_tying(labels, rows[k]), -k))
        labels.tie(rows[best], np.broadcast_to(rows[best][:, :1], rows[best].shape))
        result[wide[best]] = rows[best][:, 0].copy()
    return result


def _runs(before: Sequence[int], after: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the smallest runs of axes with equal products; axes of size 1 join whatever is open."""
    i = j = 0
    while i < len(before) or j < len(after):
        left, right = ([i] if i < len(before) else []), ([j] if j < len(after) else [])
        i, j = i + len(left), j + len(right)
        while (a := prod(before[k] for k in left)) != (b := prod(after[k] for k in right)):
            if a < b:
                left.append(i)
                i += 1
            else:
                right.append(j)
                j += 1
        yield left, right


def _flat(labels: Labels, axes: Sequence[Array]) -> Array | None:
    """Return one label for each element of the run; None when nothing can be cut.

    Two axes with channels cannot be one axis of channels: both are fixed.
    """
    carrying = [k for k, axis in enumerate(axes) if labels.is_cuttable(axis)]
    if not carrying:
        return None
    if len(carrying) > 1:
        for k in carrying:
            labels.freeze(axes[k], "a reshape merges two axes of channels")
        return None
    shape = [len(axis) for axis in axes]
    view = axes[carrying[0]].reshape([-1 if k == carrying[0] else 1 for k in range(len(axes))])
    return np.broadcast_to(view, shape).reshape(-1)


def _classes_after_tying(labels: Labels, rows: Array) -> int:
    """Return how many classes are left on an axis whose positions are the rows, when each row is tied."""
    classes = labels.classes(rows)
    parents: dict[int, int] = {}

    def find(x: int) -> int:
        while parents.setdefault(x, x) != x:
            x = parents[x]
        return x

    for row in classes:
        for other in np.unique(row).tolist():
            a, b = find(int(row[0])), find(other)
            parents[max(a, b)] = min(a, b)
    return len({find(int(row[0])) for row in classes} - {FIXED})
