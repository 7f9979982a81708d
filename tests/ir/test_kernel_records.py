"""Records of kernels: equal ones back, and none that could leave its buffers or call what it likes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm import te, tirx
from tvm.script import tirx as T

from xnncc.ir.kernel_records import UnknownKernel, kernel_of, record_kernel


def _compiled(func: tirx.PrimFunc, *arrays: np.ndarray) -> list[np.ndarray]:
    module = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
    run = tvm.compile(module, target=tvm.target.Target("llvm"))
    tensors = [tvm.runtime.tensor(array) for array in arrays]
    run["main"](*tensors)
    return [tensor.numpy() for tensor in tensors]


def _softened() -> tirx.PrimFunc:
    a = te.placeholder((4, 6), "float32", "a")
    rows = te.compute((4, 6), lambda i, j: te.exp(a[i, 5 - j]), "rows")
    k = te.reduce_axis((0, 6), "k")
    return te.create_prim_func([a, te.compute((4,), lambda i: te.sum(rows[i, k], axis=k), "sums")])


def test_a_te_kernel_comes_back_equal() -> None:
    func = _softened()
    tvm.ir.assert_structural_equal(kernel_of(record_kernel(func), "main"), func)


@T.prim_func(s_tir=True)
def _gather(a: T.Buffer((8,), "float32"), at: T.Buffer((4,), "int32"), out: T.Buffer((4,), "float32")) -> None:
    with T.sblock("root"):
        for i in range(4):
            out[i] = a[at[i]]


def test_an_index_from_data_is_clamped_and_a_proved_one_is_not() -> None:
    again = kernel_of(record_kernel(_gather), "gather")
    assert "T.min(T.max(at[i], 0), 7)" in again.script()
    assert "out[i] =" in again.script()
    a, at = np.arange(8, dtype="float32"), np.array([1, 99, -5, 7], "int32")
    assert _compiled(again, a, at, np.zeros(4, "float32"))[2].tolist() == [1, 7, 0, 7]


def test_clamping_twice_is_clamping_once() -> None:
    once = kernel_of(record_kernel(_gather), "gather")
    tvm.ir.assert_structural_equal(kernel_of(record_kernel(once), "gather"), once)


@T.prim_func(s_tir=True)
def _past_the_end(a: T.Buffer((8,), "float32")) -> None:
    with T.sblock("root"):
        for i in range(9):
            a[i] = T.float32(0)


def test_a_loop_past_the_end_is_clamped() -> None:
    assert "a[T.min(i, 7)]" in kernel_of(record_kernel(_past_the_end), "k").script()


@T.prim_func(s_tir=True)
def _foreign(a: T.Buffer((8,), "float32")) -> None:
    with T.sblock("root"):
        T.evaluate(T.call_extern("int32", "system", 0))
        a[0] = T.float32(0)


def test_a_foreign_call_is_no_record() -> None:
    with pytest.raises(UnknownKernel, match="call_extern"):
        record_kernel(_foreign)


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r[0][0].__setitem__(1, [1 << 40]),  # a buffer of a terabyte
        lambda r: r[0][0].__setitem__(1, [-3]),
        lambda r: r.__setitem__(2, [999]),  # no such kind
        lambda r: r.__setitem__(2, [0, 55]),  # no such variable
        lambda r: r.__setitem__(2, [7, 500, "tirx", "float32"]),  # no such intrinsic
        lambda r: r.__setitem__(2, [7, 0, "relax", "float32"]),  # no such home
    ],
)
def test_nonsense_is_refused(change: Any) -> None:
    records = record_kernel(_gather)
    change(records)
    with pytest.raises((ValueError, TypeError, tvm.error.InternalError)):
        kernel_of(records, "k")
