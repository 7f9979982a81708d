"""Kernels that are not ours: TVM's, and ones that fit no rule. Fast if possible, right always."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import tvm
from kernel_running import AVX2, kernel, placeholders, random, run, run_all
from tvm import te, topi
from tvm.script import tirx as T

from xnncc.kernels import rule
from xnncc.kernels.softmax import f32_softmax
from xnncc.schedule import schedule_kernel
from xnncc.schedule.rowwise import vector_width


def _check(expected_rule: str, fn: Callable, *inputs: np.ndarray, tolerance: float = 2e-6) -> None:
    args = placeholders(*inputs)
    outputs = fn(*args)
    func = kernel(*args, *(outputs if isinstance(outputs, (list, tuple, tvm.ir.Array)) else [outputs]))
    scheduled = schedule_kernel(func, AVX2)
    assert scheduled.rule == expected_rule, scheduled.reason
    expected = run_all(func, *inputs, optimised=False)
    for found, wanted in zip(run_all(scheduled.func, *inputs), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


X = random(1, 3, 5, 40)


def _softmax_then(x: te.Tensor) -> te.Tensor:
    y = f32_softmax(x)
    return te.compute(y.shape, lambda *i: y(*i) * 2.0, "twice")


@pytest.mark.parametrize(
    ("rule_name", "fn"),
    [
        ("rowwise", f32_softmax),
        ("rowwise", lambda x: topi.sum(x, axis=-1, keepdims=True)),
        ("rowwise", lambda x: topi.max(x, axis=2)),
        ("elementwise", lambda x: topi.transpose(x, (2, 0, 1))),
        ("elementwise", lambda x: topi.nn.relu(topi.reshape(x, (40, 15)))),
        ("elementwise", lambda x: topi.strided_slice(x, [0, 1, 3], [3, 4, 30], [1, 1, 2])),
        ("elementwise", lambda x: topi.split(x, 5, axis=2)),
    ],
)
def test_foreign_kernels_keep_their_numbers(rule_name: str, fn: Callable) -> None:
    _check(rule_name, fn, X)


@pytest.mark.parametrize(
    "fn",
    [
        _softmax_then,
        lambda x: topi.sum(x),
        lambda x: topi.sum(x, axis=1),
        lambda x: topi.argmax(x, axis=1),
        lambda x: topi.argmin(x, axis=-1),
        lambda x: topi.nn.softmax(x, axis=1),
        lambda x: topi.nn.log_softmax(topi.reshape(x, (15, 40))),
        lambda x: topi.prod(x, axis=(0, 2)),
        lambda x: topi.sum(x, axis=(1, 2), keepdims=True),
    ],
)
def test_whatever_rule_takes_a_reduction_its_numbers_stay(fn: Callable) -> None:
    args = placeholders(X)
    func = kernel(*args, fn(*args))
    scheduled = schedule_kernel(func, AVX2)
    np.testing.assert_allclose(
        run(scheduled.func, X), run(func, X, optimised=False), rtol=5e-6, atol=5e-6, err_msg=scheduled.reason
    )


def test_layer_norm() -> None:
    gamma, beta = random(2, 40), random(3, 40)
    _check("rowwise", lambda x, g, b: topi.nn.layer_norm(x, g, b, [2], 1e-5), X, gamma, beta, tolerance=1e-5)


def test_gather() -> None:
    index = np.array([2, 0, 1, 1], "int64")
    _check("elementwise", lambda x, i: topi.take(x, i, axis=0), X, index)


@T.prim_func(s_tir=True)
def running_sum(x: T.Buffer((33,), "float32"), y: T.Buffer((33,), "float32")):
    """Each block instance reads what the one before it wrote: nothing may run in parallel or in vectors."""
    for i in range(33):
        with T.sblock("y"):
            vi = T.axis.opaque(33, i)
            y[vi] = x[vi] + T.if_then_else(vi > 0, y[vi - 1], T.float32(0))


def test_a_kernel_that_no_rule_fits_stays_as_it_is_and_the_reason_says_so() -> None:
    x = random(1, 33)
    scheduled = schedule_kernel(running_sum, AVX2)
    np.testing.assert_allclose(run(scheduled.func, x), np.cumsum(x), rtol=1e-5, atol=1e-5)
    assert scheduled.rule == "none"
    assert scheduled.reason.startswith("not scheduled; elementwise did not fit: ")


def test_one_opaque_block_is_left_alone() -> None:
    args = placeholders(X)
    scheduled = schedule_kernel(kernel(*args, topi.cumsum(args[0], axis=2)), AVX2)
    assert (scheduled.rule, scheduled.reason) == ("none", "not scheduled; one opaque block")
    np.testing.assert_allclose(run(scheduled.func, X), X.cumsum(axis=2), rtol=1e-5, atol=1e-5)


def test_a_rule_that_does_not_fit_is_named_and_the_next_one_taken() -> None:
    """A convolution in all but its loops: the rule's splits fail."""
    x = random(1, 6, 40)
    args = placeholders(x)
    r = te.reduce_axis((0, 40), "r")
    total = te.compute((6,), lambda i: te.sum(args[0][i, r], axis=r), "acc",
                       attrs=rule("conv2d", oh=2, ow=3, ic=40, ib=1, taps=1, ob=1, x_bytes=960))  # fmt: skip
    func = kernel(*args, te.compute((6,), lambda i: total[i] + 1.0, "y"))
    scheduled = schedule_kernel(func, AVX2)
    assert scheduled.rule == "reduction"
    assert "; conv2d Config(" in scheduled.reason and "did not fit: " in scheduled.reason
    np.testing.assert_allclose(run(scheduled.func, x), x.sum(axis=1) + 1, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("n", "lanes", "width"),
    [(1, 8, 1), (7, 8, 7), (8, 8, 8), (64, 8, 8), (12, 8, 12), (13, 8, 13), (17, 8, 1), (1001, 8, 13), (10, 4, 5)],
)
def test_vector_width_divides_the_row(n: int, lanes: int, width: int) -> None:
    assert vector_width(n, lanes) == width


def test_a_two_output_kernel_is_written_whole() -> None:
    def fn(x: te.Tensor) -> list[te.Tensor]:
        twice = te.compute(x.shape, lambda *i: x(*i) * 2.0, "twice")
        return [twice, te.compute(x.shape, lambda *i: twice(*i) + 1.0, "more")]

    args = placeholders(X)
    func = kernel(*args, *fn(*args))
    first, second = run_all(schedule_kernel(func, AVX2).func, X)
    assert np.array_equal(first, X * 2) and np.array_equal(second, X * 2 + 1)
