"""Narrow weights stay narrow in the package and are scaled once, at open."""

from __future__ import annotations

import numpy as np
import pytest
from network_running import check
from tvm import relax
from tvm.relax import op
from tvm.relax.op import nn

from xnncc.transform.stored_weights import Stored

RNG = np.random.default_rng(5)


def data(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def integers(*shape: int, dtype: str = "int8") -> np.ndarray:
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype)


def dequantised(emit, q: np.ndarray, scale: np.ndarray, zero: np.ndarray | None = None) -> relax.Var:
    w = emit(op.astype(relax.const(q, str(q.dtype)), "float32"), "wide")
    if zero is not None:
        w = emit(op.subtract(w, relax.const(zero)), "centred")
    return emit(op.multiply(w, relax.const(scale)), "w")


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("scale", [np.float32(0.01), RNG.random((1, 70), np.float32)], ids=["one scale", "by column"])
def test_matmul_holds_the_integers(rows: int, scale: np.ndarray) -> None:
    q, bias = integers(64, 70), RNG.random(70, np.float32)

    def build(emit, x):
        y = emit(op.matmul(x, dequantised(emit, q, scale)), "y")
        return emit(op.add(y, relax.const(bias)), "z")

    network = check(build, data(rows, 64))
    assert network.emitted.memory.prepared_bytes >= q.size * 4
    assert len(network.emitted.weights) < q.size * 2


def test_convolution_with_a_scale_for_each_channel_and_batch_norm_behind() -> None:
    q, scale = integers(24, 16, 3, 3), RNG.random((24, 1, 1, 1), np.float32)
    factor = RNG.random((1, 24, 1, 1), np.float32)

    def build(emit, x):
        y = emit(nn.conv2d(x, dequantised(emit, q, scale), padding=(1, 1), strides=(2, 2)), "y")
        y = emit(op.multiply(y, relax.const(factor)), "m")
        return emit(nn.relu(y), "z")

    network = check(build, data(1, 16, 9, 9))
    assert len(network.emitted.weights) < q.size * 2


def test_winograd_transforms_what_was_dequantised() -> None:
    q = integers(32, 32, 3, 3)

    def build(emit, x):
        return emit(nn.conv2d(x, dequantised(emit, q, np.float32(0.01)), padding=(1, 1)), "y")

    network = check(build, data(1, 32, 16, 16))
    assert "winograd" in network.rules
    assert len(network.emitted.weights) < q.size * 2


def test_unsigned_weights_with_a_zero_point_are_centred() -> None:
    q = integers(40, 40, dtype="uint8")

    def build(emit, x):
        return emit(op.matmul(x, dequantised(emit, q, np.float32(0.02), np.float32(128))), "y")

    assert len(check(build, data(3, 40)).emitted.weights) < q.size * 2


def test_float16_weights_stay_float16() -> None:
    half = RNG.standard_normal((64, 40)).astype(np.float16)

    def build(emit, x):
        return emit(op.matmul(x, emit(op.astype(relax.const(half, "float16"), "float32"), "w")), "y")

    assert len(check(build, data(3, 64)).emitted.weights) < half.size * 3


def test_rows_are_taken_from_the_integers() -> None:
    q = integers(500, 48)

    def build(emit, x):
        index = emit(op.astype(x, "int64"), "index")
        return emit(op.take(dequantised(emit, q, np.float32(0.01)), index, axis=0), "y")

    network = check(build, np.array([3, 499, 0, 7], np.float32))
    assert network.emitted.memory.prepared_bytes == 0
    assert len(network.emitted.weights) < q.size * 2


def test_small_weights_are_stored_as_float32() -> None:
    q = integers(8, 8)

    def build(emit, x):
        return emit(op.matmul(x, dequantised(emit, q, np.float32(0.01))), "y")

    assert check(build, data(3, 8)).emitted.memory.prepared_bytes == 0


@pytest.mark.parametrize("zero", [np.float32(0.5), np.float32(-40000)])
def test_a_zero_point_that_is_no_narrow_integer_is_refused(zero: np.ndarray) -> None:
    assert Stored(integers(4, 4)).minus(zero) is None


def test_a_scale_that_widens_the_shape_is_refused() -> None:
    assert Stored(integers(4, 1)).times(np.ones((4, 4), np.float32)) is None


def test_only_one_scale_survives_a_transposition() -> None:
    assert Stored(integers(4, 5), np.float32(2) * np.ones((1, 5), np.float32)).rearranged(np.transpose) is None
    one = Stored(integers(4, 5), np.ones((1, 1), np.float32)).rearranged(np.transpose)
    assert one is not None
    assert one.array.shape == (5, 4)
