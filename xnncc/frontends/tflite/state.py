"""Variables of a stateful network: what each is called, holds and starts with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .interpret import Interpreter
from .model import Graph, Model

NEXT = ":next"  # the output that carries a variable's new value is called <variable>:next


@dataclass(frozen=True, eq=False)
class Variable:
    """One variable; ``start`` is what the model assigns to it once, before the first inference."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    start: np.ndarray

    @property
    def is_kept(self) -> bool:
        """Return whether the runtime can keep it: its states begin at zero, so they hold the difference from
        ``start``, which is exact for integers (modulo their size) and where ``start`` is zero."""
        return self.start.dtype.kind in "iu" or not self.start.any()

    @property
    def offset(self) -> np.ndarray | None:
        """Return what the kept number lacks, None when nothing."""
        return self.start if self.is_kept and self.start.any() else None


def variables_of(model: Model) -> tuple[Variable, ...]:
    """Return the variables in the order in which the main graph opens them.

    Raises:
        KeyError: one that is read and never initialised.
    """
    graph = model.main
    names = [op.options["shared_name"] for op in graph.operators if op.kind == "VAR_HANDLE"]
    if not names:
        return ()
    start = Interpreter(model).initial_state()
    found = []
    for name in dict.fromkeys(names):
        array = np.asarray(start[name])
        found.append(Variable(name, array.shape, str(array.dtype), array))
    return tuple(found)


def variable_names(graph: Graph) -> dict[int, str]:
    """Return the variable's name for each tensor that is a handle."""
    return {op.outputs[0]: op.options["shared_name"] for op in graph.operators if op.kind == "VAR_HANDLE"}
