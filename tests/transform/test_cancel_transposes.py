"""CancelTransposes: changes, leaves alone, same numbers, twice is once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import tvm
from network_running import module, run_reference, variable
from tvm import relax
from tvm.relax import op

from xnncc.ir.transposed import transposed_name, untransposed
from xnncc.transform.cancel_transposes import CancelTransposes

R = np.random.default_rng(0)
W = relax.const(R.standard_normal((8, 8, 3, 3)).astype("float32"))
BIAS = R.standard_normal(8).astype("float32")
X = R.standard_normal((1, 6, 5, 8)).astype("float32")
NCHW, NHWC = [0, 3, 1, 2], [0, 2, 3, 1]
Emit = Callable[..., relax.Var]


def _conv(emit: Emit, x: relax.Var, name: str) -> relax.Var:
    inside = emit(op.permute_dims(x, NCHW), f"{name}#2")
    return emit(op.permute_dims(emit(op.nn.conv2d(inside, W, padding=1), f"{name}@0312"), NHWC), name)


def _moves(mod: tvm.IRModule) -> list[str]:
    return [
        b.var.name
        for block in mod["main"].body.blocks
        for b in block.bindings
        if isinstance(b.value, tvm.ir.Call) and b.value.op.name == "relax.permute_dims"
    ]


def _pass(mod: tvm.IRModule) -> tvm.IRModule:
    return CancelTransposes()(relax.transform.CanonicalizeBindings()(mod))


def test_changes() -> None:
    def before(emit: Emit, x: relax.Var) -> relax.Var:
        y = emit(op.nn.relu(emit(op.add(_conv(emit, x, "a"), relax.const(BIAS)), "b")), "c")
        return _conv(emit, y, "d")

    def after(emit: Emit, x: relax.Var) -> relax.Var:
        a = emit(op.nn.conv2d(emit(op.permute_dims(x, NCHW), "a#2"), W, padding=1), "a@0312")
        b = emit(op.add(a, relax.const(BIAS.reshape(1, 8, 1, 1))), "b@0312")
        d = emit(op.nn.conv2d(emit(op.nn.relu(b), "c@0312"), W, padding=1), "d@0312")
        return emit(op.permute_dims(d, NHWC), "d")

    moved = _pass(module(before, variable("x", X.shape)))
    wanted = relax.transform.CanonicalizeBindings()(module(after, variable("x", X.shape)))
    tvm.ir.assert_structural_equal(moved, wanted)
    names = [b.var.name for block in moved["main"].body.blocks for b in block.bindings]
    assert {"a@0312", "b@0312", "c@0312", "d@0312", "d"} <= set(names)


def _between(step: Callable[[Emit, relax.Var], relax.Expr]) -> Callable[[Emit, relax.Var], relax.Var]:
    """Return conv -> ``step`` -> conv, all NHWC."""

    def build(emit: Emit, x: relax.Var) -> relax.Var:
        return _conv(emit, emit(step(emit, _conv(emit, x, "a")), "s"), "z")

    return build


STEPS: dict[str, Callable[[Emit, relax.Var], relax.Expr]] = {
    "relu6": lambda emit, y: op.clip(y, 0.0, 6.0),
    "residual": lambda emit, y: op.add(_conv(emit, emit(op.nn.relu(y), "r"), "b"), y),
    "scalar": lambda emit, y: op.multiply(relax.const(np.float32(0.5)), y),
    "gate": lambda emit, y: op.multiply(y, emit(op.sigmoid(emit(op.mean(y, [1, 2], keepdims=True), "m")), "g")),
    "pad": lambda emit, y: op.nn.pad(y, (0, 0, 1, 2, 0, 1, 0, 0)),
    "slice": lambda emit, y: op.strided_slice(y, [1, 2], [0, 1], [6, 5], [2, 1]),
    "take": lambda emit, y: op.take(y, relax.const(np.array([3, 1, 1], "int32")), 1, mode="clip"),
    "flip": lambda emit, y: op.flip(y, 2),
    "softmax": lambda emit, y: op.nn.softmax(y, 3),
    "where": lambda emit, y: op.where(op.greater(y, relax.const(np.float32(0))), y, relax.const(np.float32(0))),
    "concat and split": lambda emit, y: relax.TupleGetItem(
        emit(op.split(emit(op.concat([y, emit(op.nn.relu(y), "r")], 3), "c"), 2, 3), "p"), 1),
    "squeezed and back": lambda emit, y: op.reshape(emit(op.nn.relu(emit(op.reshape(y, (6, 5, 8)), "q")), "r"),
                                                    (1, 6, 5, 8)),
}  # fmt: skip


@pytest.mark.parametrize("step", STEPS)
def test_nothing_is_left_between_convolutions(step: str) -> None:
    mod = module(_between(STEPS[step]), variable("x", X.shape))
    moved = _pass(mod)
    assert _moves(moved) == ["a#2", "z"]
    assert relax.analysis.well_formed(moved) is None
    for before, after in zip(run_reference(mod, X), run_reference(moved, X), strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-5)  # the same sums, other loops


def test_rows_of_weights_follow_a_flattened_image() -> None:
    w = R.standard_normal((6 * 5 * 8, 4)).astype("float32")

    def build(emit: Emit, x: relax.Var) -> relax.Var:
        flat = emit(op.reshape(_conv(emit, x, "a"), (1, 240)), "f")
        return emit(op.matmul(flat, relax.const(w)), "y")

    mod = module(build, variable("x", X.shape))
    moved = _pass(mod)
    assert _moves(moved) == ["a#2"]
    np.testing.assert_allclose(run_reference(moved, X)[0], run_reference(mod, X)[0], rtol=1e-4, atol=1e-4)


def test_a_flattened_image_with_another_reader_is_transposed() -> None:
    w = R.standard_normal((6 * 5 * 8, 4)).astype("float32")

    def build(emit: Emit, x: relax.Var) -> list[relax.Var]:
        flat = emit(op.reshape(_conv(emit, x, "a"), (1, 240)), "f")
        return [emit(op.matmul(flat, relax.const(w)), "y"), flat]

    mod = module(build, variable("x", X.shape))
    for before, after in zip(run_reference(mod, X), run_reference(_pass(mod), X), strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-4)


def test_leaves_a_graph_alone_that_would_not_get_better() -> None:
    """One transposition with two readers would become two."""

    def build(emit: Emit, x: relax.Var) -> list[relax.Var]:
        y = emit(op.permute_dims(x, NCHW), "y")
        return [emit(op.nn.relu(y), "a"), emit(op.sigmoid(y), "b")]

    mod = relax.transform.CanonicalizeBindings()(module(build, variable("x", X.shape)))
    tvm.ir.assert_structural_equal(CancelTransposes()(mod), mod)


def test_leaves_a_graph_without_transpositions_alone() -> None:
    mod = relax.transform.CanonicalizeBindings()(
        module(lambda emit, x: emit(op.nn.relu(x), "y"), variable("x", X.shape))
    )
    tvm.ir.assert_structural_equal(CancelTransposes()(mod), mod)


def test_keeps_inputs_and_outputs() -> None:
    def build(emit: Emit, x: relax.Var) -> list[relax.Var]:
        y = _conv(emit, x, "a")
        return [x, y, emit(op.nn.relu(y), "r"), y]

    mod = module(build, variable("x", X.shape))
    moved = _pass(mod)
    assert [p.name for p in moved["main"].params] == ["x"]
    tvm.ir.assert_structural_equal(moved["main"].ret_ty, mod["main"].ret_ty)
    for before, after in zip(run_reference(mod, X), run_reference(moved, X), strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("step", STEPS)
def test_twice_is_once(step: str) -> None:
    once = _pass(module(_between(STEPS[step]), variable("x", X.shape)))
    tvm.ir.assert_structural_equal(_pass(once), once)


def test_names_of_transposed_tensors() -> None:
    assert transposed_name("a/b:1", (0, 3, 1, 2)) == "a/b:1@0312"
    assert untransposed("a/b:1@0312") == ("a/b:1", (0, 3, 1, 2))
    assert untransposed("x@y") == ("x@y", None) and untransposed("x@11") == ("x@11", None)
