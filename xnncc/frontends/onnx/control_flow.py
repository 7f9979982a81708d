"""If, Loop and Scan: the branch that is taken, and loops written out step by step.

``If`` with a constant condition is replaced by the branch it takes; with one known only at run time both branches are
computed and ``where`` chooses, which needs outputs of equal shape. A ``Loop`` is written out when its trip count is
known; a condition computed at run time then keeps the carried values from the step on at which it turned false.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from tvm import relax

from ..network import NetworkBuilder, dtype_of, shape_of
from .node import Refused

MAX_STEPS = 256  # of one loop: each step is written out

Scope = Any
RunGraph = Callable[[onnx.GraphProto, Scope], list[Any]]
CONTROL_FLOW = ("If", "Loop", "Scan")


class ControlFlow:
    """Converts the three operators; ``run`` converts a graph in a scope, ``skipped`` marks what could not be."""

    def __init__(self, build: NetworkBuilder, run: RunGraph, skipped: Any) -> None:
        self._build, self._run, self._skipped = build, run, skipped

    def results(self, proto: onnx.NodeProto, values: list[Any], scope: Scope, opset: int) -> Sequence[Any]:
        """Return the outputs of an If, Loop or Scan node."""
        if proto.op_type == "If":
            return self._if(proto, values[0], scope)
        if proto.op_type == "Loop":
            return self._loop(proto, values, scope)
        return self._scan(proto, values, scope, opset)

    def _if(self, proto: onnx.NodeProto, condition: Any, scope: Scope) -> Sequence[Any]:
        branches = {a.name: a.g for a in proto.attribute}
        if not {"then_branch", "else_branch"} <= set(branches):
            raise Refused("it does not have both branches")
        if isinstance(condition, np.ndarray):
            taken = branches["then_branch" if bool(condition.reshape(-1)[0]) else "else_branch"]
            return self._run(taken, ChainMap({}, scope))
        then, other = (self._run(branches[b], ChainMap({}, scope)) for b in ("then_branch", "else_branch"))
        if any(value is self._skipped for value in [*then, *other]):
            return [self._skipped] * len(proto.output)
        return [
            self._chosen(condition, a, b, name, "its branches give")
            for name, a, b in zip(proto.output, then, other, strict=True)
        ]

    def _chosen(self, condition: Any, a: Any, b: Any, name: str, words: str) -> Any:
        if isinstance(a, list) or isinstance(b, list):
            raise Refused("the condition is known only at run time and it chooses between sequences")
        left, right = (self._build.constant(v) if isinstance(v, np.ndarray) else v for v in (a, b))
        if (shape_of(left), dtype_of(left)) != (shape_of(right), dtype_of(right)):
            why = f"{words} {shape_of(left)} and {shape_of(right)} for '{name}'"
            raise Refused(f"the condition is known only at run time and {why}", "Export one branch only.")
        if len(shape_of(condition)) > 0:
            condition = relax.op.reshape(condition, ())
        chosen = self._build.emit(relax.op.where(self._build.emit(condition), left, right))
        self._build.rename(chosen, name)
        return chosen

    def _loop(self, proto: onnx.NodeProto, values: list[Any], scope: Scope) -> Sequence[Any]:
        body = next(a.g for a in proto.attribute if a.name == "body")
        trips, condition, carried = values[0], values[1] if len(values) > 1 else None, list(values[2:])
        limit = _trip_count(trips)
        names = [value.name for value in body.input]
        scans: list[list[Any]] = [[] for _ in body.output[1 + len(carried) :]]
        active = condition if condition is not None else np.asarray(True)
        step = 0
        while limit is None or step < limit:
            if isinstance(active, np.ndarray) and not active.reshape(-1)[0]:
                break
            if step >= MAX_STEPS:
                raise Refused(f"it takes more than {MAX_STEPS} steps", "Export a network without the loop.")
            if not isinstance(active, np.ndarray) and (limit is None or scans):
                raise Refused("its number of steps is known only at run time", "Give it a constant trip count.")
            inputs = [np.asarray(step, "int64"), np.asarray(True), *carried]
            outputs = self._run(body, ChainMap(dict(zip(names, inputs, strict=True)), scope))
            if any(value is self._skipped for value in outputs):
                return [self._skipped] * len(proto.output)
            after, scanned = outputs[1 : 1 + len(carried)], outputs[1 + len(carried) :]
            if isinstance(active, np.ndarray):
                carried = list(after)
            else:
                pairs = zip(names[2:], after, carried, strict=True)
                carried = [self._chosen(active, new, old, name, "its steps give") for name, new, old in pairs]
            for part, value in zip(scans, scanned, strict=True):
                part.append(value)
            active = self._both(active, outputs[0])
            step += 1
        if any(not parts for parts in scans):
            raise Refused("it takes no step, so its stacked outputs have no elements")
        return [*carried, *(self._stacked(parts, 0) for parts in scans)]

    def _both(self, a: Any, b: Any) -> Any:
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
            return np.logical_and(a.reshape(-1)[0], b.reshape(-1)[0])[None]
        if isinstance(a, np.ndarray):
            return b if a.reshape(-1)[0] else a
        left, right = (relax.op.reshape(v, ()) if not isinstance(v, np.ndarray) else v for v in (a, b))
        right = self._build.constant(right.reshape(())) if isinstance(right, np.ndarray) else right
        return self._build.emit(relax.op.logical_and(left, right))

    def _stacked(self, parts: list[Any], axis: int) -> Any:
        """Return values of one shape as slices of a new axis."""
        if any(isinstance(part, list) for part in parts):
            raise Refused("its stacked outputs are sequences")
        if all(isinstance(part, np.ndarray) for part in parts):
            return np.stack(parts, axis)
        exprs = [self._build.constant(part) if isinstance(part, np.ndarray) else part for part in parts]
        shape = shape_of(exprs[0])
        if any(shape_of(expr) != shape for expr in exprs):
            raise Refused("its steps give results of different shapes")
        axis = axis % (len(shape) + 1)
        wide = [*shape[:axis], 1, *shape[axis:]]
        slices = [self._build.emit(relax.op.reshape(expr, wide)) for expr in exprs]
        return self._build.emit(relax.op.concat(slices, axis)) if len(slices) > 1 else slices[0]

    def _scan(self, proto: onnx.NodeProto, values: list[Any], scope: Scope, opset: int) -> Sequence[Any]:
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in proto.attribute}
        body, count = attributes["body"], int(attributes["num_scan_inputs"])
        if opset < 9:
            return self._batched_scan(proto, attributes, values, scope)
        states, sources = list(values[: len(values) - count]), values[len(values) - count :]
        axes = attributes.get("scan_input_axes") or [0] * count
        backwards = attributes.get("scan_input_directions") or [0] * count
        out_count = len(body.output) - len(states)
        out_axes = attributes.get("scan_output_axes") or [0] * out_count
        out_backwards = attributes.get("scan_output_directions") or [0] * out_count
        ended, stacks = self._scanned(body, states, list(zip(sources, axes, backwards, strict=True)), scope)
        if ended is None:
            return [self._skipped] * len(proto.output)
        results = [
            self._stacked(parts[::-1] if back else parts, axis)
            for parts, axis, back in zip(stacks, out_axes, out_backwards, strict=True)
        ]
        return [*ended, *results]

    def _batched_scan(
        self, proto: onnx.NodeProto, attributes: dict[str, Any], values: list[Any], scope: Scope
    ) -> Sequence[Any]:
        """Opset 8: axis 0 is the batch, axis 1 the sequence, and input 0 the lengths."""
        body, count = attributes["body"], int(attributes["num_scan_inputs"])
        if values[0] is not None:
            raise Refused("sequence_lens is not supported", "Export with opset 9 or newer.")
        states, sources = list(values[1 : len(values) - count]), values[len(values) - count :]
        backwards = attributes.get("directions") or [0] * count
        batch = _shape(sources[0])[0]
        rows = []
        for index in range(batch):
            first = [self._slice(state, 0, index) for state in states]
            inputs = [(self._slice(s, 0, index), 0, back) for s, back in zip(sources, backwards, strict=True)]
            ended, stacks = self._scanned(body, first, inputs, scope)
            if ended is None:
                return [self._skipped] * len(proto.output)
            rows.append([*ended, *(self._stacked(parts, 0) for parts in stacks)])
        return [self._stacked(list(column), 0) for column in zip(*rows, strict=True)]

    def _scanned(
        self, body: onnx.GraphProto, states: list[Any], sources: list[tuple[Any, int, int]], scope: Scope
    ) -> tuple[list[Any] | None, list[list[Any]]]:
        """Return the last states and the parts of each stacked output; None when a node could not be converted."""
        names = [value.name for value in body.input]
        length = _shape(sources[0][0])[int(sources[0][1])]
        if length > MAX_STEPS:
            raise Refused(f"it takes {length} steps, more than {MAX_STEPS}", "Export a network without the loop.")
        stacks: list[list[Any]] = [[] for _ in body.output[len(states) :]]
        for step in range(length):
            parts = [self._slice(s, axis, length - 1 - step if back else step) for s, axis, back in sources]
            inputs = dict(zip(names, [*states, *parts], strict=True))
            outputs = self._run(body, ChainMap(inputs, scope))
            if any(value is self._skipped for value in outputs):
                return None, []
            for part, value in zip(stacks, outputs[len(states) :], strict=True):
                part.append(value)
            states = list(outputs[: len(states)])
        return states, stacks

    def _slice(self, value: Any, axis: int, index: int) -> Any:
        """Return one slice of an axis, without that axis."""
        shape = _shape(value)
        axis = axis % len(shape)
        if isinstance(value, np.ndarray):
            return np.take(value, index, axis)
        cut = self._build.emit(relax.op.strided_slice(value, [axis], [index], [index + 1], [1]))
        return self._build.emit(relax.op.reshape(cut, [*shape[:axis], *shape[axis + 1 :]]))


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(value.shape) if isinstance(value, np.ndarray) else shape_of(value)


def _trip_count(trips: Any) -> int | None:
    if trips is None:
        return None
    if not isinstance(trips, np.ndarray):
        raise Refused("its trip count is computed at run time", "Export the model with it as a constant.")
    return int(trips.reshape(-1)[0])
