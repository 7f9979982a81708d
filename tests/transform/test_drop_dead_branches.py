"""drop_dead_branches: changes what it says, leaves the rest alone, same numbers, twice is once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from network_running import module, variable
from rewrites import check_rewrite, constant, operators
from tvm import relax
from tvm.relax import op

from xnncc.transform.drop_dead_branches import drop_dead_branches

Build = Callable[..., Any]
SHAPE = (1, 4, 6, 6)


def _zeros(*shape: int) -> relax.Expr:
    return relax.const(np.zeros(shape, "float32"))


def _pruned_branch(emit: Any, x: relax.Var) -> relax.Var:
    dead = emit(op.nn.relu(emit(op.nn.conv2d(x, _zeros(4, 4, 3, 3), padding=1), "conv")), "dead")
    dead = emit(op.nn.conv2d(dead, constant(4, 4, 1, 1)), "more")
    return emit(op.tanh(emit(op.add(dead, emit(op.abs(x), "y")), "sum")), "out")


def _switched_off(emit: Any, x: relax.Var) -> relax.Var:
    gate = emit(op.multiply(emit(op.sigmoid(x), "s"), relax.const(np.float32(0))), "gate")
    return emit(op.tanh(emit(op.subtract(x, gate), "less")), "out")


def _part_of_a_concat(emit: Any, x: relax.Var) -> relax.Var:
    dead = emit(op.nn.max_pool2d(emit(op.nn.conv2d(x, _zeros(2, 4, 1, 1)), "conv"), (2, 2), 1, 0), "pool")
    return emit(op.concat([emit(op.nn.max_pool2d(x, (2, 2), 1, 0), "live"), dead], 1), "out")


def _never_read(emit: Any, x: relax.Var) -> relax.Var:
    emit(op.nn.conv2d(x, constant(4, 4, 1, 1)), "nobody")
    return emit(op.tanh(x), "out")


CHANGED: list[tuple[Build, list[str]]] = [
    (_pruned_branch, ["abs", "tanh"]),
    (_switched_off, ["tanh"]),
    (_part_of_a_concat, ["max_pool2d", "concat"]),
    (_never_read, ["tanh"]),
]


@pytest.mark.parametrize(("build", "left"), CHANGED, ids=[build.__name__ for build, _ in CHANGED])
def test_drops_with_the_same_numbers(build: Build, left: list[str]) -> None:
    assert operators(check_rewrite(drop_dead_branches, module(build, variable("x", SHAPE)), SHAPE)) == left


def _alive(emit: Any, x: relax.Var) -> relax.Var:
    return emit(op.add(emit(op.nn.conv2d(x, constant(4, 4, 1, 1)), "conv"), constant(1, 4, 1, 1)), "out")


def _widened_by_zeros(emit: Any, x: relax.Var) -> relax.Var:
    """The sum has another shape than what is left of it."""
    small = emit(op.mean(x, [2, 3], keepdims=True), "mean")
    return emit(op.tanh(emit(op.add(small, _zeros(1, 4, 6, 6)), "wide")), "out")


def _zero_less_something(emit: Any, x: relax.Var) -> relax.Var:
    return emit(op.tanh(emit(op.subtract(_zeros(1, 4, 6, 6), x), "minus")), "out")


def _output(emit: Any, x: relax.Var) -> relax.Var:
    return emit(op.add(x, _zeros(1, 4, 6, 6)), "out")


def _not_zero_at_zero(emit: Any, x: relax.Var) -> relax.Var:
    return emit(op.exp(emit(op.multiply(x, constant(1, 4, 1, 1)), "k")), "out")


KEPT = [_alive, _widened_by_zeros, _zero_less_something, _output, _not_zero_at_zero]


@pytest.mark.parametrize("build", KEPT, ids=[build.__name__ for build in KEPT])
def test_leaves_alone(build: Build) -> None:
    mod = module(build, variable("x", SHAPE))
    assert drop_dead_branches(mod) is mod


def test_half_zero_weights_are_alive() -> None:
    weights = np.zeros((4, 4, 1, 1), "float32")
    weights[0, 0] = 1

    def build(emit: Any, x: relax.Var) -> relax.Var:
        return emit(op.tanh(emit(op.nn.conv2d(x, relax.const(weights)), "conv")), "out")

    mod = module(build, variable("x", SHAPE))
    assert drop_dead_branches(mod) is mod
