"""Multiply-adds against counts by hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import tvm
from network_running import module, variable
from tvm import relax
from tvm.relax import op

from xnncc.ir.cost import macs_by_tensor
from xnncc.ir.recurrent import NAME, Activation, Recurrent


def _weights(*shape: int) -> relax.Expr:
    return relax.const(np.ones(shape, "float32"))


@pytest.mark.parametrize(
    ("shape", "expr", "macs"),
    [
        ((1, 3, 8, 8), lambda x: op.nn.conv2d(x, _weights(16, 3, 3, 3), padding=1), 16 * 64 * 27),
        ((2, 3, 8, 8), lambda x: op.nn.conv2d(x, _weights(16, 3, 3, 3), strides=2), 2 * 16 * 9 * 27),
        ((1, 8, 5, 5), lambda x: op.nn.conv2d(x, _weights(8, 1, 3, 3), groups=8, padding=1), 8 * 25 * 9),
        ((1, 8, 5, 5), lambda x: op.nn.conv2d(x, _weights(4, 4, 1, 1), groups=2), 4 * 25 * 4),
        ((1, 4, 3, 3), lambda x: op.nn.conv2d_transpose(x, _weights(4, 6, 2, 2), strides=2), 36 * 6 * 4),
        ((1, 4, 3, 3), lambda x: op.nn.conv2d_transpose(x, _weights(4, 3, 2, 2), strides=2, groups=2), 36 * 3 * 4),
        ((5, 7), lambda x: op.matmul(x, _weights(7, 11)), 5 * 7 * 11),
        ((2, 5, 7), lambda x: op.matmul(x, _weights(2, 7, 3)), 2 * 5 * 7 * 3),
    ],
)
def test_macs(shape: tuple[int, ...], expr: Callable, macs: int) -> None:
    mod = module(lambda emit, x: emit(op.nn.relu(emit(expr(x), "y")), "z"), variable("x", shape))
    assert macs_by_tensor(mod) == {"y": macs}


def test_a_network_without_products_costs_nothing() -> None:
    assert macs_by_tensor(module(lambda emit, x: emit(op.exp(x), "y"), variable("x", (3,)))) == {}


@pytest.mark.parametrize(("cell", "gates"), [("lstm", 4), ("gru", 3), ("rnn", 1)])
def test_a_recurrent_layer_counts_both_products_of_every_step(cell: str, gates: int) -> None:
    """T 6, N 2, D 2, I 3, H 5: each step multiplies an input of 3 and a state of 5 by G*H rows, for each direction."""
    names = {"lstm": ("sigmoid", "tanh", "tanh"), "gru": ("sigmoid", "tanh"), "rnn": ("tanh",)}[cell]
    activations = tuple(Activation(name) for name in names)
    spec = Recurrent(cell, 5, (False, True), activations, ("x", "w", "r"), ("y",))
    weights = _weights(2, gates * 5, 3), _weights(2, gates * 5, 5)
    out = relax.TensorType(spec.shape("y", 6, 2), "float32")

    def build(emit: Callable, x: relax.Var) -> relax.Var:
        call = relax.op.call_pure_packed(NAME, x, *weights, tvm.ir.StringImm(spec.to_json()), ty_args=[out])
        return emit(op.nn.relu(emit(call, "y")), "z")

    assert macs_by_tensor(module(build, variable("x", (6, 2, 3)))) == {"y": 6 * 2 * 2 * gates * 5 * (3 + 5)}
