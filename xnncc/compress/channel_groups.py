"""The dependency graph of neurons: which slices of which constants go when one neuron goes.

    groups = channel_groups(mod)
    groups.groups[0].neurons        # classes of labels: each can be cut alone
    cut_channels(mod, groups, {class, ...})     # cut_channels.py

Found by walking the module once with labels on every axis (``channel_labels.py``), so residual additions tie, concats
join, a flatten repeats a channel for its pixels, and a depthwise layer goes with the channels that it reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.ir import Call, GenericConst
from tvm.relax import TupleGetItem, Var

from .channel_labels import FIXED, Array, Axes, Labels, fixed
from .channel_rules import RULES, Op
from .constants import bindings_of, constant_names

# operator -> (axis of the data from its end or start, axis of the weight) that are summed over
_SUMMED = {"relax.nn.conv1d": (1, 1), "relax.nn.conv2d": (1, 1), "relax.nn.conv3d": (1, 1), "relax.matmul": (-1, -2)}


@dataclass(frozen=True)
class Group:
    """Neurons of one layer, or of several that must agree. ``name``: the first tensor that computes them."""

    name: str
    neurons: tuple[int, ...]  # classes
    makers: tuple[str, ...]


@dataclass(frozen=True)
class Reader:
    """A layer with a constant weight that sums over neurons: what is lost when one is cut, and can be corrected.

    ``classes``: of the data's ``axis``, [C]. ``weight``: name of the constant, read along its ``weight_axis``.
    """

    name: str
    axis: int
    classes: Array
    weight: str
    weight_axis: int
    call: Call


@dataclass(frozen=True)
class ChannelGroups:
    """``constants``, ``values``: classes of each axis, by name; a value that is a tuple has a list of axes for each."""

    groups: tuple[Group, ...]
    left_alone: Mapping[str, str]  # tensor whose neurons cannot be cut -> why
    constants: Mapping[str, Axes]
    values: Mapping[str, Any]
    readers: tuple[Reader, ...]
    in_products: frozenset[int] = frozenset()  # classes that a product of two activations sums over


def channel_groups(mod: tvm.IRModule) -> ChannelGroups:
    """Return the groups of neurons of ``mod``."""
    walk = _Walk(mod)
    return walk.groups()


class _Walk:
    """One pass over the bindings of ``main``."""

    def __init__(self, mod: tvm.IRModule) -> None:
        self._labels = Labels()
        self._names = constant_names(mod)
        self._constants = {
            name: [self._labels.fresh(size) for size in constant.value.numpy().shape]
            for constant, name in self._names.items()
        }
        self._values: dict[Var, Any] = {param: fixed(_shape(param.ty)) for param in mod["main"].params}
        self._readers: list[tuple[str, Call]] = []
        self._products: list[Array] = []
        for binding in bindings_of(mod):
            self._values[binding.var] = self._result(binding)
        for out in mod["main"].body.body.fields:
            self._freeze(self._axes(out), "an output of the network")

    def _axes(self, expr: Any) -> Any:
        """Return the axes of an operand, tuples of them, or the plain value that it is."""
        if isinstance(expr, Var):
            return self._values[expr]
        if isinstance(expr, GenericConst):
            return self._constants[self._names[expr]]
        if isinstance(expr, relax.Tuple):
            return tuple(self._axes(field) for field in expr.fields)
        if isinstance(expr, relax.ShapeExpr):
            return tuple(int(dim) for dim in expr.values)
        return expr.value if isinstance(expr, tvm.tirx.IntImm | tvm.tirx.FloatImm) else expr

    def _result(self, binding: relax.VarBinding) -> Any:
        value = binding.value
        if isinstance(value, TupleGetItem):
            return self._axes(value.tuple_value)[value.index]
        if not isinstance(value, Call):
            return self._axes(value)
        operands = tuple(self._axes(arg) for arg in value.args)
        name = getattr(value.op, "name", "")
        rule = RULES.get(name.removeprefix("relax."))
        shape = () if hasattr(value.ty, "fields") else _shape(value.ty)
        found = rule(self._labels, Op(binding.var.name, value, operands, shape)) if rule else None
        if found is None:
            self._freeze(operands, f"'{name.removeprefix('relax.')}' has no rule for channels")
            fields = getattr(value.ty, "fields", None)
            return fixed(shape) if fields is None else [fixed(_shape(field)) for field in fields]
        if name in _SUMMED and isinstance(value.args[1], GenericConst) and _groups(value) == 1:
            self._readers.append((binding.var.name, value))
        if name == "relax.matmul" and all(isinstance(arg, Var) for arg in value.args):
            self._products.append(operands[0][-1])
        return found

    def _freeze(self, axes: Any, reason: str) -> None:
        if isinstance(axes, np.ndarray):
            self._labels.freeze(axes, reason)
        elif isinstance(axes, list | tuple):
            for part in axes:
                self._freeze(part, reason)

    def _classes(self, axes: Any) -> Any:
        if isinstance(axes, np.ndarray):
            return self._labels.classes(axes)
        return [self._classes(part) for part in axes]

    def groups(self) -> ChannelGroups:
        """Return what was found, with classes in place of labels."""
        makers: dict[int, list[str]] = {}
        left_alone = {}
        for label, names in self._labels.makers.items():
            found = self._labels.find(label)
            if found == FIXED:
                left_alone.update(dict.fromkeys(names, self._labels.reasons.get(label, "tied to a fixed tensor")))
                continue
            known = makers.setdefault(found, [])
            known.extend(name for name in names if name not in known)
        values = {var.name: self._classes(axes) for var, axes in self._values.items()}
        readers = []
        for name, call in self._readers:
            axis, weight_axis = _SUMMED[call.op.name]
            data = self._classes(self._axes(call.args[0]))
            readers.append(Reader(name, axis, data[axis], self._names[call.args[1]], weight_axis, call))
        return ChannelGroups(
            tuple(_families(makers)),
            left_alone,
            {name: self._classes(axes) for name, axes in self._constants.items()},
            values,
            tuple(readers),
            frozenset(int(n) for axis in self._products for n in self._labels.classes(axis) if n != FIXED),
        )


def _families(makers: Mapping[int, list[str]]) -> list[Group]:
    """Return classes grouped by the tensors that compute them: tensors that share a neuron are one group."""
    parents: dict[str, str] = {}

    def find(name: str) -> str:
        while parents.setdefault(name, name) != name:
            name = parents[name]
        return name

    order = {name: i for i, name in enumerate(dict.fromkeys(n for names in makers.values() for n in names))}
    for names in makers.values():
        for other in names[1:]:
            a, b = sorted((find(names[0]), find(other)), key=order.__getitem__)
            parents[b] = a
    found: dict[str, list[int]] = {}
    for neuron, names in sorted(makers.items()):
        found.setdefault(find(names[0]), []).append(neuron)
    members: dict[str, list[str]] = {}
    for name in order:
        members.setdefault(find(name), []).append(name)
    return [Group(name, tuple(neurons), tuple(members[name])) for name, neurons in found.items()]


def _shape(ty: Any) -> tuple[int, ...]:
    return tuple(int(dim) for dim in ty.shape.values)


def _groups(call: Call) -> int:
    return int(getattr(call.attrs, "groups", 1))
