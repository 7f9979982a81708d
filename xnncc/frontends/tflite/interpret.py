"""An interpreter of TFLite graphs in numpy: the judge of an import where LiteRT is not installed.

It follows LiteRT's reference kernels (NHWC, integers for quantised graphs) and shares no code with the converters,
which build NCHW Relax. It also evaluates operators of constants at import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .fixed_point import dequantise
from .model import Graph, Model, Operator, Tensor

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Step:
    """One operator with its operands."""

    op: Operator
    x: list[Any]  # arrays; None where an optional input is left out
    inputs: list[Tensor | None]
    outputs: list[Tensor]

    def option(self, name: str) -> Any:
        """Return an option of the operator."""
        return self.op.options[name]

    def source(self, index: int = 0) -> Tensor:
        """Return the tensor behind input ``index``."""
        tensor = self.inputs[index]
        assert tensor is not None
        return tensor


Evaluator = Callable[[Step], Any]

# Operators on real numbers whose weights may be stored as integers (dynamic range quantisation).
REAL_WITH_WEIGHTS = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV", "BATCH_MATMUL"})


def evaluators() -> dict[str, Evaluator]:
    """Return what each operator means; the families are imported when first needed."""
    from . import interpret_float, interpret_integer, interpret_layout

    return {**interpret_layout.EVALUATORS, **interpret_float.EVALUATORS, **interpret_integer.EVALUATORS}


def run_operator(graph: Graph, op: Operator, operands: list[Array | None]) -> list[Array]:
    """Return the outputs of one operator."""
    tensors = graph.tensors
    inputs = [tensors[i] if i >= 0 else None for i in op.inputs]
    outputs = [tensors[i] for i in op.outputs]
    if op.kind in REAL_WITH_WEIGHTS and not outputs[0].is_quantised:
        operands = [_real(x, t) for x, t in zip(operands, inputs, strict=True)]
    step = Step(op, operands, inputs, outputs)
    with np.errstate(all="ignore"):
        results = evaluators()[op.kind](step)
    results = list(results) if isinstance(results, list | tuple) else [results]
    return [np.asarray(r, t.dtype) for r, t in zip(results, step.outputs, strict=True)]


def _real(x: Array | None, tensor: Tensor | None) -> Array | None:
    """Return stored weights of an operator on real numbers as float32."""
    return dequantise(x, tensor) if x is not None and tensor is not None and tensor.is_quantised else x


class Interpreter:
    """Runs the main graph; variables live in ``state`` by name."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.state: dict[str, Array] = {}

    def initial_state(self) -> dict[str, Array]:
        """Return what the model assigns to its variables before the first inference."""
        state, self.state = self.state, {}
        for op in self._model.main.operators:
            if op.kind == "CALL_ONCE":
                self._run(self._model.graphs[op.options["init_subgraph_index"]], {})
        state, self.state = self.state, state
        return state

    def run(self, feeds: dict[str, Array], names: Iterable[str] = ()) -> tuple[list[Array], dict[str, Array]]:
        """Return the outputs, and the tensors called ``names``."""
        graph, wanted, kept = self._model.main, set(names), {}
        values = self._run(graph, {i: feeds[graph.tensors[i].name] for i in graph.inputs})
        kept = {t.name: values[i] for i, t in enumerate(graph.tensors) if t.name in wanted and i in values}
        return [np.asarray(values[i]) for i in graph.outputs], kept

    def _run(self, graph: Graph, values: dict[int, Any]) -> dict[int, Any]:
        for op in graph.operators:
            operands = [self._operand(graph, values, i) for i in op.inputs]
            if op.kind == "CALL_ONCE":
                self.state = self.state or self.initial_state()
            elif op.kind == "VAR_HANDLE":
                values[op.outputs[0]] = op.options["shared_name"]
            elif op.kind == "READ_VARIABLE":
                values[op.outputs[0]] = self.state[operands[0]]
            elif op.kind == "ASSIGN_VARIABLE":
                self.state[operands[0]] = operands[1]
            else:
                values.update(zip(op.outputs, run_operator(graph, op, operands), strict=True))
        return values

    @staticmethod
    def _operand(graph: Graph, values: dict[int, Any], index: int) -> Any:
        if index < 0:
            return None
        return values[index] if index in values else graph.tensors[index].data
