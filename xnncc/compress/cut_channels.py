"""Cut neurons: every constant loses their slices, every shape shrinks. The numbers are those of masking."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.ir import Call

from ..ir.recurrent import NAME, Recurrent
from .channel_groups import ChannelGroups
from .channel_labels import Array
from .constants import constant_arrays, rebuilt

_SHAPED = ("relax.reshape", "relax.broadcast_to")  # the result's shape is an operand


def cut_channels(mod: tvm.IRModule, groups: ChannelGroups, neurons: Collection[int]) -> tvm.IRModule:
    """Return ``mod`` without the neurons of the given classes. At least one position of every axis must be left."""
    gone = np.array(sorted(neurons), np.int64)
    if not len(gone):
        return mod
    arrays = constant_arrays(mod)
    new = {}
    for name, axes in groups.constants.items():
        kept = [np.flatnonzero(~np.isin(axis, gone)) for axis in axes]
        assert all(len(k) or not len(axis) for k, axis in zip(kept, axes, strict=True)), f"nothing is left of {name}"
        if any(len(k) < len(axis) for k, axis in zip(kept, axes, strict=True)):
            new[name] = np.ascontiguousarray(arrays[name][np.ix_(*kept)])
    return rebuilt(mod, new, lambda binding, call: _adapted(binding, call, groups.values, gone))


def _kept(axis: Array, gone: Array) -> int:
    return int(np.count_nonzero(~np.isin(axis, gone)))


def _adapted(binding: relax.VarBinding, call: Call, values: Mapping[str, Any], gone: Array) -> Call:
    """Return ``call`` with what its operands' new shapes do not tell: target shapes, groups, cuts, hidden units."""
    name = getattr(call.op, "name", "")
    axes = values[binding.var.name]
    if name in _SHAPED:
        shape = relax.ShapeExpr([_kept(axis, gone) for axis in axes])
        return Call(call.op, [call.args[0], shape], call.attrs, call.ty_args)
    if name in ("relax.nn.conv1d", "relax.nn.conv2d", "relax.nn.conv3d", "relax.nn.conv2d_transpose"):
        return _with_groups(binding.value, call, values, gone)
    if name == "relax.strided_slice":
        return _slice(binding.value, call, values, gone)
    if name == "relax.split":
        return _split(binding.value, call, values, gone)
    if name == "relax.call_pure_packed" and getattr(call.args[0], "global_symbol", "") == NAME:
        return _recurrent(call)
    return call


def _data_axes(old: Call, values: Mapping[str, Any]) -> Any:
    return values[old.args[0].name]


def _with_groups(old: Call, call: Call, values: Mapping[str, Any], gone: Array) -> Call:
    """A depthwise convolution has as many groups as channels; others keep theirs."""
    channels = _data_axes(old, values)[1]
    groups = int(old.attrs.groups)
    if groups == 1 or groups != len(channels) or not np.isin(channels, gone).any():
        return call
    return Call(call.op, list(call.args), _attrs(call, groups=_kept(channels, gone)), call.ty_args)


def _attrs(call: Call, **changed: Any) -> Any:
    """Return the call's attributes with some of them changed."""
    attrs = call.attrs
    kind = type(attrs).__tvm_ffi_type_info__
    fields = {field.name: getattr(attrs, field.name) for field in kind.fields}
    return tvm.ir.make_node(kind.type_key, **{**fields, **changed})


def _slice(old: Call, call: Call, values: Mapping[str, Any], gone: Array) -> Call:
    """Positions before a slice's begin and end that are cut move both."""
    data = _data_axes(old, values)
    begin, end = [], []
    for axis, first, stop in zip(*(call.args[i].fields for i in (1, 2, 3)), strict=True):
        labels, first, stop = data[int(axis.value)], int(first.value), int(stop.value)
        if np.isin(labels, gone).any():
            first, stop, _ = slice(first, stop).indices(len(labels))
            first, stop = _kept(labels[:first], gone), _kept(labels[:stop], gone)
        begin.append(first)
        end.append(stop)
    axes = [int(axis.value) for axis in call.args[1].fields]
    strides = [int(step.value) for step in call.args[4].fields] if len(call.args) > 4 else None
    return relax.op.strided_slice(call.args[0], axes, begin, end, strides, bool(call.attrs.assume_inbound))


def _split(old: Call, call: Call, values: Mapping[str, Any], gone: Array) -> Call:
    axis, where = int(call.attrs.axis), call.attrs.indices_or_sections
    labels = _data_axes(old, values)[axis]
    if not np.isin(labels, gone).any():
        return call
    if hasattr(where, "__iter__"):
        cuts = [int(cut) for cut in where]
    else:
        cuts = [len(labels) // int(where) * k for k in range(1, int(where))]
    return relax.op.split(call.args[0], [_kept(labels[:cut], gone) for cut in cuts], axis)


def _recurrent(call: Call) -> Call:
    """The hidden units are those that the recurrence's weight [D, G*H, H] has now."""
    spec = Recurrent.from_json(call.args[-1].value)
    weight = call.args[1 + spec.operands.index("r")]
    hidden = int(weight.ty.shape.values[2])
    if hidden == spec.hidden:
        return call
    x = call.args[1 + spec.operands.index("x")]
    steps, batch = (int(dim) for dim in x.ty.shape.values[:2])
    new = Recurrent(**{**spec.__dict__, "hidden": hidden})
    types = [relax.TensorType(new.shape(name, steps, batch), "float32") for name in new.outputs]
    operands = [*call.args[:-1], tvm.ir.StringImm(new.to_json())]
    return Call(call.op, operands, call.attrs, [types[0] if len(types) == 1 else relax.TupleType(types)])
