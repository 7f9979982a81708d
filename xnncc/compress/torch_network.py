"""A Relax module as a differentiable function of its float32 constants, in torch.

    network = TorchNetwork(mod)
    outputs = network.run(inputs)                       # inputs: name -> [M, ...] samples; outputs [M, ...]
    outputs = network.run(inputs, {**network.weights, key: other})
    mod = rebuilt(mod, {key: weight.detach().numpy() ...})

A module has static shapes, mostly with a batch of 1. Samples are run together by ``torch.vmap``, which maps the module
as it stands over one more axis: no operator has to guess which axis is the batch, and reshapes stay as they are.
The part that is run ends at operators that ``torch_operators.py`` does not know; the *heads* are the outputs, and
float tensors that only unknown operators read (boxes and scores before a detector's suppression).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import tvm
from tvm import relax
from tvm.ir import Call, GenericConst
from tvm.relax import TupleGetItem, Var

from ..errors import CompressError
from .constants import bindings_of, constant_names
from .torch_fusions import fuse_hard_swish

if TYPE_CHECKING:
    import torch

    from .result import Samples

# name of a tensor, operands of what computes it, the sample's row of ``extra`` -> operands to use
Watch = Callable[[str, list[Any], Any], list[Any]]


def require_torch() -> None:
    """Raise CompressError when torch is not installed."""
    try:
        import torch  # noqa: F401
    except ImportError:
        install = "Install it with: pip install 'xnncc[train]'"
        raise CompressError("training", "torch is not installed", install) from None


@dataclass(frozen=True)
class Head:
    """An end of the network. ``logits``: the tensor to train on, which a last softmax or sigmoid (``kind``) reads."""

    name: str
    kind: str  # "softmax", "sigmoid" or "values"
    logits: str


@dataclass(frozen=True)
class Step:
    """One operator: ``function(call, *operands)``; operands are variables, constants, numbers, and tuples of them."""

    name: str
    function: Callable[..., Any]
    call: Any
    operands: tuple[Any, ...]
    result: Var

    @property
    def operator(self) -> str:
        """Relax's name of it, without ``relax.``; empty for what is no call."""
        return getattr(getattr(self.call, "op", None), "name", "").removeprefix("relax.")

    def variables(self) -> list[Var]:
        """Return the variables among the operands."""
        return list(_variables(self.operands))

    def calling(self, function: Callable[..., Any], operands: tuple[Any, ...]) -> Step:
        """Return the step with another function and operands."""
        return replace(self, function=function, operands=operands)


class TorchNetwork:
    """``weights``: float32 constants by name (``constants.py``), leaf tensors. ``heads``: the ends."""

    def __init__(self, mod: tvm.IRModule) -> None:
        require_torch()
        import torch

        names = constant_names(mod)
        self.weights: dict[str, torch.Tensor] = {}
        self.heads: list[Head] = []
        self._other: dict[str, torch.Tensor] = {}
        for constant, name in names.items():
            array = constant.value.numpy()
            is_weight = array.dtype == np.float32 and array.size > 1
            (self.weights if is_weight else self._other)[name] = torch.from_numpy(array.copy())
        self.params = tuple(mod["main"].params)
        self._shapes = [tuple(int(dim) for dim in param.ty.shape.values) for param in self.params]
        self._steps: list[Step] = []
        self._ends: list[Var] = []
        self._plan(mod, names)

    def _plan(self, mod: tvm.IRModule, names: Mapping[GenericConst, str]) -> None:
        """Take every step whose operands are known and which runs on zeros; name the ends."""
        import torch

        known: dict[Var, Any] = {
            p: torch.zeros(shape, dtype=getattr(torch, str(p.ty.dtype)))
            for p, shape in zip(self.params, self._shapes, strict=True)
        }
        wanted = [var for var in mod["main"].body.body.fields if isinstance(var, Var)]
        values: dict[Var, Any] = {}
        with torch.no_grad():
            for binding in bindings_of(mod):
                step = self._step(binding, names)
                inputs = step.variables()
                result = None
                if all(var in known for var in inputs):
                    result = step.function(step.call, *(self._value(o, known, self.weights) for o in step.operands))
                if result is None:
                    wanted.extend(inputs)
                    continue
                known[binding.var], values[binding.var] = result, step
                self._steps.append(step)
        ends = [v for v in dict.fromkeys(wanted) if v in values and str(getattr(v.ty, "dtype", "")) == "float32"]
        self.heads = [_head(var, values) for var in ends]
        by_name = {step.name: step.result for step in self._steps}
        self._ends = [by_name[head.logits] for head in self.heads]
        with torch.no_grad():
            self._steps = fuse_hard_swish(self._steps, self._ends, self._operand)

    def _step(self, binding: relax.VarBinding, names: Mapping[GenericConst, str]) -> Step:
        from .torch_operators import OPERATORS

        value, name = binding.value, binding.var.name

        def operand(expr: Any) -> Any:
            if isinstance(expr, GenericConst):
                return _Constant(names[expr])
            if isinstance(expr, relax.Tuple):
                return tuple(operand(field) for field in expr.fields)
            if isinstance(expr, relax.ShapeExpr):
                return tuple(int(dim) for dim in expr.values)
            return expr.value if isinstance(expr, tvm.tirx.IntImm | tvm.tirx.FloatImm) else expr

        if isinstance(value, Call):
            step = Step(name, _unknown, value, tuple(operand(arg) for arg in value.args), binding.var)
            return replace(step, function=OPERATORS.get(step.operator, _unknown))
        if isinstance(value, TupleGetItem):
            return Step(name, _get_item, value, (operand(value.tuple_value),), binding.var)
        return Step(name, _same, value, (operand(value),), binding.var)

    @property
    def step_names(self) -> list[str]:
        """The steps in order; ``watch`` sees these names."""
        return [step.name for step in self._steps]

    def tensors(self, samples: Samples) -> dict[str, torch.Tensor]:
        """Return samples as ``run`` takes them, each in the shape of its network input behind one sample axis."""
        import torch

        return {
            param.name: torch.from_numpy(np.ascontiguousarray(samples.inputs[param.name])).reshape(-1, *shape)
            for param, shape in zip(self.params, self._shapes, strict=True)
        }

    def run(
        self,
        inputs: Mapping[str, torch.Tensor],
        weights: Mapping[str, torch.Tensor] | None = None,
        watch: Watch | None = None,
        extra: torch.Tensor | None = None,
    ) -> list[torch.Tensor]:
        """Return the logits of each head, [M, *shape].

        inputs: name -> [M, *shape of the network's input]. ``watch`` may replace the operands of every step; it sees
        one sample, with its row of ``extra`` [M, ...], which is mapped along with the inputs.
        """
        import torch

        used = self.weights if weights is None else weights

        parts = tuple(_channels_last(inputs[param.name]) for param in self.params)
        if extra is None:
            return list(torch.vmap(lambda one: self._run_one(one, used, watch, None))(parts))
        return list(torch.vmap(lambda one, row: self._run_one(one, used, watch, row))(parts, extra))

    def _run_one(
        self, parts: tuple[Any, ...], weights: Mapping[str, Any], watch: Watch | None, row: Any
    ) -> tuple[Any, ...]:
        values: dict[Var, Any] = dict(zip(self.params, parts, strict=True))
        left = Counter(var for step in self._steps for var in step.variables())
        left.update(self._ends)
        for step in self._steps:
            operands = [self._value(operand, values, weights) for operand in step.operands]
            if watch is not None:
                operands = watch(step.name, operands, row)
            values[step.result] = step.function(step.call, *operands)
            for var in step.variables():
                left[var] -= 1
                if not left[var]:
                    values.pop(var, None)
        return tuple(values[var] for var in self._ends)

    def _operand(self, operand: Any, values: Mapping[Var, Any]) -> Any:
        return self._value(operand, values, self.weights)

    def _value(self, operand: Any, values: Mapping[Var, Any], weights: Mapping[str, Any]) -> Any:
        if isinstance(operand, _Constant):
            return weights[operand.name] if operand.name in weights else self._other[operand.name]
        if isinstance(operand, Var):
            return values[operand]
        if isinstance(operand, tuple):
            return tuple(self._value(part, values, weights) for part in operand)
        return operand


def _channels_last(x: torch.Tensor) -> torch.Tensor:
    """Return images [M, N, C, H, W] with C innermost in memory, which convolutions hand on: depthwise ones train three
    times faster so. Other tensors come back as they are."""
    if x.ndim != 5 or x.shape[2] == 1:
        return x
    return x.permute(0, 1, 3, 4, 2).contiguous().permute(0, 1, 4, 2, 3)


@dataclass(frozen=True)
class _Constant:
    name: str


def _variables(operands: tuple[Any, ...]) -> Iterator[Var]:
    for operand in operands:
        if isinstance(operand, Var):
            yield operand
        elif isinstance(operand, tuple):
            yield from _variables(operand)


def _head(var: Var, steps: Mapping[Var, Step]) -> Head:
    """Look through a last softmax over the last axis, reshapes after it too, and through a last sigmoid."""
    end, step = var, steps[var]
    while step.operator == "reshape" and step.operands[0] in steps:
        end, step = step.operands[0], steps[step.operands[0]]
    name = step.operator
    operand = step.operands[0] if step.operands else None
    if isinstance(operand, Var) and operand in steps:
        if name == "nn.softmax" and int(step.call.attrs.axis) in (-1, len(end.ty.shape.values) - 1):
            return Head(var.name, "softmax", operand.name)
        if name == "sigmoid":
            return Head(var.name, "sigmoid", operand.name)
    return Head(var.name, "values", var.name)


def _unknown(call: Any, *operands: Any) -> None:
    """What stands for an operator without a torch form."""


def _same(call: Any, x: Any) -> Any:
    return x


def _get_item(call: TupleGetItem, parts: tuple[Any, ...]) -> Any:
    return parts[call.index]
