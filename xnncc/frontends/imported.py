"""What every front-end returns: the network as a Relax module, with its user's names and its source's own runtime."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ..ir.plan import TensorInfo

if TYPE_CHECKING:
    import numpy as np
    import tvm


class Reference(Protocol):
    """The source's own runtime on the model as it came in."""

    @property
    def name(self) -> str:
        """The runtime and its version, for messages: ``onnxruntime 1.32.0``."""

    def run(self, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the outputs by name."""

    def tensors(self, feeds: dict[str, np.ndarray], names: Iterable[str]) -> dict[str, np.ndarray]:
        """Return intermediate tensors by name; names that the runtime cannot give are left out."""


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
    states: tuple[tuple[TensorInfo, TensorInfo], ...] = ()  # inputs and outputs that the runtime keeps (tie_states.py)

    def reference(self, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the outputs that the source's own runtime computes, by name."""
        return self.runtime.run(feeds)

    def reference_tensors(self, feeds: dict[str, np.ndarray], names: Iterable[str]) -> dict[str, np.ndarray]:
        """Return the named intermediate tensors as the source's own runtime computes them."""
        return self.runtime.tensors(feeds, names)
