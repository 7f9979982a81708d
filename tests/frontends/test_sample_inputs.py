"""Random input that the network can digest."""

from __future__ import annotations

import numpy as np
from tvm import relax

from xnncc.frontends.network import NetworkBuilder, constant
from xnncc.frontends.sample_inputs import random_inputs
from xnncc.ir.plan import TensorInfo

R = relax.op


def feeds_of(dtype, shape, make):
    build = NetworkBuilder()
    mod = build.finish([build.emit(make(build.input("x", shape, dtype)))])
    return [feed["x"] for feed in random_inputs(mod, [TensorInfo("x", shape, dtype)])]


def test_indices_stay_inside_their_table():
    def make(x):
        return R.take(constant(np.zeros((50, 4), "float32")), R.astype(R.reshape(x, (400,)), "int64"), 0, mode="clip")

    (x,) = feeds_of("int32", (4, 100), make)
    assert x.dtype == "int32" and x.min() >= 0 and 40 < x.max() < 50


def test_scalars_that_are_compared_get_a_run_for_each_value():
    feeds = feeds_of("int64", (), lambda x: R.equal(x, constant(np.array(16000))))
    assert [int(x) for x in feeds] == [16000, 16001]


def test_floats_undo_the_scaling_that_comes_first():
    half, one = constant(np.float32(127.5)), constant(np.float32(1))
    (x,) = feeds_of("float32", (1000,), lambda x: R.exp(R.subtract(R.divide(x, half), one)))
    assert 0 <= x.min() < 5 and 250 < x.max() <= 255
    (plain,) = feeds_of("float32", (1000,), R.exp)
    assert -1 <= plain.min() < -0.95 and 0.95 < plain.max() < 1


def test_other_kinds_take_their_range():
    assert set(feeds_of("bool", (100,), R.logical_not)[0].tolist()) == {True, False}
    assert set(np.unique(feeds_of("int64", (100,), R.negative)[0])) == {0, 1}
    assert feeds_of("uint8", (1000,), lambda x: R.add(x, x))[0].max() > 200


def test_same_numbers_every_time():
    first, second = (feeds_of("float32", (5,), R.exp)[0] for _ in range(2))
    assert (first == second).all()
