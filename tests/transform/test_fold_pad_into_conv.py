"""FoldPadIntoConv: changes, leaves alone, same numbers, twice is once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import tvm
from network_running import module, run_reference, variable
from tvm import relax
from tvm.relax import op

from xnncc.transform.fold_pad_into_conv import FoldPadIntoConv

WEIGHTS = relax.const(np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype("float32"))
X = np.random.default_rng(1).standard_normal((1, 3, 6, 7)).astype("float32")


def _padded_conv(pads: tuple[int, ...], mode: str = "constant", value: float = 0.0, **attrs: object) -> tvm.IRModule:
    """Return y = pad(x), z = conv2d(y); ``pads`` in nn.pad's order: before and after each axis."""

    def build(emit: Callable, x: relax.Var) -> relax.Var:
        y = emit(op.nn.pad(x, pads, mode, value), "y")
        return emit(op.nn.conv2d(y, WEIGHTS, **attrs), "z")

    return module(build, variable("x", X.shape))


def _folded_conv(**attrs: object) -> tvm.IRModule:
    return module(lambda emit, x: emit(op.nn.conv2d(x, WEIGHTS, **attrs), "z"), variable("x", X.shape))


CASES = [
    ((0, 0, 0, 0, 1, 1, 1, 1), {}, {"padding": (1, 1, 1, 1)}),
    ((0, 0, 0, 0, 1, 2, 3, 0), {}, {"padding": (1, 3, 2, 0)}),
    ((0, 0, 0, 0, 1, 2, 3, 0), {"padding": (1, 0, 2, 1)}, {"padding": (2, 3, 4, 1)}),
    (
        (0, 0, 0, 0, 0, 1, 0, 1),
        {"strides": 2, "dilation": (2, 1)},
        {"padding": (0, 0, 1, 1), "strides": 2, "dilation": (2, 1)},
    ),
]


@pytest.mark.parametrize(("pads", "before", "after"), CASES)
def test_changes(pads: tuple[int, ...], before: dict, after: dict) -> None:
    folded = relax.transform.DeadCodeElimination()(FoldPadIntoConv()(_padded_conv(pads, **before)))
    tvm.ir.assert_structural_equal(folded, _folded_conv(**after))


def test_keeps_groups() -> None:
    w = relax.const(np.ones((6, 1, 3, 3), "float32"))

    def build(emit: Callable, x: relax.Var) -> relax.Var:
        return emit(op.nn.conv2d(emit(op.nn.pad(x, (0, 0, 0, 0, 1, 1, 1, 1)), "y"), w, groups=3), "z")

    def wanted(emit: Callable, x: relax.Var) -> relax.Var:
        return emit(op.nn.conv2d(x, w, groups=3, padding=1), "z")

    folded = relax.transform.DeadCodeElimination()(FoldPadIntoConv()(module(build, variable("x", X.shape))))
    tvm.ir.assert_structural_equal(folded, module(wanted, variable("x", X.shape)))


@pytest.mark.parametrize(
    ("pads", "mode", "value"),
    [
        ((0, 0, 0, 0, 1, 1, 1, 1), "reflect", 0.0),
        ((0, 0, 0, 0, 1, 1, 1, 1), "replicate", 0.0),
        ((0, 0, 0, 0, 1, 1, 1, 1), "constant", 1.0),
        ((1, 0, 0, 0, 1, 1, 1, 1), "constant", 0.0),
    ],
)
def test_leaves_alone(pads: tuple[int, ...], mode: str, value: float) -> None:
    mod = _padded_conv(pads, mode, value)
    tvm.ir.assert_structural_equal(FoldPadIntoConv()(mod), mod)


def test_leaves_a_pad_of_channels_alone() -> None:
    def build(emit: Callable, x: relax.Var) -> relax.Var:
        y = emit(op.nn.pad(x, (0, 0, 1, 0, 1, 1, 1, 1)), "y")
        return emit(op.nn.conv2d(y, WEIGHTS), "z")

    mod = module(build, variable("x", (1, 2, 6, 7)))
    tvm.ir.assert_structural_equal(FoldPadIntoConv()(mod), mod)


def test_leaves_a_negative_pad_alone() -> None:
    mod = _padded_conv((0, 0, 0, 0, -1, 1, 1, 1))
    tvm.ir.assert_structural_equal(FoldPadIntoConv()(mod), mod)


def test_leaves_other_layouts_alone() -> None:
    w = relax.const(np.ones((4, 3, 3, 3), "float32"))

    def build(emit: Callable, x: relax.Var) -> relax.Var:
        y = emit(op.nn.pad(x, (0, 0, 0, 0, 1, 1, 0, 0)), "y")
        return emit(op.nn.conv2d(y, w, data_layout="NHWC", kernel_layout="OIHW"), "z")

    mod = module(build, variable("x", (1, 6, 7, 3)))
    tvm.ir.assert_structural_equal(FoldPadIntoConv()(mod), mod)


def test_a_pad_with_another_reader_stays_for_that() -> None:
    def build(emit: Callable, x: relax.Var) -> list[relax.Var]:
        y = emit(op.nn.pad(x, (0, 0, 0, 0, 1, 1, 1, 1)), "y")
        return [emit(op.nn.conv2d(y, WEIGHTS), "z"), emit(op.nn.relu(y), "r")]

    mod = module(build, variable("x", X.shape))
    folded = FoldPadIntoConv()(mod)
    assert "R.nn.pad" in folded.script() and "padding=[1, 1, 1, 1]" in folded.script()
    for before, after in zip(run_reference(mod, X), run_reference(folded, X), strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("pads", "before", "after"), CASES[2:])
def test_same_numbers(pads: tuple[int, ...], before: dict, after: dict) -> None:
    mod = _padded_conv(pads, **before)
    (wanted,), (found,) = run_reference(mod, X), run_reference(FoldPadIntoConv()(mod), X)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)  # the same sums, zeros aside


def test_twice_is_once() -> None:
    once = FoldPadIntoConv()(_padded_conv((0, 0, 0, 0, 1, 2, 3, 0), padding=(1, 0, 2, 1)))
    tvm.ir.assert_structural_equal(FoldPadIntoConv()(once), once)
