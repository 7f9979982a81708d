"""LSTM, GRU and RNN: each becomes one ``xnn.recurrent`` (``ir/recurrent.py``), never a graph of steps.

Only what the compiler need not know is settled here: batch-first layouts, activations with their numbers, two
directions with different activations (two operators), inputs that change nothing (a zero state, full lengths).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tvm import relax
from tvm.ir import StringImm
from tvm.relax import Expr, TupleGetItem

from ...ir.recurrent import ACTIVATIONS, GATES, NAME, Activation, Recurrent
from .node import Node, Refused
from .registry import converter

_INPUTS = ("x", "w", "r", "b", "lens", "h0", "c0", "p")  # the standard's order
_ALPHA = {"affine": 1.0, "leakyrelu": 0.01, "thresholdedrelu": 1.0, "scaledtanh": 1.0, "hardsigmoid": 0.2, "elu": 1.0}
_BETA = {"affine": 0.0, "scaledtanh": 1.0, "hardsigmoid": 0.5}
_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


@converter("LSTM")
def lstm(n: Node) -> list[Expr | None]:
    return _layer(n, "lstm", ("Sigmoid", "Tanh", "Tanh"), is_input_forget=bool(n.attr("input_forget", 0)))


@converter("GRU")
def gru(n: Node) -> list[Expr | None]:
    return _layer(n, "gru", ("Sigmoid", "Tanh"), is_linear_before_reset=bool(n.attr("linear_before_reset", 0)))


@converter("RNN")
def rnn(n: Node) -> list[Expr | None]:
    return _layer(n, "rnn", ("Tanh",))


def _layer(n: Node, cell: str, defaults: tuple[str, ...], **flags: bool) -> list[Expr | None]:
    """Return Y, Y_h and Y_c; None for those that nobody reads."""
    reverse = _DIRECTIONS[n.choice("direction", "forward", tuple(_DIRECTIONS))]
    batch_first = bool(n.attr("layout", 0))
    operands, hidden = _operands(n, cell, len(reverse), batch_first)
    outputs = tuple(name for i, name in enumerate(("y", "yh", "yc")) if n.wants(i))
    if not outputs:
        return [None] * len(n.proto.output)
    activations = _activations(n, defaults, len(reverse))
    spec = Recurrent(cell, hidden, reverse, activations[0], (), outputs, float(n.attr("clip", 0.0)), **flags)
    if len(set(activations)) == 1:
        found = _call(n, spec, operands)
    else:
        found = _one_by_one(n, spec, operands, activations)
    if batch_first:
        found = {name: _batch_first(n, expr) for name, expr in found.items()}
    return [found.get(name) for name in ("y", "yh", "yc")]


def _operands(n: Node, cell: str, directions: int, batch_first: bool) -> tuple[dict[str, Expr], int]:
    """Return the inputs that change something, in the standard's layout 0, and the number of units."""
    given = {name: i for i, name in enumerate(_INPUTS) if n.has(i)}
    for name, index in given.items():
        if name != "lens" and n.dtype(index) != "float32":
            raise Refused(f"dtype {n.dtype(index)} is not supported", "Supported: float32.")
    hidden, gates = n.shape(given["r"])[-1], GATES[cell]
    if int(n.attr("hidden_size", hidden)) != hidden:
        raise Refused(f"hidden_size {n.attr('hidden_size')} does not fit R {list(n.shape(given['r']))}")
    batch, steps, size = n.shape() if batch_first else (n.shape()[1], n.shape()[0], n.shape()[2])
    rows, state = gates * hidden, (directions, batch, hidden)
    first = (batch, directions, hidden) if batch_first else state
    wanted = {
        "x": n.shape(), "w": (directions, rows, size), "r": (directions, rows, hidden), "b": (directions, 2 * rows),
        "lens": (batch,), "h0": first, "c0": first, "p": (directions, 3 * hidden),
    }  # fmt: skip
    for name, index in given.items():
        if n.shape(index) != wanted[name]:
            raise Refused(f"input {index} is {list(n.shape(index))}, expected {list(wanted[name])}")
    found = {name: n.expr(index) for name, index in given.items() if not _changes_nothing(n, name, index, steps)}
    if batch_first:
        for name in {"x", "h0", "c0"} & set(found):
            found[name] = _swapped(n, found[name])
    return found, hidden


def _changes_nothing(n: Node, name: str, index: int, steps: int) -> bool:
    if not n.is_const(index):
        return False
    array = n.const(index, name)
    if name == "lens":
        return bool((array >= steps).all())
    return name in ("b", "h0", "c0", "p") and not array.any()


def _swapped(n: Node, expr: Expr) -> Expr:
    """Return ``expr`` with its first two axes swapped: a view when one of them is 1."""
    a, b, size = (int(dim) for dim in expr.ty.shape.values)
    return n.emit(n.reshaped(expr, (b, a, size)) if 1 in (a, b) else relax.op.permute_dims(expr, [1, 0, 2]))


def _batch_first(n: Node, expr: Expr) -> Expr:
    """Return [T, D, N, H] as [N, T, D, H], or [D, N, H] as [N, D, H]."""
    shape = [int(dim) for dim in expr.ty.shape.values]
    if len(shape) == 3:
        return _swapped(n, expr)
    steps, directions, batch, hidden = shape
    if batch == 1:
        return n.emit(n.reshaped(expr, (1, steps, directions, hidden)))
    return n.emit(relax.op.permute_dims(expr, [2, 0, 1, 3]))


def _activations(n: Node, defaults: tuple[str, ...], directions: int) -> list[tuple[Activation, ...]]:
    """Return each direction's activations. Their numbers are handed out in order, to those that take some."""
    given = n.attr("activations")
    names = [name.decode() if isinstance(name, bytes) else name for name in given or defaults * directions]
    if len(names) != len(defaults) * directions:
        raise Refused(f"{len(names)} activations for {directions} directions of {len(defaults)}")
    alphas, betas = list(n.attr("activation_alpha") or ()), list(n.attr("activation_beta") or ())
    found = []
    for name in (name.lower() for name in names):
        if name not in ACTIVATIONS:
            raise Refused(f"activation '{name}' is not supported", f"Supported: {', '.join(ACTIVATIONS)}.")
        alpha, beta = (
            float(numbers.pop(0) if numbers else table[name]) if name in table else 0.0
            for numbers, table in ((alphas, _ALPHA), (betas, _BETA))
        )
        found.append(Activation(name, alpha, beta))
    each = len(defaults)
    return [tuple(found[d * each : (d + 1) * each]) for d in range(directions)]


def _call(n: Node, spec: Recurrent, operands: dict[str, Expr]) -> dict[str, Expr]:
    """Emit one operator and return its outputs by name."""
    fields = {**spec.__dict__, "operands": tuple(operands)}
    spec = Recurrent(**fields)
    steps, batch = (int(dim) for dim in operands["x"].ty.shape.values[:2])
    types = [relax.TensorType(spec.shape(name, steps, batch), "float32") for name in spec.outputs]
    ty = types[0] if len(types) == 1 else relax.TupleType(types)
    text = StringImm(spec.to_json())
    result = n.emit(relax.op.call_pure_packed(NAME, *operands.values(), text, ty_args=ty))
    if len(types) == 1:
        return {spec.outputs[0]: result}
    return {name: n.emit(TupleGetItem(result, i)) for i, name in enumerate(spec.outputs)}


def _one_by_one(
    n: Node, spec: Recurrent, operands: dict[str, Expr], activations: Sequence[tuple[Activation, ...]]
) -> dict[str, Expr]:
    """Return the outputs of directions that cannot share a kernel, joined."""
    parts = []
    for d, (reverse, own) in enumerate(zip(spec.reverse, activations, strict=True)):
        taken = {name: e if name in ("x", "lens") else _direction(n, e, d) for name, e in operands.items()}
        one = Recurrent(**{**spec.__dict__, "reverse": (reverse,), "activations": own})
        parts.append(_call(n, one, taken))
    return {
        name: n.emit(relax.op.concat([part[name] for part in parts], 1 if name == "y" else 0)) for name in spec.outputs
    }


def _direction(n: Node, expr: Expr, d: int) -> Expr:
    """Return direction ``d`` of an operand, still with its first axis."""
    from ..network import array_in, constant

    array = array_in(expr)
    if array is not None:
        return constant(np.ascontiguousarray(array[d : d + 1]))
    return n.emit(relax.op.strided_slice(expr, [0], [d], [d + 1]))
