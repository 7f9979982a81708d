"""The node loop: every ONNX value becomes a constant or a Relax variable that carries the tensor's name.

Goes on after a node that cannot be converted (what depends on it is skipped), so one run names every problem.
``If`` with a constant condition is replaced by the branch it takes. With a condition known only at run time both
branches are computed and ``where`` chooses, which needs outputs of equal shape.
"""

from __future__ import annotations

import math
from collections import ChainMap, Counter
from collections.abc import Iterable, MutableMapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import tvm
from tvm import relax
from tvm.relax import Expr

from ...errors import BadModel, UnsupportedModel
from ...ir.plan import TensorInfo
from ..network import NetworkBuilder, dtype_of, shape_of
from . import fold
from .expand_function import body_of
from .node import Node, Refused, Value, label_of, operator_of
from .operators import CONVERTERS
from .preflight import is_supported
from .shapes import MAX_ELEMENTS

Scope = MutableMapping[str, "Value | _Skipped"]
# What TVM and numpy raise about operands that do not fit; a subclass of RuntimeError is TVM's own.
_MISFITS = (ValueError, TypeError, RuntimeError, IndexError, ArithmeticError)


class _Skipped:
    """The value of a tensor whose node could not be converted."""


SKIPPED = _Skipped()


class GraphConverter:
    """Converts one model; ``problems`` and ``warnings`` collect what was found on the way."""

    def __init__(self, path: Path, model: onnx.ModelProto, opset: int) -> None:
        self._path, self._graph, self._opset = path, model.graph, opset
        self._build = NetworkBuilder()
        self._uses = Counter(_reads(model.graph)) + Counter(output.name for output in model.graph.output)
        self.problems: list[str] = []
        self.warnings: list[str] = []

    def convert(self, inputs: Sequence[TensorInfo]) -> tuple[tvm.IRModule, tuple[TensorInfo, ...]]:
        """Return the module and its outputs.

        Raises:
            UnsupportedModel: names every node that cannot be converted, and why.
            BadModel: the graph is no graph: a tensor nobody computes, or two nodes that compute the same one.
        """
        scope: Scope = {i.name: self._build.input(i.name, i.shape, i.dtype) for i in inputs}
        outputs = self._run(self._graph, scope)
        if self.problems:
            count = "1 node" if len(self.problems) == 1 else f"{len(self.problems)} nodes"
            why = f"{count} cannot be built: {'; '.join(sorted(self.problems))}"
            raise UnsupportedModel(f"{self._path}", why, "See docs/errors.md#unsupported-attribute.")
        exprs = [self._build.constant(v) if isinstance(v, np.ndarray) else v for v in outputs]
        names = [output.name for output in self._graph.output]
        infos = tuple(TensorInfo(n, shape_of(e), dtype_of(e)) for n, e in zip(names, exprs, strict=True))
        return self._build.finish(exprs), infos

    def tensors(self, mod: tvm.IRModule) -> frozenset[str]:
        """Return the names of the module's variables that compute a tensor of the main graph."""
        known = {name for proto in self._graph.node for name in proto.output if name}
        return frozenset(b.var.name for block in mod["main"].body.blocks for b in block.bindings) & known

    def _run(self, graph: onnx.GraphProto, scope: Scope) -> list[Value]:
        """Convert a graph within ``scope`` and return its outputs."""
        for tensor in graph.initializer:
            scope[tensor.name] = self._weight(tensor)
        self._run_nodes(graph.node, scope)
        return [self._look_up(output.name, scope, "the graph's output") for output in graph.output]  # type: ignore[misc]

    def _run_nodes(self, nodes: Iterable[onnx.NodeProto], scope: Scope) -> None:
        for proto in nodes:
            if any(name in scope for name in proto.output if name):
                raise BadModel(f"{self._path}", f"{label_of(proto)} computes a tensor that exists", _AGAIN)
            for name, value in zip(proto.output, self._results(proto, scope), strict=False):
                if name:
                    scope[name] = value

    def _weight(self, tensor: onnx.TensorProto) -> Value | _Skipped:
        try:
            array = fold.array_of(tensor)
        except Refused as refused:
            self.problems.append(_sentence(f"weight '{tensor.name}'", refused))
            return SKIPPED
        if array.dtype.kind == "f" and np.isnan(array).any():
            self.warnings.append(f"weight '{tensor.name}' has {int(np.isnan(array).sum())} NaN values")
        return array

    def _look_up(self, name: str, scope: Scope, reader: str) -> Value | _Skipped:
        if name not in scope:
            raise BadModel(f"{self._path}", f"{reader} needs tensor '{name}', which no earlier node computes", _AGAIN)
        return scope[name]

    def _results(self, proto: onnx.NodeProto, scope: Scope) -> Sequence[Value | _Skipped]:
        values = [self._look_up(name, scope, label_of(proto)) if name else None for name in proto.input]
        supported = is_supported(proto, self._opset)
        try:
            if any(isinstance(value, _Skipped) for value in values):
                if not supported:
                    raise Refused("the operator is not supported")
                return [SKIPPED] * len(proto.output)
            if fold.is_foldable(proto, values):
                return fold.evaluate(proto, values, self._opset)
            if proto.op_type == "If":
                return self._if(proto, values[0], scope)
            if operator_of(proto) not in CONVERTERS:
                return self._expanded(proto, values, scope)  # type: ignore[arg-type]
            return self._converted(proto, values)  # type: ignore[arg-type]
        except Refused as refused:
            self.problems.append(_sentence(label_of(proto), refused))
        return [SKIPPED] * len(proto.output)

    def _expanded(self, proto: onnx.NodeProto, values: list[Value | None], scope: Scope) -> list[Value | _Skipped]:
        """Convert an operator by the body that the standard defines it with."""
        body = body_of(proto, self._opset, [None if v is None else _type_of(v) for v in values])
        if body is None:
            raise Refused("the operator is not supported")
        self._uses.update(name for node in body.nodes for name in node.input)
        outer, self._opset = self._opset, body.opset
        inner: Scope = ChainMap({}, scope)  # type: ignore[arg-type]
        try:
            self._run_nodes(body.nodes, inner)
        finally:
            self._opset = outer
        return [inner[name] if name else SKIPPED for name in proto.output]

    def _converted(self, proto: onnx.NodeProto, values: list[Value | None]) -> list[Value]:
        try:
            node = Node(proto, self._opset, values, self._build, lambda name: self._uses[name])
            result = CONVERTERS[operator_of(proto)](node)
            results: list[Any] = list(result) if isinstance(result, list | tuple) else [result]
            results = [self._build.emit(e) if isinstance(e, Expr) else e for e in results]
        except MemoryError:
            raise Refused("it needs more memory than there is") from None
        except _MISFITS as error:
            raise Refused(f"operands {_operands(values)} do not fit ({_first_line(error)})") from error
        if unread := node.unread():
            raise Refused(f"attribute {', '.join(repr(a) for a in unread)} is not supported")
        for name, value in zip(proto.output, results, strict=False):
            if value is None and name and self._uses[name]:
                raise Refused(f"output '{name}' is not supported")
            if isinstance(value, Expr):
                _check_size(value)
                self._build.rename(value, name)
        return results + [SKIPPED] * (len(proto.output) - len(results))  # type: ignore[return-value]

    def _if(self, proto: onnx.NodeProto, condition: Value | _Skipped | None, scope: Scope) -> Sequence[Value]:
        branches = {a.name: a.g for a in proto.attribute}
        if not {"then_branch", "else_branch"} <= set(branches):
            raise Refused("it does not have both branches")
        if isinstance(condition, np.ndarray):
            taken = branches["then_branch" if bool(condition.reshape(-1)[0]) else "else_branch"]
            return self._run(taken, ChainMap({}, scope))  # type: ignore[arg-type]
        then, other = (self._run(branches[b], ChainMap({}, scope)) for b in ("then_branch", "else_branch"))
        if any(isinstance(value, _Skipped) for value in [*then, *other]):
            return [SKIPPED] * len(proto.output)  # type: ignore[list-item]
        results = []
        for name, a, b in zip(proto.output, then, other, strict=True):
            left, right = (self._build.constant(v) if isinstance(v, np.ndarray) else v for v in (a, b))
            if (shape_of(left), dtype_of(left)) != (shape_of(right), dtype_of(right)):
                why = f"its branches give {shape_of(left)} and {shape_of(right)} for '{name}'"
                raise Refused(f"the condition is known only at run time and {why}", "Export one branch only.")
            chosen = self._build.emit(relax.op.where(condition, left, right))
            self._build.rename(chosen, name)
            results.append(chosen)
        return results


_AGAIN = "The file is damaged or not sorted; export it again."


def _check_size(value: Expr) -> None:
    if math.prod(shape_of(value)) > MAX_ELEMENTS:
        raise Refused(f"its result {list(shape_of(value))} has more than {MAX_ELEMENTS} elements")


def _sentence(label: str, refused: Refused) -> str:
    return f"{label}: {refused.why}{f'. {refused.next}' if refused.next else ''}".rstrip(".")


def _type_of(value: Value) -> tuple[str, tuple[int, ...]]:
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape
    return dtype_of(value), shape_of(value)


def _operands(values: list[Value | None]) -> str:
    def words(value: Value | None) -> str:
        if value is None:
            return "(none)"
        if isinstance(value, np.ndarray):
            return f"{list(value.shape)} {value.dtype}"
        return f"{list(shape_of(value))} {dtype_of(value)}"

    return ", ".join(words(value) for value in values)


def _first_line(error: Exception) -> str:
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    text = lines[-1] if lines else type(error).__name__
    return text if len(text) < 200 else text[-200:]


def _reads(graph: onnx.GraphProto) -> list[str]:
    """Return every reading of a tensor by a node or as an output of a subgraph."""
    names = [name for proto in graph.node for name in proto.input]
    for proto in graph.node:
        for attribute in proto.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                names += _reads(attribute.g) + [output.name for output in attribute.g.output]
    return names
