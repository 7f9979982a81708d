"""Who says what the numbers should be: LiteRT where it is installed, the interpreter in numpy otherwise.

LiteRT runs its reference kernels, on one thread: the optimised ones round quantised sums differently. It runs networks
without state only, because its variables cannot be set; and those whose operators it knows.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

import numpy as np

from ...ir.plan import TensorInfo
from .flow import TO_NCHW
from .interpret import Interpreter
from .model import Model
from .state import NEXT, Variable

Feeds = dict[str, np.ndarray]


class TfliteReference:
    """See ``frontends.imported.Reference``. ``planar`` tensors are given as [N, C, H, W], as the module has them."""

    def __init__(
        self,
        model: Model,
        inputs: tuple[TensorInfo, ...],
        outputs: tuple[TensorInfo, ...],
        planar: frozenset[str],
        variables: tuple[Variable, ...] = (),
    ) -> None:
        self._offsets = {v.name: v.offset for v in variables if v.offset is not None}
        self._model, self._inputs, self._outputs, self._planar = model, inputs, outputs, planar
        self._has_state = any(op.kind == "VAR_HANDLE" for op in model.main.operators)
        self._litert = None if self._has_state else _open_litert(model)

    @property
    def name(self) -> str:
        """The runtime and its version, for messages."""
        return self._litert.name if self._litert else "xnncc's TFLite interpreter"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Say when the numbers come from the interpreter in numpy, and why."""
        if self._litert:
            return ()
        why = "LiteRT's variables cannot be set" if self._has_state else "LiteRT is not installed or does not run it"
        return (f"checked against {self.name}, not LiteRT: {why}",)

    def run(self, feeds: Feeds) -> Feeds:
        """Return the model's outputs by name, new values of variables among them."""
        if self._litert:
            return dict(zip((info.name for info in self._outputs), self._litert.run(feeds), strict=True))
        outputs, state, _ = self._interpreted(feeds, ())
        values = dict(zip((info.name for info in self._outputs), outputs, strict=False))
        return values | {f"{name}{NEXT}": np.asarray(value) for name, value in state.items()}

    def tensors(self, feeds: Feeds, names: Iterable[str]) -> Feeds:
        """Return tensors of the main graph by name."""
        _, _, kept = self._interpreted(feeds, names)
        return {name: value.transpose(TO_NCHW) if name in self._planar else value for name, value in kept.items()}

    def _interpreted(self, feeds: Feeds, names: Iterable[str]) -> tuple[list[np.ndarray], Feeds, Feeds]:
        interpreter = Interpreter(self._model)
        graph_inputs = {self._model.main.tensors[i].name for i in self._model.main.inputs}
        given = {name: value for name, value in feeds.items() if name not in graph_inputs}
        interpreter.state = {
            name: value + self._offsets.get(name, value.dtype.type(0)) for name, value in given.items()
        }
        outputs, kept = interpreter.run(feeds, names)
        after = {
            name: value - self._offsets.get(name, value.dtype.type(0)) for name, value in interpreter.state.items()
        }
        return outputs, after, kept


class _LiteRt:
    """LiteRT with one model loaded."""

    def __init__(self, name: str, runtime: Any, inputs: list[str]) -> None:
        self.name, self._runtime, self._inputs = name, runtime, inputs

    def run(self, feeds: Feeds) -> list[np.ndarray]:
        for detail, name in zip(self._runtime.get_input_details(), self._inputs, strict=True):
            self._runtime.set_tensor(detail["index"], feeds[name])
        self._runtime.invoke()
        return [self._runtime.get_tensor(detail["index"]) for detail in self._runtime.get_output_details()]


def _open_litert(model: Model) -> _LiteRt | None:
    """Return LiteRT with ``model``, None where it is not installed or knows not all operators."""
    try:
        from ai_edge_litert.interpreter import Interpreter as Runtime  # type: ignore[import-not-found]
        from ai_edge_litert.interpreter import OpResolverType
    except ImportError:
        return None
    kernels = OpResolverType.BUILTIN_REF
    if any(op.is_custom for op in model.main.operators):
        kernels = OpResolverType.AUTO  # MediaPipe's operators are among the optimised ones only
    try:
        runtime = Runtime(model_content=model.data, num_threads=1, experimental_op_resolver_type=kernels)
        runtime.allocate_tensors()
    except (RuntimeError, ValueError):
        return None
    names = [model.main.tensors[i].name for i in model.main.inputs]
    return _LiteRt(f"LiteRT {version('ai-edge-litert')}", runtime, names)
