"""Small networks through the whole compiler: packed layouts change where numbers lie, never the numbers.

``check`` compares the outputs, and every tensor that an operator says it completes, with TVM alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from network_running import check, compile_and_run, module, variable
from tvm import relax
from tvm.relax import op

nn = op.nn


def data(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def const(*shape: int, seed: int = 1, scale: float = 1.0) -> relax.Expr:
    return relax.const((scale * data(*shape, seed=seed)).astype("float32"))


def conv(x: relax.Expr, c: int, o: int, k: int = 3, seed: int = 1, **attrs: Any) -> relax.Expr:
    groups = attrs.get("groups", 1)
    attrs.setdefault("padding", k // 2)
    return nn.conv2d(x, const(o, c // groups, k, k, seed=seed, scale=1 / (k * (c // groups) ** 0.5)), **attrs)


def norm(x: relax.Expr, c: int) -> relax.Expr:
    positive = relax.const(np.abs(data(c, seed=9)) + 0.5)
    return nn.batch_norm(x, const(c, seed=5), const(c, seed=6), const(c, seed=7), positive, axis=1, training=False)


# ---- convolutions and what folds into them -------------------------------------------------------------------------


@pytest.mark.parametrize(("lanes", "c", "o"), [(8, 3, 13), (4, 13, 8), (8, 16, 16)])
def test_batch_norm_and_bias_fold_into_the_convolution(lanes: int, c: int, o: int) -> None:
    def build(emit, x):
        y = emit(conv(x, c, o), "y")
        b = emit(op.add(y, const(1, o, 1, 1)), "b")
        n = emit(norm(b, o), "bn")
        return emit(nn.relu(emit(n[0], "n")), "r")

    network = check(build, data(1, c, 6, 7), lanes=lanes)
    assert [k for k in network.kernels if "conv2d" in k] == ["fused_conv2d_relu"]
    assert not any("add" in k or "batch" in k or "multiply" in k for k in network.kernels)


@pytest.mark.parametrize(
    "fold",
    [
        lambda y, c: op.add(c, y),
        lambda y, c: op.subtract(y, c),
        lambda y, c: op.multiply(y, c),
        lambda y, c: op.multiply(c, y),
        lambda y, c: op.divide(y, c),
    ],
)
def test_constants_fold_into_the_weights(fold) -> None:
    network = check(lambda emit, x: emit(fold(emit(conv(x, 5, 9), "y"), const(1, 9, 1, 1)), "z"), data(1, 5, 4, 4))
    assert [k.split("_")[-1] for k in network.kernels] == ["pack", "conv2d", "unpack"]


@pytest.mark.parametrize(
    "other",
    [
        lambda y: op.subtract(const(1, 9, 1, 1), y),
        lambda y: op.divide(const(1, 9, 1, 1), op.add(op.abs(y), relax.const(np.float32(1)))),
        lambda y: op.add(y, const(1, 1, 4, 5)),
        lambda y: op.add(y, const(5)),
        lambda y: op.multiply(y, const(1, 9, 4, 5)),
        lambda y: op.add(y, const(9, 1, 1)),
        lambda y: op.multiply(op.exp(y), const(9, 1, 1)),
        lambda y: op.divide(op.exp(y), const(1, 9, 1, 1)),
        lambda y: op.subtract(const(1, 9, 4, 5), op.exp(y)),
        lambda y: op.add(op.exp(y), relax.const(np.full((1, 1, 1, 1), 2.5, "float32"))),
        lambda y: op.maximum(relax.const(np.float32(0.25)), op.exp(y)),
    ],
)
def test_constants_of_every_shape_and_side(other) -> None:
    check(lambda emit, x: emit(other(emit(conv(x, 5, 9), "y")), "z"), data(1, 5, 4, 5))


def test_a_bias_stays_out_of_a_convolution_with_two_readers() -> None:
    def build(emit, x):
        y = emit(conv(x, 8, 8), "y")
        return [emit(op.add(y, const(1, 8, 1, 1)), "biased"), emit(nn.relu(y), "bare")]

    check(build, data(1, 8, 4, 4))


def test_batch_norm_without_a_convolution_is_left_to_tvm() -> None:
    def build(emit, x):
        first = emit(emit(norm(x, 5), "bn")[0], "n")
        after = emit(nn.relu(emit(conv(first, 5, 6), "y")), "r")
        return emit(emit(norm(after, 6), "bn2")[0], "n2")

    check(build, data(1, 5, 4, 4))


def test_batch_norm_that_is_training_is_left_to_tvm() -> None:
    """It uses the mean and variance of its input, not the stored ones."""

    def build(emit, x):
        y = emit(conv(x, 5, 6), "y")
        arguments = (const(6, seed=5), const(6, seed=6), const(6, seed=7), relax.const(np.ones(6, "float32")))
        return emit(emit(nn.batch_norm(y, *arguments, axis=1, training=True), "bn")[0], "n")

    check(build, data(1, 5, 4, 4))


def test_weights_that_are_an_input_are_left_to_tvm() -> None:
    build = lambda emit, x, w: emit(nn.relu(emit(nn.conv2d(x, w, padding=1), "y")), "z")  # noqa: E731
    network = check(build, data(1, 5, 4, 4), data(6, 5, 3, 3))
    assert not any("pack" in k for k in network.kernels)


def test_stored_weights_are_computed_at_compile_time() -> None:
    """Dequantised, transposed, reshaped: constants of constants cost nothing at run time."""
    stored = np.random.default_rng(0).integers(-127, 127, (3, 3, 5, 9)).astype("int8")

    def build(emit, x):
        f = emit(op.astype(relax.const(stored), "float32"), "f")
        w = emit(op.permute_dims(emit(op.multiply(f, relax.const(np.float32(0.01))), "scaled"), [3, 2, 0, 1]), "w")
        return emit(nn.conv2d(x, w, padding=1), "y")

    network = check(build, data(1, 5, 4, 4))
    assert [k.split("_")[-1] for k in network.kernels] == ["pack", "conv2d", "unpack"]


@pytest.mark.parametrize(
    ("c", "o", "k", "attrs"),
    [
        (3, 8, 7, {"strides": 2, "padding": 3}),
        (5, 9, 1, {}),
        (9, 5, 1, {"strides": 2}),
        (5, 6, 3, {"padding": [0, 1, 2, 3], "dilation": [2, 1]}),
        (16, 24, 3, {"groups": 2}),  # groups of whole blocks
        (12, 18, 3, {"groups": 3}),  # few ragged groups: one convolution with zeros
        (24, 12, 3, {"groups": 6}),  # many ragged groups: left to TVM
        (3, 3, 3, {"groups": 3}),
        (13, 13, 3, {"groups": 13, "strides": 2}),
        (13, 26, 3, {"groups": 13}),  # two outputs for each channel
    ],
)
def test_convolutions(c: int, o: int, k: int, attrs: dict) -> None:
    network = check(lambda emit, x: emit(nn.relu(emit(conv(x, c, o, k, **attrs), "y")), "z"), data(2, c, 7, 8))
    ragged = attrs.get("groups") == 6 or o == 26
    assert any("not whole blocks" in note for note in network.graph.notes) == ragged


@pytest.mark.parametrize(
    ("c", "o", "k", "attrs"),
    [
        (5, 6, 2, {"strides": 2}),  # phases: windows do not overlap
        (8, 16, 2, {"strides": 2}),
        (5, 6, (2, 3), {"strides": (2, 3)}),
        (5, 6, 3, {"strides": 2, "padding": 1, "output_padding": 1}),
        (5, 6, 3, {"strides": 1, "padding": 1}),
        (5, 6, 4, {"strides": 2, "padding": [1, 0, 1, 2]}),
        (5, 6, 3, {"strides": 2, "dilation": 2}),
        (16, 16, 3, {"strides": 2, "padding": 1, "groups": 2}),
        (9, 9, 3, {"strides": 2, "groups": 9}),
        (6, 4, 3, {"strides": 2, "groups": 2}),
        (5, 6, 3, {"strides": 2, "padding": 3}),  # more padding than kernel: left to TVM
    ],
)
def test_transposed_convolutions(c: int, o: int, k: int | tuple[int, int], attrs: dict) -> None:
    kernel = (k, k) if isinstance(k, int) else k

    def build(emit, x):
        w = const(c, o // attrs.get("groups", 1), *kernel)
        y = emit(nn.conv2d_transpose(x, w, kernel_layout="IOHW", **attrs), "y")
        return emit(nn.relu(emit(op.add(y, const(1, o, 1, 1, seed=3)), "b")), "z")

    check(build, data(2, c, 5, 4))


# ---- padded lanes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("c", [13, 104])
def test_residual_of_tensors_with_different_blocks(c: int) -> None:
    """104 channels: a convolution makes 14 blocks of 8, the packed input has 13."""

    def build(emit, x):
        y = emit(conv(x, c, c, 1), "y")
        sums = [emit(op.add(x, y), "z"), emit(op.subtract(y, x), "w")]
        return [emit(conv(emit(nn.relu(s), f"r{i}"), c, 8, 1, seed=2), f"out{i}") for i, s in enumerate(sums)]

    check(build, data(1, c, 3, 3))


@pytest.mark.parametrize("c", [13, 16, 104])
def test_division_makes_no_nan_in_padded_lanes(c: int) -> None:
    def build(emit, x):
        y = emit(nn.relu(emit(conv(x, c, c, 1), "y")), "r")
        nine = relax.const(np.full((1, c, 1, 1), 9, "float32"))
        below = emit(nn.relu(emit(op.add(emit(conv(x, c, c, 1, seed=3), "b"), nine), "p")), "q")  # 0 in padded lanes
        return emit(conv(emit(op.divide(y, below), "d"), c, 8, 1, seed=2), "out")

    check(build, data(1, c, 2, 3))


@pytest.mark.parametrize("c", [13, 104])
def test_reciprocal_makes_no_infinity_in_padded_lanes(c: int) -> None:
    def build(emit, x):
        y = emit(nn.relu(emit(conv(x, c, c, 1), "y")), "r")
        safe = emit(op.multiply(emit(op.maximum(y, relax.const(np.float32(-1))), "m"), y), "sq")
        q = emit(op.add(safe, x), "q")
        d = emit(op.divide(relax.const(np.float32(1)), emit(op.multiply(q, q), "qq")), "d")
        return emit(conv(d, c, 8, 1, seed=2), "out")

    check(build, np.abs(data(1, c, 2, 3)) + 0.5)


def test_square_root_makes_no_nan_in_padded_lanes() -> None:
    def build(emit, x):
        y = emit(nn.relu(emit(conv(x, 5, 5, 1), "y")), "r")
        m = emit(op.subtract(emit(op.maximum(y, relax.const(np.float32(4))), "m"), relax.const(np.float32(3))), "s")
        low = emit(op.subtract(emit(op.add(y, const(1, 5, 1, 1, scale=0)), "a"), relax.const(np.float32(-2))), "l")
        root = emit(op.power(emit(op.multiply(m, low), "ml"), relax.const(np.float32(0.5))), "root")
        return emit(conv(root, 5, 8, 1, seed=2), "out")

    check(build, data(1, 5, 2, 3))


def test_square_root_of_what_is_negative_in_padded_lanes_only() -> None:
    def build(emit, x):
        y = emit(nn.relu(emit(conv(x, 5, 5, 1), "y")), "r")
        big = emit(op.add(emit(op.exp(y), "e"), const(1, 5, 1, 1, scale=0)), "big")  # 1 in every lane
        up = emit(op.multiply(big, relax.const(np.full((1, 5, 1, 1), 5, "float32"))), "up")  # 0 in padded lanes
        root = emit(
            op.power(emit(op.subtract(up, relax.const(np.float32(3))), "s"), relax.const(np.float32(0.5))), "root"
        )
        return emit(conv(root, 5, 8, 1, seed=2), "out")

    check(build, data(1, 5, 2, 3))


def test_104_channels_go_everywhere() -> None:
    """What reads a tensor of 14 blocks that has 13: depthwise, groups, split, concat, pooling, a channel vector."""
    c = 104

    def build(emit, x):
        y = emit(nn.relu(emit(conv(x, 8, c, 1), "y")), "r")
        d = emit(conv(y, c, c, 3, groups=c), "d")
        g = emit(conv(y, c, 208, 1, groups=13), "g")
        parts = emit(op.split(y, 13, axis=1), "parts")
        cat = emit(op.concat([y, emit(parts[12], "last")], axis=1), "cat")
        mean = emit(op.mean(y, [2, 3], keepdims=True), "mean")
        scaled = emit(op.multiply(y, mean), "scaled")
        other = emit(op.multiply(x_of(emit, x), mean), "other")
        return [d, g, cat, scaled, emit(conv(other, c, 8, 1, seed=4), "out")]

    def x_of(emit, x):
        return emit(
            op.concat(
                [emit(nn.relu(emit(conv(x, 8, 8, 1, seed=20 + i), f"p{i}")), f"q{i}") for i in range(13)], axis=1
            ),
            "whole",
        )

    check(build, data(1, 8, 3, 3))


# ---- pooling and images --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pool",
    [
        lambda x: nn.max_pool2d(x, 3, 2, 1),
        lambda x: nn.max_pool2d(x, 3, 2, 0, ceil_mode=True),
        lambda x: nn.max_pool2d(x, (2, 3), (1, 2), (0, 1, 1, 1), dilation=(2, 1)),
        lambda x: nn.avg_pool2d(x, 3, 2, 1),
        lambda x: nn.avg_pool2d(x, 3, 2, 1, count_include_pad=True),
        lambda x: nn.avg_pool2d(x, 3, 2, 0, ceil_mode=True),
        lambda x: nn.avg_pool2d(x, 2, 2, 0),
        lambda x: op.mean(x, [2, 3], keepdims=True),
        lambda x: op.mean(x, [-1, -2]),
        lambda x: op.max(x, [2, 3], keepdims=True),
        lambda x: op.max(x, [3, 2]),
        lambda x: op.mean(x, [1], keepdims=True),
        lambda x: op.mean(x),
        lambda x: op.max(x, [3]),
    ],
)
def test_pools(pool) -> None:
    check(lambda emit, x: emit(pool(emit(nn.relu(emit(conv(x, 3, 13), "y")), "r")), "z"), data(1, 3, 8, 10))


def test_ceil_mode_counts_the_stated_padding_but_not_the_overhang() -> None:
    """By numpy: TVM's topi divides by the overhang as well."""
    x = data(1, 5, 8, 8)
    mod = module(
        lambda emit, v: emit(nn.avg_pool2d(v, 3, 4, 1, ceil_mode=True, count_include_pad=True), "z"),
        variable("x", x.shape),
    )
    (found,) = compile_and_run(mod, x).outputs
    full = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    expected = np.zeros((1, 5, 3, 3), "float32")
    for p in range(3):
        for q in range(3):
            expected[:, :, p, q] = full[:, :, 4 * p : 4 * p + 3, 4 * q : 4 * q + 3].mean(axis=(2, 3))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "image",
    [
        lambda x: nn.pad(x, (0, 0, 0, 0, 1, 2, 3, 0), "reflect"),
        lambda x: nn.pad(x, (0, 0, 0, 0, 1, 2, 3, 0), "replicate"),
        lambda x: nn.pad(x, (0, 0, 0, 0, 1, 2, 3, 0), pad_value=-1.5),
        lambda x: nn.pad(x, (0, 0, 1, 0, 1, 2, 3, 0), pad_value=1.5),
        lambda x: op.image.resize2d(
            x, (8, 15), method="nearest_neighbor", coordinate_transformation_mode="asymmetric", rounding_method="floor"
        ),
        lambda x: op.image.resize2d(
            x, (9, 7), method="nearest_neighbor", coordinate_transformation_mode="asymmetric", rounding_method="floor"
        ),
        lambda x: op.image.resize2d(x, (8, 10), method="linear", coordinate_transformation_mode="half_pixel"),
        lambda x: op.permute_dims(x, [0, 2, 3, 1]),
        lambda x: op.reshape(x, (1, 5, 20)),
        lambda x: op.strided_slice(x, [2, 3], [1, 0], [4, 4], [1, 2]),
        lambda x: nn.softmax(x, axis=-1),
        lambda x: nn.softmax(x, axis=1),
        lambda x: op.power(x, relax.const(np.float32(2))),
        lambda x: op.power(op.abs(x), relax.const(np.float32(0.5))),
        lambda x: op.power(op.abs(x), relax.const(np.float32(1.5))),
        lambda x: op.clip(x, -0.5, 0.75),
        lambda x: nn.leakyrelu(x, 0.1),
        lambda x: nn.silu(x),
        lambda x: nn.gelu(x),
        lambda x: op.sqrt(op.abs(x)),
    ],
)
def test_operators_behind_a_convolution(image) -> None:
    def build(emit, x):
        z = emit(image(emit(conv(x, 3, 5), "y")), "z")
        return emit(op.exp(emit(op.negative(emit(op.abs(z), "a")), "m")), "e")

    check(build, data(1, 3, 4, 5))


def test_polynomials_are_not_fused_with_each_other() -> None:
    """Each repeats its operand twenty times: three in one kernel would keep LLVM busy for a minute."""

    def build(emit, x):
        gate = emit(op.sigmoid(emit(conv(x, 3, 8), "y")), "gate")
        t = emit(op.tanh(emit(op.add(emit(op.multiply(gate, gate), "sq"), gate), "sum")), "t")
        return emit(op.exp(emit(nn.silu(t), "s")), "e")

    network = check(build, data(1, 3, 4, 5))
    assert network.kernels[0].startswith("fused_conv2d_sigmoid"), "one is still part of the convolution"
    assert network.kernels[1:4] == ["tanh", "silu", "exp"]


# ---- two operands --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("lanes", "n", "c"), [(8, 1, 13), (8, 2, 16), (4, 1, 9)])
def test_squeeze_and_excite(lanes: int, n: int, c: int) -> None:
    def build(emit, x):
        y = emit(nn.relu(emit(conv(x, 3, c), "y")), "r")
        s = emit(nn.relu(emit(conv(emit(op.mean(y, [2, 3], keepdims=True), "m"), c, 5, 1), "c1")), "r1")
        gate = emit(op.sigmoid(emit(op.add(emit(conv(s, 5, c, 1), "c2"), const(1, c, 1, 1, seed=8)), "b2")), "gate")
        return [emit(op.multiply(gate, y), "z"), emit(op.subtract(y, gate), "d")]

    network = check(build, data(n, 3, 5, 6), lanes=lanes)
    assert network.kernels.count("pack") <= 1  # nothing is packed twice on the way


@pytest.mark.parametrize(
    "shape",
    [(1, 1, 4, 5), (2, 1, 4, 5), (2, 9, 1, 1), (1, 9, 1, 1), (2, 9, 4, 5), (9, 1, 1), (1, 9, 4, 1), (1, 1, 1, 1)],
)
def test_broadcasts_with_a_plain_input(shape: tuple[int, ...]) -> None:
    def build(emit, x, p):
        y = emit(nn.relu(emit(conv(x, 3, 9), "y")), "r")
        return [emit(op.subtract(p, y), "z"), emit(op.subtract(y, p), "w")]

    check(build, data(2, 3, 4, 5), data(*shape, seed=4))


def test_an_operand_that_is_larger_than_the_packed_one() -> None:
    def build(emit, x, p):
        y = emit(nn.relu(emit(conv(x, 3, 9), "y")), "r")
        return [emit(op.add(y, p), "z"), emit(op.multiply(p, emit(op.mean(y, [2, 3], keepdims=True), "m")), "w")]

    check(build, data(1, 3, 4, 5), data(2, 9, 4, 5, seed=4))


@pytest.mark.parametrize(
    "other",
    [
        lambda x, y: op.add(x, y),
        lambda x, y: op.divide(x, relax.const(np.float32(3))),
        lambda x, y: op.divide(relax.const(np.float32(3)), op.exp(x)),
        lambda x, y: op.multiply(x, relax.const(np.full((1, 1), 3, "float32"))),
        lambda x, y: op.add(relax.const(np.full((1, 1, 1, 1, 1), 3, "float32")), x),
        lambda x, y: op.minimum(x, op.reshape(y, (3, 1, 4, 5))),
    ],
)
def test_plain_tensors_stay_plain(other) -> None:
    network = check(lambda emit, x, y: emit(other(x, y), "z"), data(3, 1, 4, 5), data(3, 4, 5, seed=2))
    assert not any("pack" in k for k in network.kernels)


# ---- concatenations and splits -------------------------------------------------------------------------------------


def _branches(emit, x, sizes):
    return [emit(nn.relu(emit(conv(x, 3, o, seed=i), f"y{i}")), f"r{i}") for i, o in enumerate(sizes)]


def test_whole_blocks_are_written_in_their_place() -> None:
    def build(emit, x):
        cat = emit(op.concat(_branches(emit, x, [8, 16, 8]), axis=1), "cat")
        return emit(conv(cat, 32, 5, 1), "z")

    network = check(build, data(1, 3, 4, 5))
    assert not any("concat" in k or "copy" in k for k in network.kernels)


@pytest.mark.parametrize(("n", "sizes"), [(1, [3, 8, 6]), (2, [8, 16]), (1, [1, 1, 1])])
def test_ragged_or_batched_parts_are_copied(n: int, sizes: list[int]) -> None:
    def build(emit, x):
        cat = emit(op.concat(_branches(emit, x, sizes), axis=1), "cat")
        return emit(conv(cat, sum(sizes), 5, 1), "z")

    network = check(build, data(n, 3, 4, 5))
    assert any("concat" in k for k in network.kernels)


def test_a_part_of_two_concatenations() -> None:
    def build(emit, x):
        a, b, c = _branches(emit, x, [8, 8, 8])
        first, second = emit(op.concat([a, b], axis=1), "first"), emit(op.concat([c, a], axis=1), "second")
        return [emit(conv(first, 16, 5, 1), "z"), emit(conv(second, 16, 5, 1), "w"), a]

    check(build, data(1, 3, 4, 5))


def test_a_concatenation_in_a_concatenation_and_as_an_output() -> None:
    def build(emit, x):
        a, b, c = _branches(emit, x, [8, 8, 8])
        first = emit(op.concat([a, b], axis=1), "first")
        second = emit(op.concat([first, c, first], axis=1), "second")
        return [second, first, emit(nn.relu(second), "z")]

    check(build, data(1, 3, 4, 5))


def test_the_same_part_twice() -> None:
    def build(emit, x):
        (a,) = _branches(emit, x, [8])
        return emit(conv(emit(op.concat([a, a], axis=1), "cat"), 16, 5, 1), "z")

    check(build, data(1, 3, 4, 5))


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_concatenations_of_inputs_and_constants(axis: int) -> None:
    def build(emit, x, y):
        cat = emit(op.concat([x, y, const(1, 2, 3, 4), emit(op.reshape(x, (1, 2, 3, 4)), "v")], axis=axis), "cat")
        return [emit(nn.relu(cat), "z"), cat]

    check(build, data(1, 2, 3, 4), data(1, 2, 3, 4, seed=2))


def test_concatenation_of_packed_parts_along_the_image() -> None:
    def build(emit, x):
        return emit(nn.relu(emit(op.concat(_branches(emit, x, [9, 9]), axis=2), "cat")), "z")

    check(build, data(1, 3, 4, 5))


def test_concatenation_of_integers() -> None:
    x = np.arange(6, dtype="int64").reshape(1, 6)
    check(lambda emit, a, b: emit(op.concat([a, b, a], axis=1), "cat"), x, x + 10)


@pytest.mark.parametrize(("sections", "axis"), [(2, 1), ([8], 1), ([3, 9], 1), (2, 2), (4, 1)])
def test_splits(sections: int | list[int], axis: int) -> None:
    def build(emit, x):
        y = emit(nn.relu(emit(conv(x, 3, 16), "y")), "r")
        parts = emit(op.split(y, sections, axis=axis), "parts")
        return [emit(op.exp(emit(parts[i], f"p{i}")), f"e{i}") for i in range(len(parts.ty.fields))]

    check(build, data(1, 3, 4, 5))


def test_a_split_half_goes_into_a_concatenation() -> None:
    """ShuffleNet's unit."""

    def build(emit, x):
        y = emit(nn.relu(emit(conv(x, 3, 16), "y")), "r")
        parts = emit(op.split(y, 2, axis=1), "parts")
        left, right = emit(parts[0], "left"), emit(parts[1], "right")
        cat = emit(op.concat([left, emit(nn.relu(emit(conv(right, 8, 8), "c")), "rc")], axis=1), "cat")
        shuffled = emit(op.permute_dims(emit(op.reshape(cat, (1, 2, 8, 4, 5)), "s1"), [0, 2, 1, 3, 4]), "s2")
        return emit(conv(emit(op.reshape(shuffled, (1, 16, 4, 5)), "s3"), 16, 5, 1), "z")

    check(build, data(1, 3, 4, 5))


# ---- outputs -------------------------------------------------------------------------------------------------------


def test_outputs_that_are_inputs_constants_views_and_each_other() -> None:
    def build(emit, x):
        y = emit(nn.relu(emit(conv(x, 3, 8), "y")), "r")
        flat = emit(op.reshape(y, (1, 160)), "flat")
        k = emit(op.reshape(const(2, 3), (3, 2)), "k")
        return [x, y, y, flat, emit(op.reshape(x, (3, 20)), "xr"), const(4), k, x]

    check(build, data(1, 3, 4, 5))


def test_an_output_that_is_read_again() -> None:
    def build(emit, x):
        a = emit(op.exp(x), "a")
        b = emit(op.reshape(a, (12, 1)), "b")
        return [a, emit(op.negative(b), "n"), b]

    check(build, data(3, 4))


def test_a_tuple_variable_is_taken_apart() -> None:
    def build(emit, x):
        pair = emit(relax.Tuple([x, emit(op.exp(x), "e")]), "pair")
        return [emit(op.concat(pair, axis=0), "cat"), emit(op.negative(emit(pair[1], "second")), "n")]

    check(build, data(1, 3))


# ---- matrices ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lanes", "shape", "n"),
    [(8, (1, 12), 10), (8, (7, 12), 16), (8, (7, 12), 13), (8, (2, 3, 12), 9), (4, (1, 1, 12), 5), (4, (3, 12), 6)],
)
def test_matmul_with_bias(lanes: int, shape: tuple[int, ...], n: int) -> None:
    def build(emit, x):
        y = emit(op.matmul(x, const(12, n)), "y")
        return emit(nn.relu(emit(op.add(y, const(n, seed=2)), "b")), "z")

    network = check(build, data(*shape), lanes=lanes)
    assert network.rules[0] == ("gemv" if np.prod(shape) == 12 else "gemm")
    assert not any("add" in k for k in network.kernels), "the bias folds into the product"


@pytest.mark.parametrize(
    ("a", "b"),
    [((3, 4, 5), (3, 5, 6)), ((2, 3, 4, 5), (2, 3, 5, 7)), ((3, 4, 5), (1, 5, 6)), ((1, 4, 5), (3, 5, 6)),
     ((2, 3, 4, 5), (3, 5, 6)), ((4, 5), (5, 6)), ((4, 5), (2, 5, 6)), ((5,), (5, 6)), ((4, 5), (5,)),
     ((2, 4, 5), (5, 6)), ((1, 1, 4, 5), (5, 6))],
)  # fmt: skip
def test_products_of_two_activations(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    check(lambda emit, x, y: emit(nn.relu(emit(op.matmul(x, y), "m")), "z"), data(*a), data(*b, seed=2))


def test_constant_times_activation() -> None:
    check(lambda emit, x: emit(op.matmul(const(4, 5), x), "m"), data(5, 6))


@pytest.mark.parametrize("const_shape", [(2, 12, 6), (1, 12, 6)])
def test_batched_constant_weights(const_shape: tuple[int, ...]) -> None:
    check(lambda emit, x: emit(op.add(emit(op.matmul(x, const(*const_shape)), "m"), const(6)), "z"), data(2, 5, 12))


def test_attention() -> None:
    def build(emit, x):
        q, k, v = (
            emit(op.reshape(emit(op.matmul(x, const(12, 12, seed=i)), f"p{i}"), (1, 5, 3, 4)), f"s{i}")
            for i in range(3)
        )
        q, v = (emit(op.permute_dims(t, [0, 2, 1, 3]), f"t{i}") for i, t in ((0, q), (2, v)))
        scores = emit(op.matmul(q, emit(op.permute_dims(k, [0, 2, 3, 1]), "t1")), "scores")
        weights = emit(nn.softmax(emit(op.divide(scores, relax.const(np.float32(2))), "scaled"), -1), "weights")
        mixed = emit(op.permute_dims(emit(op.matmul(weights, v), "mixed"), [0, 2, 1, 3]), "back")
        out = emit(
            op.add(emit(op.matmul(emit(op.reshape(mixed, (1, 5, 12)), "flat"), const(12, 12, seed=7)), "o"), x), "res"
        )
        return emit(nn.layer_norm(out, const(12), const(12, seed=2), axes=[-1]), "ln")

    check(build, data(1, 5, 12), tolerance=2e-5)


# ---- what has no handler -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "foreign",
    [
        lambda x: op.cumsum(x, axis=1),
        lambda x: op.cumsum(x, axis=0, exclusive=True),
        lambda x: op.argmax(x, axis=1),
        lambda x: op.astype(op.floor(x), "int32"),
        lambda x: op.sum(x, axis=[0]),
        lambda x: op.variance(x, axis=[1]),
        lambda x: op.take(x, relax.const(np.array([1, 0, 1], "int64")), axis=0),
        lambda x: op.where(op.greater(x, relax.const(np.float32(0))), x, op.exp(x)),
        lambda x: op.log(op.add(op.abs(x), relax.const(np.float32(1)))),
        lambda x: op.tile(x, (2, 3)),
        lambda x: nn.log_softmax(x, axis=-1),
        lambda x: op.expand_dims(op.squeeze(op.expand_dims(x, 1), 1), 0),
    ],
)
def test_foreign_operators(foreign) -> None:
    check(lambda emit, x: emit(foreign(x), "z"), data(2, 40))


def test_several_outputs_of_one_foreign_kernel() -> None:
    def build(emit, x):
        parts = emit(op.split(x, 3, axis=1), "parts")
        a, b, c = (emit(parts[i], f"p{i}") for i in range(3))
        return [emit(op.concat([c, a], axis=1), "cat"), b, emit(op.add(a, c), "sum")]

    check(build, data(2, 6))


def test_two_threads_compute_the_same() -> None:
    def build(emit, x):
        y = emit(nn.relu(emit(conv(x, 3, 32), "y")), "r")
        d = emit(nn.relu(emit(conv(y, 32, 32, groups=32, strides=2), "d")), "rd")
        return emit(nn.softmax(emit(op.mean(d, [2, 3]), "m"), -1), "s")

    check(build, data(1, 3, 40, 40), threads=2)
