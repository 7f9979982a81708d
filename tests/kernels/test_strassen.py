"""Strassen's products against float64 sums: whole and ragged halves, pieces, packed images and rows."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_running import MACHINES, both_ways, kernel, placeholders, random, relative_error, run
from tvm import te, tirx

from xnncc.kernels.conv2d import pack_conv_weights, pack_vector, reference_conv2d
from xnncc.kernels.matmul import pack_matmul_weights, reference_matmul
from xnncc.kernels.packing import reference_pack, reference_unpack
from xnncc.kernels.spatial import Window
from xnncc.kernels.strassen import (
    INPUT_SUMS,
    WEIGHT_SUMS,
    f32_conv2d_strassen,
    f32_gemm_strassen,
    transform_conv_weights,
    transform_rows_weights,
)
from xnncc.schedule import RULES, main_block, schedule_kernel, schedule_of

TOLERANCE = 2e-6  # sums of up to 64 products; direct ones reach 5e-7


def _sums(quadrants: list[np.ndarray]) -> np.ndarray:
    return np.stack([sum(s * q for s, q in zip(row, quadrants, strict=True)) for row in WEIGHT_SUMS]).astype("float32")


def _conv_sums(w: np.ndarray) -> np.ndarray:
    """Return S of packed pointwise weights [OB, CB, 1, 1, v, v] by numpy."""
    o, c = w.shape[0] // 2, w.shape[1] // 2
    w = w[:, :, 0, 0].astype("float64")
    return _sums([w[:o, :c], w[:o, c:], w[o:, :c], w[o:, c:]])


def _rows_sums(w: np.ndarray) -> np.ndarray:
    """Return S of a packed matrix [OB, K, v] by numpy."""
    o, k = w.shape[0] // 2, w.shape[1] // 2
    w = w.astype("float64")[:, None]
    return _sums([w[:o, :, :k], w[:o, :, k:], w[o:, :, :k], w[o:, :, k:]])


def _relu(y: te.Tensor) -> te.Tensor:
    return te.compute(y.shape, lambda *i: tirx.max(y[i], tirx.const(0.0, "float32")), "relu")


@pytest.mark.parametrize(
    ("v", "c", "o", "image", "pieces"),
    [
        (8, 16, 16, (2, 1), 1), (8, 32, 16, (4, 8), 1), (8, 32, 64, (4, 7), 1), (8, 16, 48, (5, 5), 1),
        (8, 32, 32, (8, 8), 4), (8, 16, 32, (16, 16), 8), (4, 16, 24, (7, 7), 1), (4, 8, 8, (6, 6), 3),
        (16, 64, 96, (14, 14), 1), (16, 64, 64, (7, 7), 1),
    ],
)  # fmt: skip
@pytest.mark.parametrize("has_tail", [False, True])
def test_pointwise_convolutions(v: int, c: int, o: int, image: tuple[int, int], pieces: int, has_tail: bool) -> None:
    x, w, b = random(1, 1, c, *image), random(2, o, c, 1, 1), random(3, o)
    inputs = reference_pack(x, v), _conv_sums(pack_conv_weights(w, v, o // v, v)), pack_vector(b, v, o // v)
    args = placeholders(*inputs)
    y = f32_conv2d_strassen(*args, pieces, -(-image[0] * image[1] // (2 * pieces)))
    scheduled = schedule_kernel(kernel(*args, _relu(y) if has_tail else y), MACHINES[v])
    assert scheduled.rule == "strassen" and "did not fit" not in scheduled.reason, scheduled.reason
    found = reference_unpack(run(scheduled.func, *inputs), o, *image)
    expected = reference_conv2d(x, w, b, Window(image, (1, 1), (1, 1), (0, 0, 0, 0), image))
    assert relative_error(found, np.maximum(expected, 0) if has_tail else expected) < TOLERANCE


@pytest.mark.parametrize(
    ("v", "m", "k", "n", "pieces"), [(8, 14, 32, 16, 1), (8, 32, 48, 64, 2), (8, 13, 16, 32, 1), (4, 10, 24, 16, 1)]
)
def test_rows(v: int, m: int, k: int, n: int, pieces: int) -> None:
    x, w, b = random(1, m, k), random(2, k, n), random(3, n)
    inputs = x, _rows_sums(pack_matmul_weights(w, v)), pack_vector(b, v, n // v)
    args = placeholders(*inputs)
    scheduled = schedule_kernel(kernel(*args, f32_gemm_strassen(*args, pieces, -(-m // (2 * pieces)))), MACHINES[v])
    assert scheduled.rule == "strassen" and "did not fit" not in scheduled.reason, scheduled.reason
    assert relative_error(run(scheduled.func, *inputs), reference_matmul(x, w, b)) < TOLERANCE


def test_every_configuration_is_right() -> None:
    v, c, o, image = 8, 32, 32, (4, 8)
    x, w, b = random(1, 1, c, *image), random(2, o, c, 1, 1), random(3, o)
    inputs = reference_pack(x, v), _conv_sums(pack_conv_weights(w, v, o // v, v)), pack_vector(b, v, o // v)
    args = placeholders(*inputs)
    func = kernel(*args, f32_conv2d_strassen(*args, 1, 16))
    _, name, numbers = main_block(schedule_of(func))
    rule, machine = RULES[name], MACHINES[v]
    expected = reference_conv2d(x, w, b, Window(image, (1, 1), (1, 1), (0, 0, 0, 0), image))
    configs = list(dict.fromkeys([*rule.space(numbers, machine), *rule.wider(numbers, machine)]))
    assert len(configs) > 6
    for config in configs:
        sch = schedule_of(func)
        rule.apply(sch, main_block(sch)[0], numbers, machine, config)
        found = reference_unpack(run(sch.mod["main"], *inputs), o, *image)
        assert relative_error(found, expected) < TOLERANCE, config


def test_weights_are_summed() -> None:
    w = random(2, 4, 2, 1, 1, 8, 8)
    for how, s in both_ways(8, transform_conv_weights, w).items():
        assert relative_error(s, _conv_sums(w)) < 2e-7, how
    w = random(2, 4, 16, 8)
    for how, s in both_ways(8, transform_rows_weights, w).items():
        assert relative_error(s, _rows_sums(w)) < 2e-7, how


def test_seven_products_make_a_product() -> None:
    a, b = np.random.default_rng(0).standard_normal((2, 2, 2))
    p1, p2, p3, p4, p5, p6, p7 = (
        np.dot(w, a.ravel()) * np.dot(i, b.ravel()) for w, i in zip(WEIGHT_SUMS, INPUT_SUMS, strict=True)
    )
    u2 = p1 + p6
    u3 = u2 + p7
    np.testing.assert_allclose([[p1 + p2, u2 + p5 + p3], [u3 - p4, u3 + p5]], a @ b, rtol=1e-12)
