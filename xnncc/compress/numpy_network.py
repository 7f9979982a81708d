"""A Relax module as a numpy function with gradients: what calibration and step allocation run.

    network = NumpyNetwork(mod)
    outputs = network.run(feeds)                       # forward only
    trace = network.trace(feeds)                       # forward, remembering
    gradients = trace.backward({head: gradient, ...})  # digest of a constant -> gradient

Only the part of the network that ``numpy_operators.py`` knows is run. Its ends are the *heads*: outputs of the network,
and float tensors that only unknown operators read (the boxes before a detector's suppression).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.ir import Call, GenericConst
from tvm.relax import Expr, TupleGetItem, Var

from ..ir.coded import digest
from .numpy_operators import OPERATORS, Operator, Vjp
from .result import Samples

Array = np.ndarray


@dataclass(frozen=True)
class Step:
    """One binding: ``operands`` are variables, digests of constants, tuples of those, or plain values."""

    call: Expr
    function: Operator
    operands: tuple[Any, ...]
    result: Var


@dataclass(frozen=True)
class ConstantRef:
    """An operand that lies in ``NumpyNetwork.constants``."""

    digest: str


class NumpyNetwork:
    """``constants`` (digest -> array) may be overwritten between runs, digests stay those of the module.

    ``dtype``: of all sums. ``heads``: variables at the ends. ``steps``: in order of computation.
    """

    def __init__(self, mod: tvm.IRModule, dtype: type[np.floating] = np.float32) -> None:
        self.dtype = dtype
        self.constants: dict[str, Array] = {}
        self.params: tuple[Var, ...] = tuple(mod["main"].params)
        self.steps: list[Step] = []
        self.heads: list[Var] = []
        self.producers: dict[Var, Step] = {}
        self.unknown: set[str] = set()
        self._digests: dict[Any, str] = {}
        self._plan(mod["main"])

    def _plan(self, main: relax.Function) -> None:
        known: dict[Var, Any] = {param: _blank(param.ty, self.dtype) for param in self.params}
        wanted = [var for var in main.body.body.fields if isinstance(var, Var)]
        for binding in (b for block in main.body.blocks for b in block.bindings):
            step = self._step(binding.var, binding.value)
            inputs = list(variables_of(step.operands))
            if all(var in known for var in inputs) and self._runs(step, known):
                known[binding.var] = _blank(binding.var.ty, self.dtype)
                self.steps.append(step)
                self.producers[binding.var] = step
            else:
                self.unknown.add(getattr(getattr(binding.value, "op", None), "name", type(binding.value).__name__))
                wanted.extend(inputs)
        floats = [v for v in dict.fromkeys(wanted) if v in known and str(getattr(v.ty, "dtype", "")) == "float32"]
        self.heads = [var for var in floats if var not in self.params]

    def _runs(self, step: Step, known: Mapping[Var, Any]) -> bool:
        """Whether the operator takes the attributes and dtypes of this call: asked by running it on zeros."""
        with np.errstate(all="ignore"):
            return step.function(step.call, *(self._value(operand, known) for operand in step.operands)) is not None

    def _step(self, var: Var, value: Expr) -> Step:
        if isinstance(value, Call):
            name = getattr(value.op, "name", "").removeprefix("relax.")
            return Step(value, OPERATORS.get(name, _unknown), tuple(self._operand(arg) for arg in value.args), var)
        if isinstance(value, TupleGetItem):
            return Step(value, _get_item, (self._operand(value.tuple_value),), var)
        return Step(value, _same, (self._operand(value),), var)

    def _operand(self, expr: Any) -> Any:
        if isinstance(expr, GenericConst):
            return self._constant(expr)
        if isinstance(expr, relax.Tuple):
            return tuple(self._operand(field) for field in expr.fields)
        if isinstance(expr, relax.ShapeExpr):
            return tuple(int(dim) for dim in expr.values)
        if isinstance(expr, tvm.tirx.IntImm | tvm.tirx.FloatImm):
            return expr.value
        return expr

    def _constant(self, expr: GenericConst) -> Any:
        if expr not in self._digests:
            array = expr.value.numpy()
            self._digests[expr] = digest(array)
            self.constants[self._digests[expr]] = self._cast(array)
        return ConstantRef(self._digests[expr])

    def _cast(self, array: Array) -> Array:
        return array.astype(self.dtype) if array.dtype.kind == "f" else array

    def feeds(self, samples: Samples) -> Iterator[list[Array]]:
        """Yield what ``run`` takes for each sample, in the shapes of the network's inputs."""
        names = [param.name for param in self.params]
        shapes = [tuple(int(dim) for dim in param.ty.shape.values) for param in self.params]
        for row in range(len(samples)):
            yield [samples.inputs[name][row].reshape(shape) for name, shape in zip(names, shapes, strict=True)]

    def run(self, feeds: Sequence[Array], watch: Callable[[Step, list[Any]], None] | None = None) -> dict[Var, Array]:
        """Return the heads' values; ``watch`` sees each step before it runs and may replace its operands."""
        return self.trace(feeds, watch, remember=False).values

    def trace(
        self,
        feeds: Sequence[Array],
        watch: Callable[[Step, list[Any]], None] | None = None,
        remember: bool = True,
        keep: Iterable[Var] = (),
    ) -> Trace:
        """Return the values of the heads and of ``keep``, and the way back.

        Without ``remember`` there is no way back, and tensors are freed after their last use.
        """
        values: dict[Var, Any] = {p: self._cast(np.asarray(f)) for p, f in zip(self.params, feeds, strict=True)}
        left = Counter(var for step in self.steps for var in variables_of(step.operands))
        wanted = {*self.heads, *keep}
        left.update(wanted)
        backward: list[tuple[Step, Vjp]] = []
        with np.errstate(all="ignore"):
            for step in self.steps:
                operands = [self._value(operand, values) for operand in step.operands]
                if watch is not None:
                    watch(step, operands)
                found = step.function(step.call, *operands)
                assert found is not None, f"{step.result.name}: attributes were accepted before"
                values[step.result] = found[0]
                if remember:
                    backward.append((step, found[1]))
                for var in variables_of(step.operands):
                    left[var] -= 1
                    if not left[var]:
                        values.pop(var, None)
        return Trace({var: values[var] for var in wanted}, backward)

    def _value(self, operand: Any, values: Mapping[Var, Any]) -> Any:
        if isinstance(operand, ConstantRef):
            return self.constants[operand.digest]
        if isinstance(operand, Var):
            return values[operand]
        if isinstance(operand, tuple):
            return tuple(self._value(part, values) for part in operand)
        return operand


class Trace:
    """One remembered run."""

    def __init__(self, values: dict[Var, Array], backward: list[tuple[Step, Vjp]]) -> None:
        self.values = values
        self._backward = backward

    def backward(
        self, seeds: Mapping[Var, Array], watch: Callable[[Step, Array], None] | None = None
    ) -> dict[str, Array]:
        """Return dL/dconstant by digest for the given dL/dvariable; consumes the trace.

        ``watch`` sees each step with dL/dresult.
        """
        gradients: dict[Any, Any] = dict(seeds)
        constants: dict[str, Array] = {}
        with np.errstate(all="ignore"):
            while self._backward:
                step, vjp = self._backward.pop()
                gradient = gradients.pop(step.result, None)
                if gradient is None:
                    continue
                if watch is not None:
                    watch(step, gradient)
                for operand, part in zip(step.operands, vjp(gradient), strict=True):
                    _add(operand, part, gradients, constants)
        return constants


def _add(operand: Any, part: Any, gradients: dict[Any, Any], constants: dict[str, Array]) -> None:
    """Add ``part`` to the gradient of ``operand``."""
    if part is None:
        return
    if isinstance(operand, tuple):
        for inner, piece in zip(operand, part, strict=True):
            _add(inner, piece, gradients, constants)
    elif isinstance(operand, ConstantRef):
        have = constants.get(operand.digest)
        constants[operand.digest] = part if have is None else have + part
    elif isinstance(operand, Var):
        have = gradients.get(operand)
        gradients[operand] = part if have is None else _sum(have, part)


def _sum(a: Any, b: Any) -> Any:
    """Gradients of a tuple are lists with None where nothing came back."""
    if isinstance(a, list):
        return [y if x is None else x if y is None else x + y for x, y in zip(a, b, strict=True)]
    return a + b


def variables_of(operands: Iterable[Any]) -> Iterator[Var]:
    for operand in operands:
        if isinstance(operand, Var):
            yield operand
        elif isinstance(operand, tuple):
            yield from variables_of(operand)


def _blank(ty: Any, dtype: type[np.floating]) -> Any:
    """Zeros of a variable's type that take no memory."""
    if hasattr(ty, "fields"):
        return tuple(_blank(field, dtype) for field in ty.fields)
    own = np.dtype(str(ty.dtype))
    return np.broadcast_to(np.zeros((), dtype if own.kind == "f" else own), [int(dim) for dim in ty.shape.values])


def _unknown(call: Expr, *operands: Any) -> None:
    """What stands for an operator without a numpy form."""


def _same(call: Expr, x: Any) -> tuple[Any, Vjp]:
    return x, lambda g: (g,)


def _get_item(call: TupleGetItem, parts: tuple[Array, ...]) -> tuple[Array, Vjp]:
    return parts[call.index], lambda g: ([g if i == call.index else None for i in range(len(parts))],)
