"""The node loop: every ONNX value becomes a constant or a Relax variable that carries the tensor's name.

Goes on after a node that cannot be converted (what depends on it is skipped), so one run names every problem.
``control_flow.py`` writes out branches and loops, ``expand_function.py`` gives the bodies of operators that the
standard composes of simpler ones. Networks in float16 are computed in float32, operator by operator (``KEEPS_HALVES``).
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
from ..refused import MISFITS, Refused, last_line
from . import fold
from .control_flow import CONTROL_FLOW, ControlFlow
from .expand_function import body_of
from .node import Node, Value, label_of, operator_of
from .operators import CONVERTERS
from .preflight import is_supported
from .shapes import MAX_ELEMENTS

Scope = MutableMapping[str, "Value | _Skipped"]


class _Skipped:
    """The value of a tensor whose node could not be converted."""


SKIPPED = _Skipped()


class GraphConverter:
    """Converts one model; ``problems`` and ``warnings`` collect what was found on the way."""

    def __init__(self, path: Path, model: onnx.ModelProto, opset: int) -> None:
        self._path, self._graph, self._opset = path, model.graph, opset
        self._build = NetworkBuilder()
        self._control = ControlFlow(self._build, self._run, SKIPPED)
        self._uses = Counter(_reads(model.graph)) + Counter(output.name for output in model.graph.output)
        self.problems: list[str] = []
        self.warnings: list[str] = []

    def convert(self, inputs: Sequence[TensorInfo]) -> tuple[tvm.IRModule, tuple[TensorInfo, ...]]:
        """Return the module and its outputs.

        Raises:
            UnsupportedModel: names every node that cannot be converted, and why.
            BadModel: the graph is no graph: a tensor nobody computes, or two nodes that compute the same one.
        """
        for info in inputs:
            if 0 in info.shape:
                why = f"input '{info.name}' is {list(info.shape)} and has no elements"
                raise UnsupportedModel(f"{self._path}", why, "Every dimension must be at least 1.")
            if math.prod(info.shape) > MAX_ELEMENTS:
                why = f"input '{info.name}' is {list(info.shape)} and has more than {MAX_ELEMENTS} elements"
                raise UnsupportedModel(f"{self._path}", why, "Give it a smaller shape.")
        scope: Scope = {i.name: self._build.input(i.name, i.shape, i.dtype) for i in inputs}
        outputs = self._run(self._graph, scope)
        if self.problems:
            count = "1 node" if len(self.problems) == 1 else f"{len(self.problems)} nodes"
            why = f"{count} cannot be built: {'; '.join(sorted(self.problems))}"
            raise UnsupportedModel(f"{self._path}", why, "See docs/errors.md#unsupported-attribute.")
        names = [output.name for output in self._graph.output]
        for name, value in zip(names, outputs, strict=True):
            if isinstance(value, list) or value is None:
                why = f"output '{name}' is a sequence or an optional, not a tensor"
                raise UnsupportedModel(f"{self._path}", why, "Only tensors can be outputs.")
            if isinstance(value, np.ndarray) and value.size == 0:
                why = f"output '{name}' is {list(value.shape)} and has no elements"
                raise UnsupportedModel(f"{self._path}", why, "Leave the output out.")
        exprs = [self._build.constant(v) if isinstance(v, np.ndarray) else v for v in outputs]
        infos = tuple(TensorInfo(n, shape_of(e), dtype_of(e)) for n, e in zip(names, exprs, strict=True))
        return self._build.finish(exprs), infos

    def tensors(self, mod: tvm.IRModule) -> frozenset[str]:
        """Return the names of the module's variables that compute a tensor of the main graph."""
        known = {name for proto in self._graph.node for name in proto.output if name}
        return frozenset(b.var.name for block in mod["main"].body.blocks for b in block.bindings) & known

    def _run(self, graph: onnx.GraphProto, scope: Scope) -> list[Value]:
        """Convert a graph within ``scope`` and return its outputs."""
        for name, count in Counter(tensor.name for tensor in graph.initializer).items():
            if count > 1:
                raise BadModel(f"{self._path}", f"two weights are called '{name}'", _AGAIN)
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
            self.problems.append(f"weight '{tensor.name}': {refused.sentence}")
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
            if operator_of(proto) in CONTROL_FLOW:
                return self._control.results(proto, values, scope, self._opset)
            if operator_of(proto) not in CONVERTERS:
                return self._expanded(proto, values, scope)  # type: ignore[arg-type]
            return self._converted(proto, values)  # type: ignore[arg-type]
        except Refused as refused:
            self.problems.append(f"{label_of(proto)}: {refused.sentence}")
        return [SKIPPED] * len(proto.output)

    def _expanded(self, proto: onnx.NodeProto, values: list[Value | None], scope: Scope) -> list[Value | _Skipped]:
        """Convert an operator by the body that the standard defines it with."""
        body = body_of(proto, self._opset, [None if v is None or isinstance(v, list) else _type_of(v) for v in values])
        if body is None:
            raise Refused("the operator is not supported")
        nodes = _needed(body.nodes, [name for name in proto.output if name and self._uses[name]])
        self._uses.update(_node_reads(nodes))
        outer, self._opset = self._opset, body.opset
        inner: Scope = ChainMap({}, scope)  # type: ignore[arg-type]
        try:
            self._run_nodes(nodes, inner)
        finally:
            self._opset = outer
        return [inner.get(name, SKIPPED) for name in proto.output]

    def _converted(self, proto: onnx.NodeProto, values: list[Value | None]) -> list[Value]:
        try:
            halves = any(v is not None and not isinstance(v, list) and _type_of(v)[0] == "float16" for v in values)
            halves = halves and operator_of(proto) not in KEEPS_HALVES
            operands = [self._widened(v, proto) for v in values] if halves else values
            node = Node(proto, self._opset, operands, self._build, lambda name: self._uses[name])
            result = CONVERTERS[operator_of(proto)](node)
            results: list[Any] = list(result) if isinstance(result, list | tuple) else [result]
            results = [self._build.emit(e) if isinstance(e, Expr) else e for e in results]
            results = [self._narrowed(e) for e in results] if halves else results
        except MemoryError:
            raise Refused("it needs more memory than there is") from None
        except MISFITS as error:
            raise Refused(f"operands {_operands(values)} do not fit ({last_line(error)})") from error
        if unread := node.unread():
            raise Refused(f"attribute {', '.join(repr(a) for a in unread)} is not supported")
        for name, value in zip(proto.output, results, strict=False):
            if value is None and name and self._uses[name]:
                raise Refused(f"output '{name}' is not supported")
            if isinstance(value, Expr):
                _check_size(value)
                self._build.rename(value, name)
        return results + [SKIPPED] * (len(proto.output) - len(results))  # type: ignore[return-value]

    def _widened(self, value: Value | None, proto: onnx.NodeProto) -> Value | None:
        """Return a float16 tensor as float32, others as they are."""
        if value is None or isinstance(value, list) or _type_of(value)[0] != "float16":
            return value
        if not isinstance(value, np.ndarray):
            return self._build.emit(relax.op.astype(value, "float32"))
        if proto.op_type in _READS_WEIGHTS and value.nbytes > fold.SMALL_BYTES:
            return self._build.emit(relax.op.astype(self._build.constant(value), "float32"))
        return value.astype("float32")

    def _narrowed(self, value: Any) -> Any:
        """Return a float32 result rounded to float16."""
        if isinstance(value, np.ndarray):
            return value.astype("float16") if value.dtype == "float32" else value
        if not isinstance(value, Expr) or dtype_of(value) != "float32":
            return value
        return self._build.emit(relax.op.astype(value, "float16"))


# Operators that only move elements, or say themselves what dtype they give: float16 goes through them as it is. All
# others compute in float32 and round their results, which is what onnxruntime and numpy do on a CPU; our kernels are
# for float32, and sums in float16 would lose digits.
KEEPS_HALVES = frozenset({
    "Cast", "CastLike", "Concat", "DepthToSpace", "Dropout", "Expand", "EyeLike", "Flatten", "Gather", "GatherElements",
    "GatherND", "Identity", "Not", "Pad", "Reshape", "Shape", "Size", "Slice", "SpaceToDepth", "Split", "Squeeze",
    "Softmax", "Tile", "Transpose", "Trilu", "Unsqueeze", "Where", "SequenceConstruct", "SequenceInsert", "SequenceAt",
    "SequenceErase", "SequenceLength", "SplitToSequence", "ConcatFromSequence", "BitCast",
})  # fmt: skip
_READS_WEIGHTS = frozenset({"Conv", "Gemm", "MatMul"})  # their large weights stay small in the file


_AGAIN = "The file is damaged or not sorted; export it again."


def _check_size(value: Expr) -> None:
    if not isinstance(value.ty, relax.TensorType):
        return
    if math.prod(shape_of(value)) == 0:
        raise Refused(f"its result {list(shape_of(value))} has no elements")
    if math.prod(shape_of(value)) > MAX_ELEMENTS:
        raise Refused(f"its result {list(shape_of(value))} has more than {MAX_ELEMENTS} elements")


def _type_of(value: Value) -> tuple[str, tuple[int, ...]]:
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape
    return dtype_of(value), shape_of(value)


def _operands(values: list[Value | None]) -> str:
    def words(value: Value | None) -> str:
        if value is None:
            return "(none)"
        if isinstance(value, list):
            return f"a sequence of {len(value)}"
        if isinstance(value, np.ndarray):
            return f"{list(value.shape)} {value.dtype}"
        return f"{list(shape_of(value))} {dtype_of(value)}"

    return ", ".join(words(value) for value in values)


def _reads(graph: onnx.GraphProto) -> list[str]:
    """Return every reading of a tensor by a node or as an output of a subgraph."""
    return _node_reads(graph.node)


def _node_reads(nodes: Iterable[onnx.NodeProto]) -> list[str]:
    names = []
    for proto in nodes:
        names += proto.input
        for attribute in proto.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                names += _reads(attribute.g) + [output.name for output in attribute.g.output]
    return names


def _needed(nodes: Sequence[onnx.NodeProto], outputs: list[str]) -> list[onnx.NodeProto]:
    """Return the nodes that ``outputs`` depend on."""
    wanted, kept = set(outputs), []
    for proto in reversed(nodes):
        if wanted.intersection(proto.output):
            kept.append(proto)
            wanted.update(_node_reads([proto]))
    return kept[::-1]
