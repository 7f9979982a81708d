"""merge_parallel_convs: changes what it says, leaves the rest alone, same numbers, twice is once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from network_running import module, variable
from rewrites import check_rewrite, constant, operators
from tvm import relax
from tvm.relax import op

from xnncc.transform.merge_parallel_convs import merge_parallel_convs

Build = Callable[..., Any]


def _branch(
    emit: Any, x: relax.Var, name: str, outputs: int, kernel: int = 1, bias: bool = True, unary: Any = None, **rest: Any
) -> Any:
    y = emit(op.nn.conv2d(x, constant(outputs, 8, kernel, kernel), **rest), name)
    y = emit(op.add(y, constant(1, outputs, 1, 1)), f"{name}_b") if bias else y
    return emit(unary(y), f"{name}_u") if unary else y


def _concat(emit: Any, fields: list[Any]) -> Any:
    return emit(op.nn.relu(emit(op.concat(fields, 1), "all")), "out")


def _both(emit: Any, x: relax.Var) -> relax.Var:
    return _concat(emit, [_branch(emit, x, "a", 4), _branch(emit, x, "b", 6)])


def _rectified(emit: Any, x: relax.Var) -> relax.Var:
    return _concat(emit, [_branch(emit, x, name, 4, unary=op.tanh) for name in "abc"])


def _bare_kernels(emit: Any, x: relax.Var) -> relax.Var:
    return _concat(emit, [_branch(emit, x, name, 4, 3, bias=False, padding=1, strides=2) for name in "ab"])


def _neighbours(emit: Any, x: relax.Var) -> relax.Var:
    """Two pairs around one that is of another kernel, and the input itself."""
    pairs = [_branch(emit, x, name, 4) for name in "abde"]
    middle = _branch(emit, x, "c", 5, 3, padding=1)
    return _concat(emit, [*pairs[:2], middle, *pairs[2:], x])


def _sum(emit: Any, x: relax.Var) -> relax.Var:
    return emit(op.nn.relu(emit(op.add(_branch(emit, x, "a", 4), _branch(emit, x, "b", 4)), "sum")), "out")


def _products(emit: Any, x: relax.Var) -> relax.Var:
    fields = [emit(op.matmul(x, constant(5, 3)), "a"), emit(op.matmul(x, constant(5, 4)), "b")]
    return emit(op.concat(fields, -1), "all")


IMAGE = (1, 8, 6, 6)
CHANGED: list[tuple[Build, tuple[int, ...], list[str]]] = [
    (_both, IMAGE, ["conv2d", "add", "relu"]),
    (_rectified, IMAGE, ["conv2d", "add", "tanh", "relu"]),
    (_bare_kernels, IMAGE, ["conv2d", "relu"]),
    (_neighbours, IMAGE, ["conv2d", "add", "conv2d", "add", "conv2d", "add", "concat", "relu"]),
    (_sum, IMAGE, ["conv2d", "add", "relu"]),
    (_products, (2, 5), ["matmul"]),
]


@pytest.mark.parametrize(("build", "shape", "left"), CHANGED, ids=[case[0].__name__ for case in CHANGED])
def test_they_become_one_with_the_same_numbers(build: Build, shape: tuple[int, ...], left: list[str]) -> None:
    after = check_rewrite(merge_parallel_convs, module(build, variable("x", shape)), shape)
    assert sorted(operators(after)) == sorted(left)


def _apart(emit: Any, x: relax.Var) -> list[relax.Var]:
    return [_branch(emit, x, name, 4) for name in "ab"]


def _read_twice(emit: Any, x: relax.Var) -> list[relax.Var]:
    first = _branch(emit, x, "a", 4)
    return [first, _concat(emit, [first, _branch(emit, x, "b", 4)])]


def _other_input(emit: Any, x: relax.Var) -> relax.Var:
    return _concat(emit, [_branch(emit, x, "a", 4), _branch(emit, emit(op.abs(x), "y"), "b", 4)])


def _other_window(emit: Any, x: relax.Var) -> relax.Var:
    return _concat(emit, [_branch(emit, x, "a", 4, 3, padding=1), _branch(emit, x, "b", 4, 3, padding=2, dilation=2)])


def _other_function(emit: Any, x: relax.Var) -> relax.Var:
    return _concat(emit, [_branch(emit, x, "a", 4, unary=op.tanh), _branch(emit, x, "b", 4, unary=op.nn.relu)])


def _one_bias(emit: Any, x: relax.Var) -> relax.Var:
    return _concat(emit, [_branch(emit, x, "a", 4), _branch(emit, x, "b", 4, bias=False)])


def _along_the_width(emit: Any, x: relax.Var) -> relax.Var:
    return emit(op.concat([_branch(emit, x, "a", 4), _branch(emit, x, "b", 4)], 3), "all")


def _sum_of_functions(emit: Any, x: relax.Var) -> relax.Var:
    return emit(op.add(_branch(emit, x, "a", 4, unary=op.tanh), _branch(emit, x, "b", 4, unary=op.tanh)), "sum")


def _twice_the_same(emit: Any, x: relax.Var) -> relax.Var:
    one = _branch(emit, x, "a", 4)
    return emit(op.add(one, one), "sum")


KEPT = [
    _apart, _read_twice, _other_input, _other_window, _other_function, _one_bias, _along_the_width, _sum_of_functions,
    _twice_the_same,
]  # fmt: skip


@pytest.mark.parametrize("build", KEPT, ids=[build.__name__ for build in KEPT])
def test_leaves_alone(build: Build) -> None:
    mod = module(build, variable("x", IMAGE))
    assert merge_parallel_convs(mod) is mod
