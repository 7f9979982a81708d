"""What a compression method takes and gives: ``method(state, config, data, seed, progress) -> Squeezed``.

A method is one file with one public function of that signature (``Method``). It gets the network as the method before
it left it and returns it smaller, with what it did in numbers. Nothing else passes between methods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    import tvm

    from ..ir.coded import CodedTensor

Progress = Callable[[str, int, int], None]  # progress(text, done, total); total 0 = unknown


@dataclass(frozen=True)
class LayerReport:
    """What one method did to one weight. ``bytes_*`` are estimates by entropy; the report of a file has exact ones."""

    name: str  # the tensor of the model that reads the weight first
    weights: int  # elements before
    bytes_before: float
    bytes_after: float
    kept: int  # elements after: fewer when neurons were cut
    sparsity: float  # zeros among them, [0, 1]
    macs_before: int = 0
    macs_after: int = 0
    error: float = 0.0  # RMS of the change divided by the RMS of the weight, or of the layer's output if data was seen

    @property
    def bits_per_weight(self) -> float:
        """Bits after, for each element that there was before."""
        return 8 * self.bytes_after / self.weights if self.weights else 0.0


@dataclass(frozen=True)
class MethodReport:
    """What one method did. ``left_alone``: name of each weight that it did not touch -> why, in words."""

    method: str
    layers: tuple[LayerReport, ...] = ()
    left_alone: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, str | int | float] = field(default_factory=dict)  # what else is worth a line


@dataclass(frozen=True)
class Squeezed:
    """A network under compression: between methods the state, after one its result.

    ``mod``: Relax module, ``main(inputs...) -> Tuple(outputs...)``, static shapes, tensor names kept.
    ``coded``: digest of a float32 constant of ``mod`` -> its integers; the constant is exactly their ``values()``.
    ``report``: what the method that made this did.
    """

    mod: tvm.IRModule
    coded: Mapping[str, CodedTensor] = field(default_factory=dict)
    report: MethodReport = MethodReport("none")


@dataclass(frozen=True)
class Samples:
    """Inputs with the samples along a new or the first axis.

    ``inputs``: name -> [M, *shape] of the network's input, where a first dimension of 1 is left out: an input
    [1, 3, 224, 224] has samples [M, 3, 224, 224]. ``labels``: whatever the metric reads, [M, ...], or None.
    """

    inputs: Mapping[str, np.ndarray]
    labels: np.ndarray | None = None

    def __len__(self) -> int:
        return len(next(iter(self.inputs.values())))

    def __getitem__(self, rows: slice | np.ndarray) -> Samples:
        """Return the samples of a slice or of an array of indices."""
        labels = None if self.labels is None else self.labels[rows]
        return Samples({name: array[rows] for name, array in self.inputs.items()}, labels)


@dataclass(frozen=True)
class Data:
    """What a method may see. ``data.py`` splits: no sample is in two of these.

    ``calib``: unlabelled, for statistics and one-shot methods; the training samples when only those were given.
    ``train``: for gradients. ``select``: for choosing between candidates (strengths, epochs, per-layer decisions).
    ``measure``: the loss of a module on ``select``, larger is worse, 0 = as the original; None without data.
    The test samples are not here: they are looked at once, after the last choice, by the tool itself.
    ``original``: the network as it came in, the teacher.
    """

    calib: Samples | None = None
    train: Samples | None = None
    select: Samples | None = None
    original: tvm.IRModule | None = None
    measure: Callable[[tvm.IRModule], float] | None = None


@dataclass(frozen=True)
class StepConfig:
    """One step of a recipe, checked: names of parameters are known, their types and ranges right.

    ``strength``: the one knob that the search turns, [0, 1]: 0 changes (almost) nothing, 1 is as hard as the method
    can; each method says in its docstring how its own numbers follow from it. ``gentler``: layer -> factor [0, 1] on
    the strength there, which the search lowers where a layer costs most; 0 leaves the layer alone.
    """

    params: Mapping[str, Any] = field(default_factory=dict)
    strength: float = 0.5
    layers: tuple[str, ...] = ("*",)
    skip: tuple[str, ...] = ()
    gentler: Mapping[str, float] = field(default_factory=dict)
    journal: str | None = None  # folder of this step's checkpoints, for methods that run for minutes; may be absent

    def why_not(self, name: str) -> str:
        """Return why the recipe leaves layer ``name`` alone, an empty string when it does not."""
        if not any(fnmatchcase(name, pattern) for pattern in self.layers):
            return "not in the recipe's layers"
        if any(fnmatchcase(name, pattern) for pattern in self.skip):
            return "the recipe skips it"
        return "its loss was too high" if self.gentler.get(name, 1.0) == 0 else ""

    def strength_of(self, name: str) -> float:
        """Return the strength for layer ``name``."""
        return self.strength * self.gentler.get(name, 1.0)


class Method(Protocol):
    """A compression method. The same arguments give the same result; an empty ``layers`` changes nothing."""

    def __call__(self, state: Squeezed, config: StepConfig, data: Data, seed: int, progress: Progress) -> Squeezed:
        """Return the network after this method.

        Raises: CompressError when the method cannot do what the recipe asks on this network or with this data.
        """
