"""collapse_linear_chains: changes what it says, leaves the rest alone, same numbers, twice is once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm
from network_running import module, variable
from rewrites import check_rewrite, constant, operators
from tvm import relax
from tvm.relax import op

from xnncc.transform.collapse_linear_chains import collapse_linear_chains

Build = Callable[..., Any]


def _conv(emit: Any, x: relax.Var, name: str, shape: tuple[int, ...], bias: bool = False, **attributes: Any) -> Any:
    y = emit(op.nn.conv2d(x, constant(*shape), **attributes), name)
    return emit(op.add(y, constant(1, shape[0], 1, 1)), f"{name}_b") if bias else y


def _products(emit: Any, x: relax.Var) -> relax.Var:
    y = emit(op.add(emit(op.matmul(x, constant(8, 20)), "a"), constant(20)), "ab")
    return emit(op.add(emit(op.matmul(y, constant(20, 6)), "z"), constant(6)), "zb")


def _narrowing(emit: Any, x: relax.Var) -> relax.Var:
    y = _conv(emit, x, "a", (24, 8, 3, 3), bias=True, strides=2, padding=1)
    return _conv(emit, y, "z", (8, 24, 1, 1), bias=True)


def _widening_first(emit: Any, x: relax.Var) -> relax.Var:
    return _conv(emit, _conv(emit, x, "a", (40, 8, 1, 1)), "z", (8, 40, 3, 3), bias=True, padding=1, dilation=2)


def _bias_before_valid_windows(emit: Any, x: relax.Var) -> relax.Var:
    return _conv(emit, _conv(emit, x, "a", (40, 8, 1, 1), bias=True), "z", (8, 40, 3, 3), bias=True)


def _three(emit: Any, x: relax.Var) -> relax.Var:
    y = _conv(emit, _conv(emit, x, "a", (16, 8, 1, 1)), "b", (16, 16, 1, 1))
    return _conv(emit, y, "z", (8, 16, 1, 1))


IMAGE = (1, 8, 9, 9)
CHANGED: list[tuple[Build, tuple[int, ...], list[str]]] = [
    (_products, (3, 8), ["matmul", "add"]),
    (_narrowing, IMAGE, ["conv2d", "add"]),
    (_widening_first, IMAGE, ["conv2d", "add"]),
    (_bias_before_valid_windows, IMAGE, ["conv2d", "add"]),
    (_three, IMAGE, ["conv2d"]),
]


@pytest.mark.parametrize(("build", "shape", "left"), CHANGED, ids=[case[0].__name__ for case in CHANGED])
def test_two_become_one_with_the_same_numbers(build: Build, shape: tuple[int, ...], left: list[str]) -> None:
    after = check_rewrite(collapse_linear_chains, module(build, variable("x", shape)), shape)
    assert operators(after) == left


def _bottleneck(emit: Any, x: relax.Var) -> relax.Var:
    return _conv(emit, _conv(emit, x, "a", (2, 8, 1, 1)), "z", (8, 2, 1, 1))


def _padded_bias(emit: Any, x: relax.Var) -> relax.Var:
    return _conv(emit, _conv(emit, x, "a", (40, 8, 1, 1), bias=True), "z", (8, 40, 3, 3), bias=True, padding=1)


def _rectified(emit: Any, x: relax.Var) -> relax.Var:
    return _conv(emit, emit(op.nn.relu(_conv(emit, x, "a", (24, 8, 1, 1))), "r"), "z", (8, 24, 1, 1))


def _read_twice(emit: Any, x: relax.Var) -> list[relax.Var]:
    y = _conv(emit, x, "a", (24, 8, 1, 1))
    return [y, _conv(emit, y, "z", (8, 24, 1, 1))]


def _two_kernels(emit: Any, x: relax.Var) -> relax.Var:
    return _conv(emit, _conv(emit, x, "a", (24, 8, 3, 3)), "z", (8, 24, 3, 3))


def _grouped(emit: Any, x: relax.Var) -> relax.Var:
    return _conv(emit, _conv(emit, x, "a", (24, 8, 1, 1)), "z", (8, 12, 1, 1), groups=2)


def _no_place_for_the_bias(emit: Any, x: relax.Var) -> relax.Var:
    return _conv(emit, _conv(emit, x, "a", (24, 8, 1, 1), bias=True), "z", (8, 24, 1, 1))


KEPT = [_bottleneck, _padded_bias, _rectified, _read_twice, _two_kernels, _grouped, _no_place_for_the_bias]


@pytest.mark.parametrize("build", KEPT, ids=[build.__name__ for build in KEPT])
def test_leaves_alone(build: Build) -> None:
    mod = module(build, variable("x", IMAGE))
    assert collapse_linear_chains(mod) is mod


def test_weights_that_are_no_numbers_are_left_alone() -> None:
    def build(emit: Any, x: relax.Var) -> relax.Var:
        y = emit(op.matmul(x, relax.const(np.full((8, 20), np.inf, "float32"))), "a")
        return emit(op.matmul(y, constant(20, 6)), "z")

    mod: tvm.IRModule = module(build, variable("x", (3, 8)))
    assert collapse_linear_chains(mod) is mod
