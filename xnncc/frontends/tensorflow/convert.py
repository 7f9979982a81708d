"""The node loop: every TensorFlow tensor becomes a constant or a Relax variable that carries the tensor's name.

Goes on after a node that cannot be converted (what depends on it is skipped), so one run names every problem.
``If`` with a constant condition is replaced by the branch it takes, ``While`` with constant conditions is unrolled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm.relax import Expr

from ...errors import BadModel, UnsupportedModel
from ...ir.plan import TensorInfo
from ..network import NetworkBuilder, dtype_of, shape_of
from ..refused import MISFITS, Refused, last_line
from .graph import CONTROL_FLOW, BrokenGraph, Graph, Operation, inlined, needed_for, sorted_operations
from .meanings import MEANINGS, compute
from .node import Made, Node
from .operators import CONVERTERS
from .tensor_list import TensorList
from .tensors import MAX_ELEMENTS, SUPPORTED_DTYPES, array_of

MAX_STEPS = 256  # of an unrolled loop: the code grows with every one
SMALL_BYTES = 4096  # weights that were stored small stay small: larger casts are left to the compiler


class _Skipped:
    """The value of a tensor whose node could not be converted."""


SKIPPED = _Skipped()
Scope = dict[str, Any]


class GraphConverter:
    """Converts one graph; ``problems`` and ``warnings`` collect what was found on the way."""

    def __init__(self, path: Path, graph: Graph) -> None:
        self._path, self._graph = path, graph
        self._build = NetworkBuilder()
        self._made: dict[str, Made] = {}
        self.problems: list[str] = []
        self.warnings: list[str] = []

    def convert(self, inputs: Sequence[TensorInfo]) -> tuple[tvm.IRModule, tuple[TensorInfo, ...]]:
        """Return the module and its outputs.

        Raises:
            UnsupportedModel: names every node that cannot be converted, and why.
            BadModel: the graph is no graph.
        """
        scope: Scope = {i.name: self._build.input(i.name, i.shape, i.dtype) for i in inputs}
        try:
            self._run(needed_for(self._graph.operations, self._graph.outputs), scope)
        except BrokenGraph as broken:
            raise BadModel(f"{self._path}", f"{broken}", "The file is damaged; freeze the model again.") from None
        if self.problems:
            count = "1 node" if len(self.problems) == 1 else f"{len(self.problems)} nodes"
            why = f"{count} cannot be built: {'; '.join(sorted(self.problems))}"
            raise UnsupportedModel(f"{self._path}", why, "See docs/errors.md#unsupported-attribute.")
        names = [name for output in self._graph.outputs for name in _all_outputs(output, scope)]
        exprs = [self._result(scope[name]) for name in names]
        infos = tuple(TensorInfo(n, shape_of(e), dtype_of(e)) for n, e in zip(names, exprs, strict=True))
        return self._build.finish(exprs), infos

    def tensors(self, mod: tvm.IRModule) -> frozenset[str]:
        """Return the names of the module's variables that compute a tensor of the graph."""
        known = {o.name for o in self._graph.operations}
        names = (b.var.name for block in mod["main"].body.blocks for b in block.bindings)
        return frozenset(name for name in names if name.partition(":")[0] in known)

    def _result(self, value: Any) -> Expr:
        if isinstance(value, TensorList):
            raise UnsupportedModel(f"{self._path}", "an output is a list of tensors", "Stack it before it is returned.")
        return self._build.constant(value) if isinstance(value, np.ndarray) else value

    def _run(self, operations: Sequence[Operation], scope: Scope) -> None:
        for operation in operations:
            if operation.name in scope:
                continue  # an input
            for i, value in enumerate(self._results(operation, scope)):
                scope[operation.output(i)] = value

    def _results(self, operation: Operation, scope: Scope) -> Sequence[Any]:
        try:
            values = [_read(scope, name) for name in operation.inputs]
            if any(isinstance(value, _Skipped) for value in values):
                return [SKIPPED] * 8  # more outputs than any operator has that may be refused
            if operation.kind == "Const":
                return [array_of(operation.attr("value"), "the constant")]
            if operation.kind in CONTROL_FLOW:
                return self._control_flow(operation, values)
            if _is_foldable(operation, values):
                return [_checked(array) for array in compute(operation, values)]
            return self._converted(operation, values)
        except Refused as refused:
            self.problems.append(f"{operation.label}: {refused.sentence}")
        return [SKIPPED] * 8

    def _converted(self, operation: Operation, values: list[Any]) -> list[Any]:
        if operation.kind not in CONVERTERS:
            raise Refused("the operator is not supported")
        try:
            result = CONVERTERS[operation.kind](Node(operation, values, self._build, self._made.get, self._warn))
            results: list[Any] = list(result) if isinstance(result, list | tuple) else [result]
            results = [self._build.emit(e) if isinstance(e, Expr) else e for e in results]
        except MemoryError:
            raise Refused("it needs more memory than there is") from None
        except MISFITS as error:
            raise Refused(f"operands {_operands(values)} do not fit ({last_line(error)})") from error
        for i, value in enumerate(results):
            if isinstance(value, Expr):
                if math.prod(shape_of(value)) > MAX_ELEMENTS:
                    raise Refused(f"its result {list(shape_of(value))} has more than {MAX_ELEMENTS} elements")
                self._build.rename(value, operation.output(i))
        self._made[operation.name] = Made(operation, tuple(values))
        return results

    def _warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)

    def _control_flow(self, operation: Operation, values: list[Any]) -> list[Any]:
        if operation.kind in ("If", "StatelessIf"):
            if not isinstance(values[0], np.ndarray):
                raise Refused("its condition is known only at run time", "Freeze one branch only.")
            branch = "then_branch" if bool(values[0].reshape(-1)[0]) else "else_branch"
            return self._called(operation, branch, values[1:], operation.name)
        for step in range(MAX_STEPS + 1):
            (goes_on,) = self._called(operation, "cond", values, f"{operation.name}/{step}/cond")
            if not isinstance(goes_on, np.ndarray):
                raise Refused("its number of steps is known only at run time", "Give the sequence a fixed length.")
            if not goes_on.reshape(-1)[0]:
                return values
            values = self._called(operation, "body", values, f"{operation.name}/{step}")
        raise Refused(f"it runs more than {MAX_STEPS} steps", "Give a shorter sequence with --shape.")

    def _called(self, operation: Operation, key: str, values: list[Any], prefix: str) -> list[Any]:
        """Return the results of the function in attribute ``key`` on ``values``; refused when a part of it is."""
        function = self._graph.functions.get(str(operation.attr(key)))
        if function is None:
            raise Refused(f"function '{operation.attr(key)}' is not in the file")
        arguments = tuple(f"{prefix}/argument{i}" for i in range(len(values)))
        body, results = inlined(Operation(prefix, operation.kind, arguments), function)
        scope: Scope = dict(zip(arguments, values, strict=True))
        before = len(self.problems)
        self._run(needed_for(sorted_operations(body, arguments), results.values()), scope)
        if len(self.problems) > before:
            inner = self.problems[before:]
            del self.problems[before:]
            raise Refused(f"in its function '{function.name}': {'; '.join(inner)}")
        return [_read(scope, name) for name in results.values()]


def _read(scope: Scope, name: str) -> Any:
    if name not in scope:
        raise Refused(f"it reads '{name}', an output that its node does not have")
    value = scope[name]
    if value is None:
        raise Refused(f"it reads '{name}', an output that is not supported")
    return value


def _all_outputs(output: str, scope: Scope) -> list[str]:
    """Return the tensors of an output node: all of them, as nobody reads any."""
    names, index = [output], 1
    while scope.get(f"{output}:{index}") is not None:
        names.append(f"{output}:{index}")
        index += 1
    return names


def _is_foldable(operation: Operation, values: list[Any]) -> bool:
    if operation.kind not in MEANINGS or not all(isinstance(value, np.ndarray) for value in values):
        return False
    if operation.kind != "Cast" or not values:
        return True
    target = operation.attr("DstT", "")
    if target not in SUPPORTED_DTYPES:
        raise Refused(f"dtype {target} is not supported", f"Supported: {', '.join(SUPPORTED_DTYPES)}.")
    size = np.dtype(target).itemsize
    return values[0].size * size <= SMALL_BYTES or size < 2 * values[0].itemsize


def _checked(array: Any) -> Any:
    if isinstance(array, np.ndarray) and str(array.dtype) not in SUPPORTED_DTYPES:
        raise Refused(f"its constant result has dtype {array.dtype}", f"Supported: {', '.join(SUPPORTED_DTYPES)}.")
    return array


def _operands(values: list[Any]) -> str:
    def words(value: Any) -> str:
        if isinstance(value, TensorList):
            return f"list of {len(value.items)}"
        if isinstance(value, np.ndarray):
            return f"{list(value.shape)} {value.dtype}"
        return f"{list(shape_of(value))} {dtype_of(value)}"

    return ", ".join(words(value) for value in values)
