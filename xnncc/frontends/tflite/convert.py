"""The operator loop: every TFLite tensor becomes a constant or a ``Flow`` that carries the tensor's name.

Goes on after an operator that cannot be converted (what depends on it is skipped), so one run names every problem.
Operators of constants are computed now. Variables become inputs ``<variable>`` and outputs ``<variable>:next``: the
difference from their start where that is exact, so that zero begins them and the runtime can keep them.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.relax import Expr

from ...errors import BadModel, UnsupportedModel
from ...ir.plan import TensorInfo
from ..network import NetworkBuilder, dtype_of, shape_of
from ..refused import MISFITS, Refused, last_line
from .flow import Flow
from .interpret import run_operator
from .model import Graph, Model, Operator, Tensor
from .op import Op, Value
from .operators import CONVERTERS, INTEGER, MOVERS
from .state import NEXT, Variable, variable_names, variables_of

MAX_ELEMENTS = 2**28
_MISFITS = (*MISFITS, AssertionError, KeyError)  # an option that the file leaves out is a KeyError
RANDOM = frozenset({"RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM", "MULTINOMIAL"})


class _Skipped:
    """The value of a tensor whose operator could not be converted."""


SKIPPED = _Skipped()


class GraphConverter:
    """Converts one model; ``problems`` and ``warnings`` collect what was found on the way."""

    def __init__(self, path: Path, model: Model) -> None:
        self._path, self._model, self._graph = path, model, model.main
        self._build = NetworkBuilder()
        self._values: dict[int, Value | _Skipped] = {}
        self._handles = variable_names(self._graph)
        self._variables: dict[str, Value | _Skipped] = {}
        self.problems: list[str] = []
        self.warnings: list[str] = []
        self.variables: tuple[Variable, ...] = ()
        self.inputs: tuple[TensorInfo, ...] = ()
        self.outputs: tuple[TensorInfo, ...] = ()
        self._flows: dict[str, Flow] = {}

    def convert(self) -> tvm.IRModule:
        """Return the module; ``inputs`` and ``outputs`` then describe it.

        Raises:
            UnsupportedModel: names every operator that cannot be converted, and why.
            BadModel: a tensor that nobody computes, or variables without a start.
        """
        variables = self._known_variables()
        self._open_inputs(variables)
        for op in self._graph.operators:
            self._convert(op)
        if self.problems:
            count = "1 operator" if len(self.problems) == 1 else f"{len(self.problems)} operators"
            why = f"{count} cannot be built: {'; '.join(sorted(self.problems))}"
            raise UnsupportedModel(f"{self._path}", why, "See docs/errors.md#unsupported-attribute.")
        exprs: list[Expr] = []
        infos: list[TensorInfo] = []
        for name, value in self._results(variables):
            expr = self._build.constant(value) if isinstance(value, np.ndarray) else value.logical(self._build)
            exprs.append(expr)
            infos.append(TensorInfo(name, shape_of(expr), dtype_of(expr)))
        self.outputs = tuple(infos)
        return self._build.finish(exprs)

    def tensors(self, mod: tvm.IRModule) -> frozenset[str]:
        """Return the names of the module's variables that compute a tensor of the model."""
        bound = frozenset(b.var.name for block in mod["main"].body.blocks for b in block.bindings)
        return bound & frozenset(self._flows)

    def planar_tensors(self) -> frozenset[str]:
        """Return the tensors that the module computes as [N, C, H, W]."""
        return frozenset(name for name, flow in self._flows.items() if flow.is_planar)

    def _known_variables(self) -> tuple[Variable, ...]:
        try:
            variables = variables_of(self._model)
        except KeyError as error:
            raise BadModel(f"{self._path}", f"variable {error} is read and never initialised", _AGAIN) from None
        except _MISFITS as error:
            raise BadModel(f"{self._path}", f"its variables cannot be initialised ({error})", _AGAIN) from None
        handed = ", ".join(f"'{v.name}' (starts as {_words(v.start)})" for v in variables if not v.is_kept)
        if handed:
            self.warnings.append(
                f"the network keeps state that does not begin at zero: each variable is an input and an output "
                f"'<variable>{NEXT}', to be handed back by the caller: {handed}"
            )
        self.variables = variables
        return variables

    def _open_inputs(self, variables: tuple[Variable, ...]) -> None:
        infos = [_info(self._graph.tensors[i]) for i in self._graph.inputs]
        infos += [TensorInfo(v.name, v.shape, v.dtype) for v in variables]
        names = [info.name for info in infos]
        for name in names:
            if not name or names.count(name) > 1:
                raise BadModel(f"{self._path}", f"{names.count(name)} inputs are called '{name}'", _AGAIN)
        flows = [Flow(self._build.input(i.name, i.shape, i.dtype)) for i in infos]
        self._values.update(zip(self._graph.inputs, flows, strict=False))
        for variable, flow in zip(variables, flows[len(self._graph.inputs) :], strict=True):
            if variable.offset is not None:
                flow = Flow(self._build.emit(relax.op.add(flow.expr, self._build.constant(variable.offset))))
            self._variables[variable.name] = flow
        self.inputs = tuple(infos)

    def _results(self, variables: tuple[Variable, ...]) -> list[tuple[str, Value]]:
        found: list[tuple[str, Any]] = []
        for index in self._graph.outputs:
            name = self._graph.tensors[index].name
            found.append((name, self._value(index, "the graph's output")))
        found += [(v.name + NEXT, self._kept(v)) for v in variables]
        names = [name for name, _ in found]
        for name in names:
            if not name or names.count(name) > 1:
                raise BadModel(f"{self._path}", f"{names.count(name)} outputs are called '{name}'", _AGAIN)
        return found

    def _kept(self, variable: Variable) -> Any:
        """Return a variable's new value as the runtime keeps it."""
        value: Any = self._variables[variable.name]
        if variable.offset is None:
            return value
        expr = self._build.constant(value) if isinstance(value, np.ndarray) else value.logical(self._build)
        return Flow(self._build.emit(relax.op.subtract(expr, self._build.constant(variable.offset))))

    def _value(self, index: int, reader: str) -> Value | _Skipped | None:
        if index < 0:
            return None
        if index in self._values:
            return self._values[index]
        tensor = self._graph.tensors[index]
        if tensor.data is None:
            why = f"{reader} needs tensor '{tensor.name}', which no earlier operator computes"
            raise BadModel(f"{self._path}", why, _AGAIN)
        return tensor.data

    def _convert(self, op: Operator) -> None:
        reader = label_of(self._graph, op)
        if any(index in self._values for index in op.outputs) and op.kind != "VAR_HANDLE":
            raise BadModel(f"{self._path}", f"{reader} computes a tensor that exists", _AGAIN)
        if op.kind in ("VAR_HANDLE", "CALL_ONCE"):
            return
        if op.kind in ("READ_VARIABLE", "ASSIGN_VARIABLE"):
            self._access(op, reader)
            return
        values = [self._value(index, reader) for index in op.inputs]
        results: list[Any] = [SKIPPED] * len(op.outputs)
        if not any(isinstance(value, _Skipped) for value in values):
            try:
                results = self._converted(op, values)  # type: ignore[arg-type]
            except Refused as refused:
                hint = f". {refused.next}" if refused.next else ""
                self.problems.append(f"{reader}: {refused.why}{hint}".rstrip("."))
        self._values.update(zip(op.outputs, results, strict=True))

    def _access(self, op: Operator, reader: str) -> None:
        handle = self._handles.get(op.inputs[0]) if op.inputs else None
        if handle not in self._variables:
            raise BadModel(f"{self._path}", f"{reader} has no variable to work on", _AGAIN)
        if op.kind == "READ_VARIABLE":
            self._values[op.outputs[0]] = self._variables[handle]
            return
        value = self._value(op.inputs[1], reader) if len(op.inputs) > 1 else None
        if value is None:
            raise BadModel(f"{self._path}", f"{reader} has nothing to assign", _AGAIN)
        old = self._variables[handle]
        if not isinstance(value, _Skipped) and not isinstance(old, _Skipped) and tuple(value.shape) != tuple(old.shape):
            self.problems.append(f"{reader}: variable '{handle}' changes its shape")
        self._variables[handle] = value

    def _converted(self, op: Operator, values: list[Value | None]) -> list[Value]:
        tensors = [self._graph.tensors[i] for i in op.outputs]
        for tensor in tensors:
            if math.prod(tensor.shape) > MAX_ELEMENTS:
                raise Refused(f"its result {list(tensor.shape)} has more than {MAX_ELEMENTS} elements")
        try:
            if op.kind == "SHAPE" or op.kind == "RANK":
                return [_shape_of(op.kind, values[0], tensors[0])]
            if all(value is None or isinstance(value, np.ndarray) for value in values) and op.kind not in RANDOM:
                _check_growth(op.kind, values)
                return list(run_operator(self._graph, op, values))  # type: ignore[arg-type]
            node = Op(self._graph, op, values, self._build, self._warn)
            result = self._converter(node)(node)
        except MemoryError:
            raise Refused("it needs more memory than there is") from None
        except _MISFITS as error:
            raise Refused(f"operands {_operands(values)} do not fit ({last_line(error)})") from error
        results = list(result) if isinstance(result, list | tuple) else [result]
        if len(results) != len(tensors):
            raise Refused(f"it has {len(tensors)} outputs, expected {len(results)}")
        for flow, tensor in zip(results, tensors, strict=True):
            self._name(flow, tensor)
        return results

    def _converter(self, n: Op) -> Any:
        kind = n.kind
        stored = [t for t in _operand_tensors(n) if t.is_quantised]
        if not stored:
            return CONVERTERS[kind]
        if kind in INTEGER:
            _check_stored(kind, stored)
            return INTEGER[kind]
        if kind not in MOVERS:
            raise Refused(f"it is not supported on quantised {stored[0].dtype}")
        _check_unmoved(n)
        return CONVERTERS[kind]

    def _name(self, flow: Flow, tensor: Tensor) -> None:
        """Give the tensor's name to what computes it, which must have the shape and dtype that the file says."""
        if tensor.shape != flow.shape and (tensor.shape or math.prod(flow.shape) != 1):
            raise Refused(f"its result is {list(flow.shape)}, the file says {list(tensor.shape)}")
        if dtype_of(flow.expr) != tensor.dtype:
            raise Refused(f"its result is {dtype_of(flow.expr)}, the file says {tensor.dtype}")
        if tensor.name and tensor.name not in self._flows:
            self._flows[tensor.name] = flow
            self._build.rename(flow.expr, tensor.name)

    def _warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)


_AGAIN = "The file is damaged; convert the model again."


def _check_growth(kind: str, values: list[Any]) -> None:
    """Refuse an operator of constants whose operands, not its result's shape, ask for endless memory."""
    with np.errstate(all="ignore"):
        sizes = [np.abs(np.asarray(value, "float64")).reshape(-1) for value in values if value is not None]
    if kind in ("PAD", "PADV2", "MIRROR_PAD", "SPACE_TO_BATCH_ND"):
        wanted = math.prod(size + 2.0 * float(sizes[1].max(initial=0)) for size in values[0].shape)
    elif kind in ("TILE", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"):
        wanted = values[0].size * float(np.prod(sizes[1]))
    elif kind == "RANGE":
        wanted = float((sizes[0].max() + sizes[1].max()) / max(sizes[2].min(), 1e-30))
    elif kind == "ONE_HOT":
        wanted = values[0].size * float(sizes[1].max())
    else:
        return
    if not wanted <= MAX_ELEMENTS:
        raise Refused(f"its result would have {wanted:.3g} elements, at most {MAX_ELEMENTS} are built")


def label_of(graph: Graph, op: Operator) -> str:
    """Return the operator for a message: its number, its kind and the tensor that it computes."""
    names = [graph.tensors[i].name for i in op.outputs]
    return f"operator {op.index} ({op.kind}{f' of {names[0]!r}' if names else ''})"


def _info(tensor: Tensor) -> TensorInfo:
    return TensorInfo(tensor.name, tensor.shape, tensor.dtype)


def _words(start: np.ndarray) -> str:
    values = np.unique(start)
    return f"all {values[0]}" if values.size == 1 else "values of the file"


def _operand_tensors(n: Op) -> list[Tensor]:
    """Return the tensors that decide whether an operator is quantised: computed ones and results."""
    computed = [n.tensor(i) for i in range(len(n)) if n.has(i) and not n.is_const(i)]
    return [*computed, *(n.out(i) for i in range(len(n.op.outputs)))]


def _check_stored(kind: str, stored: list[Tensor]) -> None:
    for tensor in stored:
        if tensor.dtype == "int16" and kind not in ("QUANTIZE", "DEQUANTIZE"):
            raise Refused(f"tensor '{tensor.name}' has 16-bit activations", "Convert the model with 8-bit activations.")
        if tensor.quantisation is not None and not (tensor.quantisation.scale > 0).all():
            raise Refused(f"tensor '{tensor.name}' has a scale of 0")


def _check_unmoved(n: Op) -> None:
    """Refuse an operator that only moves numbers between tensors in which they mean different things."""
    tensors = [t for t in _operand_tensors(n) if t.dtype in ("int8", "uint8", "int16") and t.quantisation is not None]
    if n.kind in ("ARG_MAX", "ARG_MIN", "CAST"):
        return
    for tensor in tensors[1:]:
        if not tensors[0].quantisation.equals(tensor.quantisation):  # type: ignore[union-attr]
            raise Refused(f"tensors '{tensors[0].name}' and '{tensor.name}' have different scales")


def _shape_of(kind: str, value: Value | None, tensor: Tensor) -> np.ndarray:
    if value is None:
        raise Refused("it has no operand")
    return np.asarray(value.shape if kind == "SHAPE" else len(value.shape), tensor.dtype)


def _operands(values: list[Value | None]) -> str:
    def words(value: Value | None) -> str:
        if value is None:
            return "(none)"
        dtype = value.dtype if isinstance(value, np.ndarray) else dtype_of(value.expr)
        return f"{list(value.shape)} {dtype}"

    return ", ".join(words(value) for value in values)
