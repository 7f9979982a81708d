"""fold_affine: changes what it says, leaves the rest alone, same numbers, twice is once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from network_running import module, variable
from tvm import relax
from tvm.relax import op

from xnncc.frontends.evaluate import evaluate
from xnncc.transform.flat_network import FlatNetwork
from xnncc.transform.fold_affine import fold_affine


def _random(*shape: int, seed: int = 0) -> relax.Expr:
    return relax.const(np.random.default_rng(seed).uniform(0.5, 2, shape).astype("float32"))


def _operators(mod: tvm.IRModule) -> list[str]:
    bindings = [binding for block in mod["main"].body.blocks for binding in block.bindings]
    return [b.value.op.name.rpartition(".")[2] for b in bindings if isinstance(b.value, tvm.ir.Call)]


def _conv(emit: Any, x: relax.Var) -> relax.Var:
    y = emit(op.nn.conv2d(x, _random(6, 3, 3, 3), padding=1), "conv")
    y = emit(op.multiply(y, _random(1, 6, 1, 1, seed=1)), "scaled")
    y = emit(op.add(y, _random(6, 1, 1, seed=2)), "shifted")
    y = emit(op.divide(emit(op.subtract(y, relax.const(np.float32(0.5))), "less"), _random(1, 6, 1, 1, seed=3)), "over")
    return emit(op.nn.relu(y), "out")


def _transposed(emit: Any, x: relax.Var) -> relax.Var:
    y = emit(op.nn.conv2d_transpose(x, _random(3, 5, 2, 2), strides=2), "up")
    return emit(op.multiply(emit(op.add(y, _random(1, 5, 1, 1)), "b"), _random(1, 5, 1, 1, seed=1)), "k")


def _depthwise(emit: Any, x: relax.Var) -> relax.Var:
    return emit(op.multiply(_random(1, 3, 1, 1), emit(op.nn.conv2d(x, _random(3, 1, 3, 3), groups=3), "dw")), "k")


def _product(emit: Any, x: relax.Var) -> relax.Var:
    y = emit(op.add(emit(op.matmul(x, _random(8, 4)), "fc"), _random(4, seed=1)), "b")
    return emit(op.add(emit(op.multiply(y, _random(1, 1, 1, 4, seed=2)), "k"), _random(1, seed=3)), "c")


CHANGED = [
    (_conv, ["conv2d", "add", "relu"]),
    (_transposed, ["conv2d_transpose", "add"]),
    (_depthwise, ["conv2d"]),
    (_product, ["matmul", "add"]),
]


@pytest.mark.parametrize(("build", "left"), CHANGED, ids=[build.__name__ for build, _ in CHANGED])
def test_folds_with_the_same_numbers_and_twice_is_once(build: Any, left: list[str]) -> None:
    mod = module(build, variable("x", (1, 3, 8, 8)))
    folded = fold_affine(mod)
    assert _operators(folded) == left
    tvm.ir.assert_structural_equal(fold_affine(folded), folded)
    x = np.random.default_rng(9).standard_normal((1, 3, 8, 8)).astype("float32")
    before, after = evaluate(FlatNetwork(mod).module(), [x])[0][0], evaluate(folded, [x])[0][0]
    assert np.abs(before - after).max() <= 1e-5 * np.abs(before).max()  # one more rounding of each weight


def _read_twice(emit: Any, x: relax.Var) -> list[relax.Var]:
    y = emit(op.nn.conv2d(x, _random(6, 3, 3, 3)), "conv")
    return [y, emit(op.multiply(y, _random(1, 6, 1, 1)), "k")]


def _along_width(emit: Any, x: relax.Var) -> relax.Var:
    return emit(op.multiply(emit(op.nn.conv2d(x, _random(6, 3, 1, 1)), "conv"), _random(1, 1, 1, 8)), "k")


def _divided_by(emit: Any, x: relax.Var) -> relax.Var:
    return emit(op.divide(_random(1, 6, 1, 1), emit(op.nn.conv2d(x, _random(6, 3, 1, 1)), "conv")), "k")


def _by_zero(emit: Any, x: relax.Var) -> relax.Var:
    y = emit(op.nn.conv2d(x, _random(6, 3, 1, 1)), "conv")
    return emit(op.divide(y, relax.const(np.zeros((1, 6, 1, 1), "float32"))), "k")


def _wider(emit: Any, x: relax.Var) -> relax.Var:
    return emit(op.multiply(emit(op.nn.conv2d(x, _random(6, 3, 8, 8)), "conv"), _random(1, 6, 4, 1)), "k")


def _weights_from_input(emit: Any, x: relax.Var) -> relax.Var:
    return emit(op.multiply(emit(op.matmul(x, x), "product"), _random(1, 1, 1, 8)), "k")


ALONE = [_read_twice, _along_width, _divided_by, _by_zero, _wider, _weights_from_input]


@pytest.mark.parametrize("build", ALONE, ids=[build.__name__ for build in ALONE])
def test_leaves_alone(build: Any) -> None:
    mod = module(build, variable("x", (1, 3, 8, 8)))
    assert _operators(fold_affine(mod)) == _operators(mod)


def test_tensors_keep_their_names() -> None:
    mod = fold_affine(module(_conv, variable("x", (1, 3, 8, 8))))
    assert [b.var.name for block in mod["main"].body.blocks for b in block.bindings] == ["conv", "shifted", "out"]
