"""What every front-end returns: the network as a Relax module, with its user's names and its source's own runtime."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ..ir.plan import TensorInfo

if TYPE_CHECKING:
    import numpy as np
    import tvm

    from ..ir.coded import CodedTensor


class Reference(Protocol):
    """The source's own runtime on the model as it came in."""

    @property
    def name(self) -> str:
        """The runtime and its version, for messages: ``onnxruntime 1.32.0``."""

    def run(self, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the outputs by name."""

    def tensors(self, feeds: dict[str, np.ndarray], names: Iterable[str]) -> dict[str, np.ndarray]:
        """Return intermediate tensors by name; names that the runtime cannot give are left out."""


@runtime_checkable
class Streaming(Protocol):
    """A runtime of a network with states."""

    def stream(self, steps: Sequence[dict[str, np.ndarray]]) -> list[dict[str, np.ndarray]]:
        """Return the outputs of several runs in a row, the first with states of zero."""


@dataclass(frozen=True)
class CheckReport:
    """How far the imported module and the source's runtime part."""

    max_relative_error: float  # largest |difference| of an output, divided by that output's largest |value|
    tolerance: float
    runs: int  # inferences compared
    seconds: float
    per_output: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Imported:
    """A network after import, checked.

    ``mod["main"]`` takes the inputs in order and always returns a tuple of the outputs, even of one. All shapes are
    static. A variable that computes a tensor of the model carries that tensor's name; the other variables (parts of
    an operator that became several) are called ``<tensor>#<n>``. ``tensors`` holds the former.
    """

    mod: tvm.IRModule
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    source: Path
    tensors: frozenset[str]
    runtime: Reference
    warnings: tuple[str, ...] = ()
    check: CheckReport | None = None
    weight_files: tuple[Path, ...] = ()  # beside ``source``, where the format keeps weights apart
    states: tuple[tuple[TensorInfo, TensorInfo], ...] = ()  # inputs and outputs that the runtime keeps (tie_states.py)
    coded: Mapping[str, CodedTensor] = field(default_factory=dict)  # digest of a constant -> its integers (ir/coded.py)
    fixed: Mapping[str, np.ndarray] = field(default_factory=dict)  # inputs that became constants (onnx/fix_inputs.py)
    nms_rows: int | None = None  # rows of every NonMaxSuppression (onnx/pad_selections.py)

    def reference(self, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the outputs that the source's own runtime computes, by name."""
        return self.runtime.run(feeds)

    def reference_stream(self, steps: Sequence[dict[str, np.ndarray]]) -> list[dict[str, np.ndarray]]:
        """Return the outputs of several runs in a row; those of a network with states hand the states on."""
        if not self.states:
            return [self.runtime.run(feeds) for feeds in steps]
        assert isinstance(self.runtime, Streaming), "tie_states gives a network with states such a runtime"
        return self.runtime.stream(steps)

    def reference_tensors(self, feeds: dict[str, np.ndarray], names: Iterable[str]) -> dict[str, np.ndarray]:
        """Return the named intermediate tensors as the source's own runtime computes them."""
        return self.runtime.tensors(feeds, names)
