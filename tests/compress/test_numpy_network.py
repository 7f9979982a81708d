"""The numpy executor: the same numbers as the judge of imports, gradients as finite differences have them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import tvm
from tvm import relax

from xnncc.compress.numpy_network import NumpyNetwork
from xnncc.frontends.evaluate import evaluate

RNG = np.random.default_rng(0)
op, nn = relax.op, relax.op.nn


def _const(*shape: int, positive: bool = False) -> relax.Expr:
    array = RNG.normal(size=shape)
    return relax.const(np.abs(array) + 0.5 if positive else array, "float32")


def _module(shape: tuple[int, ...], make: Callable[[relax.Var], relax.Expr]) -> tvm.IRModule:
    x = relax.Var("x", relax.TensorType(shape, "float32"))
    block = relax.BlockBuilder()
    with block.function("main", [x]):
        with block.dataflow():
            y = block.emit_output(make(x))
        block.emit_func_output(relax.Tuple([y]))
    return block.get()


_IMAGE, _ROWS = (1, 4, 6, 5), (1, 5, 6)


CASES: dict[str, tuple[tuple[int, ...], Callable[[relax.Var], relax.Expr]]] = {
    "conv2d": (_IMAGE, lambda x: nn.conv2d(x, _const(3, 4, 3, 3), padding=1, strides=2)),
    "conv2d dilated, uneven pads": (
        _IMAGE, lambda x: nn.conv2d(x, _const(3, 4, 3, 2), padding=(2, 1, 0, 1), dilation=2)),
    "conv2d grouped": (_IMAGE, lambda x: nn.conv2d(x, _const(6, 2, 3, 3), groups=2)),
    "conv2d depthwise": (_IMAGE, lambda x: nn.conv2d(x, _const(4, 1, 3, 3), groups=4, padding=1, strides=(2, 1))),
    "conv2d depthwise, two outputs a channel": (_IMAGE, lambda x: nn.conv2d(x, _const(8, 1, 3, 3), groups=4)),
    "conv2d_transpose": (_IMAGE, lambda x: nn.conv2d_transpose(x, _const(4, 3, 2, 2), strides=2)),
    "conv2d_transpose overlapping": (
        _IMAGE, lambda x: nn.conv2d_transpose(x, _const(4, 3, 3, 3), strides=2, padding=1, output_padding=1)),
    "conv2d_transpose grouped": (_IMAGE, lambda x: nn.conv2d_transpose(x, _const(4, 3, 2, 2), strides=2, groups=2)),
    "matmul by a weight": (_ROWS, lambda x: op.matmul(x, _const(6, 4))),
    "matmul of two tensors": (_ROWS, lambda x: op.matmul(x, op.permute_dims(x, [0, 2, 1]))),
    "max_pool2d": (_IMAGE, lambda x: nn.max_pool2d(x, (3, 2), strides=2, padding=1)),
    "avg_pool2d": (_IMAGE, lambda x: nn.avg_pool2d(x, (3, 2), strides=2, padding=1)),
    "avg_pool2d with pads": (_IMAGE, lambda x: nn.avg_pool2d(x, (3, 2), padding=1, count_include_pad=True)),
    "resize2d": (_IMAGE, lambda x: relax.op.image.resize2d(
        x, (12, 10), layout="NCHW", method="nearest_neighbor", coordinate_transformation_mode="asymmetric",
        rounding_method="floor")),
    "softmax": (_ROWS, lambda x: nn.softmax(x, 1)),
    "log_softmax": (_ROWS, lambda x: nn.log_softmax(x, -1)),
    "layer_norm": (_ROWS, lambda x: nn.layer_norm(x, _const(6), _const(6), [-1], 1e-5)),
    "mean": (_IMAGE, lambda x: op.mean(x, [2, 3], keepdims=True)),
    "sum": (_ROWS, lambda x: op.sum(x, [1])),
    "max": (_ROWS, lambda x: op.max(x, [1], keepdims=False)),
    "add broadcast": (_IMAGE, lambda x: op.add(x, _const(4, 1, 1))),
    "multiply by itself": (_ROWS, lambda x: op.multiply(x, x)),
    "divide": (_ROWS, lambda x: op.divide(x, _const(6, positive=True))),
    "power": (_ROWS, lambda x: op.power(op.abs(x), _const(6, positive=True))),
    "maximum": (_ROWS, lambda x: op.maximum(x, _const(5, 1))),
    "hard swish": (_ROWS, lambda x: op.multiply(x, op.clip(op.add(x, relax.const(0.3, "float32")), 0.0, 1.0))),
    "relu": (_ROWS, lambda x: nn.relu(x)),
    "leakyrelu": (_ROWS, lambda x: nn.leakyrelu(x, 0.1)),
    "prelu": (_IMAGE, lambda x: nn.prelu(x, _const(4), 1)),
    "exp, sqrt, sigmoid, tanh, erf": (
        _ROWS, lambda x: op.erf(op.tanh(op.sigmoid(op.sqrt(op.exp(x)))))),
    "concat and slice": (_IMAGE, lambda x: op.concat([x, op.strided_slice(x, [1], [1], [4], [2])], axis=1)),
    "split": (_IMAGE, lambda x: op.add(op.split(x, 2, axis=1)[0], relax.const(1.0, "float32"))),
    "reshape, permute, pad": (
        _IMAGE, lambda x: nn.pad(op.permute_dims(op.reshape(x, (2, 2, 30)), [2, 0, 1]), [0, 0, 1, 0, 2, 1])),
    "where": (_ROWS, lambda x: op.where(op.greater(x, relax.const(0.2, "float32")), x, op.negative(x))),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_gives_the_numbers_of_the_judge_of_imports(case: str) -> None:
    shape, make = CASES[case]
    mod, x = _module(shape, make), RNG.normal(size=shape).astype("float32")
    network = NumpyNetwork(mod)
    ((got, *_),) = (list(network.run([x]).values()),)
    ((expected,), _) = evaluate(mod, [x])
    # float32 sums of at most 36 products in another order
    np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_those_of_finite_differences(case: str) -> None:
    shape, make = CASES[case]
    scale = relax.const(RNG.uniform(0.5, 1.5, shape), "float32")  # before the operator: its gradient tells dL/dx
    mod, x = _module(shape, lambda v: make(op.multiply(v, scale))), RNG.normal(size=shape)
    network = NumpyNetwork(mod, np.float64)
    trace = network.trace([x])
    (head,) = network.heads
    seed = RNG.normal(size=trace.values[head].shape)
    for key, gradient in trace.backward({head: seed}).items():
        constant = network.constants[key]
        if constant.ndim == 0:
            continue
        for index in [tuple(RNG.integers(size) for size in constant.shape) for _ in range(6)]:
            values = []
            for shift in (1e-6, -1e-6):
                moved = constant.copy()
                moved[index] += shift
                network.constants[key] = moved
                values.append(float((network.run([x])[head] * seed).sum()))
            network.constants[key] = constant
            assert gradient[index] == pytest.approx((values[0] - values[1]) / 2e-6, rel=1e-4, abs=1e-6)


def test_ends_where_an_operator_is_unknown() -> None:
    mod = _module((1, 2, 6, 6), lambda x: op.topk(op.reshape(nn.conv2d(x, _const(3, 2, 3, 3)), (48,)), k=4)[0])
    network = NumpyNetwork(mod)
    assert network.unknown == {"relax.topk", "TupleGetItem"}
    assert [tuple(int(d) for d in head.ty.shape.values) for head in network.heads] == [(48,)]


def test_a_constant_used_twice_has_the_sum_of_both_gradients() -> None:
    w = relax.const(np.eye(3, dtype="float32"))
    mod = _module((1, 3), lambda x: op.matmul(op.matmul(x, w), w))
    network = NumpyNetwork(mod, np.float64)
    trace = network.trace([np.array([[1.0, 2.0, 3.0]])])
    (gradient,) = trace.backward({network.heads[0]: np.array([[1.0, 0.0, 0.0]])}).values()
    # y_0 = x W W e_0: dy_0/dW = x' (W e_0)' + (x W)' e_0', at W = I twice x' e_0'
    np.testing.assert_allclose(gradient, 2 * np.outer([1.0, 2.0, 3.0], [1.0, 0.0, 0.0]))
