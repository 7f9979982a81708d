"""The numpy meaning of every operator is the one that TVM lowers to."""

from __future__ import annotations

import numpy as np
import pytest
from relax_running import run_compiled
from tvm import relax

from xnncc.frontends.evaluate import evaluate
from xnncc.frontends.evaluate_ops import EVALUATORS
from xnncc.frontends.network import NetworkBuilder, constant

R = relax.op
RNG = np.random.default_rng(3)
X = RNG.uniform(-2, 2, (2, 4, 6, 5)).astype("float32")
POSITIVE = np.abs(X) + np.float32(1.1)
UNIT = (X / 2.1).astype("float32")
INTS = RNG.integers(-9, 9, (3, 4)).astype("int64")
SHIFTS = RNG.integers(0, 9, (3, 4)).astype("int64")
BOOLS = INTS > 0
W = RNG.uniform(-1, 1, (6, 2, 3, 3)).astype("float32")
DEEP = RNG.uniform(-1, 1, (1, 2, 5, 4, 6)).astype("float32")
DEEP_W = RNG.uniform(-1, 1, (3, 2, 2, 3, 2)).astype("float32")
AT = constant(np.array([[2, 0], [1, 3]]))


def row(values):
    return constant(np.asarray(values, "float32"))


OF_X = {
    **{name: getattr(R, name) for name in ("abs", "negative", "ceil", "floor", "round", "trunc", "exp", "erf", "sign",
                                           "tanh", "sigmoid", "sin", "cos", "tan", "atan", "asinh", "sinh", "cosh",
                                           "square", "isnan", "isinf")},
    "nn.relu": R.nn.relu, "nn.leakyrelu": lambda x: R.nn.leakyrelu(x, 0.3), "clip": lambda x: R.clip(x, -0.5, 1.0),
    "nn.softmax": lambda x: R.nn.softmax(x, 1), "nn.log_softmax": lambda x: R.nn.log_softmax(x, -1),
    "nn.layer_norm": lambda x: R.nn.layer_norm(x, row(np.arange(5)), row(np.ones(5)), [-1], 1e-3),
    "sum": lambda x: R.sum(x, [1, 3]), "mean": lambda x: R.mean(x, [2, 3], keepdims=True),
    "max": lambda x: R.max(x, [0]),
    "min": R.min, "prod": lambda x: R.prod(x, [3]), "argmax": lambda x: R.argmax(x, 2),
    "argmin": lambda x: R.argmin(x, 1, keepdims=True), "reshape": lambda x: R.reshape(x, (8, 30)),
    "permute_dims": lambda x: R.permute_dims(x, [0, 2, 3, 1]), "concat": lambda x: R.concat([x, x], 2),
    "strided_slice": lambda x: R.strided_slice(x, [2, 3], [1, 0], [6, 5], [2, 3]), "flip": lambda x: R.flip(x, 2),
    "split": lambda x: R.split(x, [1, 3], 1), "take": lambda x: R.take(x, AT, 1, mode="clip"),
    "tile": lambda x: R.tile(x, [1, 2, 1, 3]), "cumsum": lambda x: R.cumsum(x, 2),
    "nn.pad": lambda x: R.nn.pad(x, [0, 0, 0, 1, 2, 1, 1, 3], "constant", 1.5),
    "squeeze": lambda x: R.squeeze(R.sum(x, [0], keepdims=True), [0]),
    "expand_dims": lambda x: R.expand_dims(x, [0, 3]),
    "broadcast_to": lambda x: R.broadcast_to(R.mean(x, [1], keepdims=True), (2, 7, 6, 5)),
    "einsum": lambda x: R.einsum((x, x), "abcd,abed->abce"), "astype": lambda x: R.astype(x, "int32"),
    "image.resize2d": lambda x: R.image.resize2d(x, (18, 10), layout="NCHW", method="nearest_neighbor",
                                                 coordinate_transformation_mode="asymmetric", rounding_method="floor"),
    "nn.conv2d": lambda x: R.nn.conv2d(x, constant(W), (2, 1), (1, 0, 2, 1), (1, 2), 2),
    "nn.conv2d_transpose": lambda x: R.nn.conv2d_transpose(x, constant(W[:4]), (2, 3), (1, 0, 0, 1), (1, 0), groups=2),
    "nn.max_pool2d": lambda x: R.nn.max_pool2d(x, (3, 2), (2, 2), (1, 0, 1, 1)),
    "nn.avg_pool2d": lambda x: R.nn.avg_pool2d(x, (3, 2), (2, 2), (1, 0, 1, 1), count_include_pad=False),
    "matmul": lambda x: R.matmul(x, R.permute_dims(x, [0, 1, 3, 2])),
    "where": lambda x: R.where(R.less(x, row(0)), x, row(1)),
    "gather_elements": lambda x: R.gather_elements(x, constant(np.array([[[[3]], [[0]]]])), 1),
}  # fmt: skip
OF_POSITIVE = {name: getattr(R, name) for name in ("log", "sqrt", "rsqrt", "acosh")}
OF_UNIT = {name: getattr(R, name) for name in ("acos", "asin", "atanh")}
OF_INTS = {
    **{name: (lambda f: lambda x: f(x, constant(np.array([2, -3, 4, 5]))))(getattr(R, name)) for name in (
        "add", "subtract", "multiply", "maximum", "minimum", "divide", "floor_divide", "floor_mod", "mod", "equal",
        "not_equal", "less", "less_equal", "greater", "greater_equal", "bitwise_and", "bitwise_or", "bitwise_xor")},
    "bitwise_not": R.bitwise_not, "full": lambda x: R.full((2, 3), constant(np.array(7)), "int64"),
    "zeros": lambda x: R.zeros((2,), "int32"), "ones": lambda x: R.ones((2,), "float32"),
}  # fmt: skip
OF_SHIFTS = {"left_shift": lambda x: R.left_shift(x, x), "right_shift": lambda x: R.right_shift(constant(INTS), x)}
OF_BOOLS = {name: (lambda f: lambda x: f(x, constant(np.array([True, False, True, True]))))(getattr(R, name))
            for name in ("logical_and", "logical_or", "logical_xor")} | {"logical_not": R.logical_not}  # fmt: skip
OF_DEEP = {
    "nn.conv3d": lambda x: R.nn.conv3d(x, constant(DEEP_W), 1, (1, 0, 1, 0, 1, 2)),
    "nn.max_pool3d": lambda x: R.nn.max_pool3d(x, (2, 2, 3), (2, 1, 2)),
    "nn.avg_pool3d": lambda x: R.nn.avg_pool3d(x, (2, 2, 3), (2, 1, 2), count_include_pad=True),
}  # fmt: skip
OF_POWER = {"power": lambda x: R.power(x, row(1.7))}
GROUPS = [(X, OF_X), (POSITIVE, {**OF_POSITIVE, **OF_POWER}), (UNIT, OF_UNIT), (INTS, OF_INTS), (SHIFTS, OF_SHIFTS),
          (BOOLS, OF_BOOLS), (DEEP, OF_DEEP)]  # fmt: skip


@pytest.mark.parametrize("group", range(len(GROUPS)))
def test_numpy_and_tvm_agree(group):
    array, operators = GROUPS[group]
    build = NetworkBuilder()
    x = build.input("x", array.shape, str(array.dtype))
    names, outputs = [], []
    for name, make in operators.items():
        result = build.emit(make(x))
        parts = (
            [build.emit(relax.TupleGetItem(result, i)) for i in range(len(result.ty.fields))]
            if name == "split"
            else [result]
        )
        names += [name] * len(parts)
        outputs += parts
    mod = build.finish(outputs)
    ours, _ = evaluate(mod, [array])
    for name, mine, theirs in zip(names, ours, run_compiled(mod, [array]), strict=True):
        assert mine.shape == theirs.shape and mine.dtype == theirs.dtype, name
        np.testing.assert_allclose(mine, theirs, rtol=3e-5, atol=3e-6, err_msg=name)


def test_every_operator_is_compared():
    compared = {name for _, operators in GROUPS for name in operators}
    no_operator_of_tvm = {"call_pure_packed"}  # recurrent layers: tests/ir/test_recurrent.py and onnx/test_recurrent.py
    assert set(EVALUATORS) == compared | no_operator_of_tvm


def test_operators_without_a_numpy_version_are_compiled():
    build = NetworkBuilder()
    x = build.input("x", X.shape, "float32")
    y = build.emit(R.nn.max_pool2d(x, (2, 2), (2, 2), ceil_mode=True))  # by TVM's rule for ceil_mode, not ours
    out, _ = evaluate(build.finish([y]), [X])
    assert out[0].shape == (2, 4, 3, 3)


def test_named_variables_are_kept():
    build = NetworkBuilder()
    x = build.input("x", X.shape, "float32")
    y = build.emit(R.exp(build.emit(R.abs(x), "a")), "y")
    _, kept = evaluate(build.finish([y]), [X], ["a"])
    np.testing.assert_array_equal(kept["a"], np.abs(X))
