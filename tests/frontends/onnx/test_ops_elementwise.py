"""Elementwise operators against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto
from onnx_models import const, one_node, random
from relax_running import run_compiled

X = random(2, 3, 4)
Y = random(3, 1, seed=1)
POSITIVE = random(2, 3, low=0.1, high=4)
UNIT = random(2, 3, low=-0.9, high=0.9)
INTS = np.array([[7, -7, 8], [-8, 1, 0]], "int64")
BOOLS = np.array([[True, False, True], [False, False, True]])


@pytest.mark.parametrize("operator", ["Abs", "Neg", "Ceil", "Floor", "Exp", "Erf", "Sign", "Tanh", "Sigmoid", "Sin",
                                      "Cos", "Tan", "Atan", "Asinh", "Sinh", "Cosh", "Reciprocal",
                                      "Identity"])  # fmt: skip
def test_unary(matches, operator):
    matches(operator, X)


@pytest.mark.parametrize("operator", ["Log", "Sqrt"])
def test_unary_of_positive(matches, operator):
    matches(operator, POSITIVE)


@pytest.mark.parametrize("operator", ["Acos", "Asin", "Atanh"])
def test_unary_of_unit(matches, operator):
    matches(operator, UNIT)


def test_acosh(matches):
    matches("Acosh", POSITIVE + 1)


def test_round_goes_to_even(matches):
    matches("Round", np.array([0.5, 1.5, 2.5, -0.5, -1.5], "float32"))


@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Div"])
def test_binary_broadcasts(matches, operator):
    matches(operator, X, const(Y))
    matches(operator, const(Y), X)
    matches(operator, X, np.float32(1.5))


def test_integer_division_goes_towards_zero(matches):
    matches("Div", INTS, const(np.array([2, -3, 5], "int64")))


@pytest.mark.parametrize("operator", ["Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"])
def test_comparison(matches, operator):
    matches(operator, np.round(X), const(np.round(Y)))
    matches(operator, INTS, const(np.array(1, "int64")))


@pytest.mark.parametrize("operator", ["And", "Or", "Xor"])
def test_logic(matches, operator):
    matches(operator, BOOLS, const(np.array([True, False, False])))


def test_not(matches):
    matches("Not", BOOLS)


@pytest.mark.parametrize("operator", ["BitwiseAnd", "BitwiseOr", "BitwiseXor"])
def test_bitwise(matches, operator):
    matches(operator, INTS, const(np.array([3, 5, 6], "int64")))


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_bit_shift(matches, direction):
    matches("BitShift", np.array([16, 4, 1], "uint8"), const(np.array([1, 2, 3], "uint8")), direction=direction)


def test_modulo_has_two_signs(matches, load):
    matches("Mod", INTS, const(np.array(3, "int64")))
    matches("Mod", INTS, const(np.array(3, "int64")), fmod=1)
    matches("Mod", X, const(0.7), fmod=1)
    made, feeds = one_node("Mod", X, const(-0.7))  # onnxruntime has no float modulo of this sign
    found = run_compiled(load(made, check=False).mod, [feeds["x0"]])[0]
    np.testing.assert_allclose(found, np.mod(X, np.float32(-0.7)), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("exponent", [1.0, 2.0, 3.0, 0.5, -1.5])
def test_power(matches, exponent):
    matches("Pow", POSITIVE, const(exponent))


def test_power_with_exponent_at_run_time(matches):
    matches("Pow", POSITIVE, random(2, 3, seed=2))
    matches("Pow", INTS, np.array(2, "int64"))


def test_shifts_beyond_the_width(load):
    x, by = np.array([-8, 4, -1, 64], "int8"), np.array([8, 9, 127, 1], "int8")
    for direction, expected in (("LEFT", [0, 0, 0, -128]), ("RIGHT", [-1, 0, -1, 32])):
        made, _ = one_node("BitShift", x, by, direction=direction)
        assert run_compiled(load(made, check=False).mod, [x, by])[0].tolist() == expected


def test_square_is_a_multiplication(matches, operators):
    assert operators(matches("Pow", X, const(2.0))) == ["multiply"]


@pytest.mark.parametrize("operator", ["Sum", "Max", "Min", "Mean"])
def test_any_number_of_operands(matches, operator):
    matches(operator, X, const(Y), const(0.25))
    matches(operator, X)


def test_where(matches):
    matches("Where", BOOLS, random(2, 3), const(random(3, seed=1)))


def test_is_nan_and_is_inf(matches):
    odd = np.array([1, np.nan, np.inf, -np.inf], "float32")
    matches("IsNaN", odd)
    matches("IsInf", odd)
    matches("IsInf", odd, detect_negative=0)
    matches("IsInf", odd, detect_positive=0)


@pytest.mark.parametrize("to", [TensorProto.INT32, TensorProto.INT64, TensorProto.FLOAT16, TensorProto.DOUBLE])
def test_cast_of_float(matches, to):
    matches("Cast", X, to=to)


def test_cast_to_and_from_bool(matches):
    matches("Cast", INTS, to=TensorProto.BOOL)
    matches("Cast", BOOLS, to=TensorProto.FLOAT)


def test_cast_to_its_own_dtype_is_nothing(matches, operators):
    assert operators(matches("Cast", X, to=TensorProto.FLOAT)) == []


def test_cast_to_strange_dtype_is_refused(refuses):
    assert "target dtype cannot be built. Supported: float32" in refuses("Cast", X, to=TensorProto.BFLOAT16)


def test_cast_like(matches):
    matches("CastLike", X, const(np.zeros(1, "int32")))


def test_clip_with_constant_bounds_is_clip(matches, operators):
    assert operators(matches("Clip", X, const(-0.5), const(1.0))) == ["clip"]
    assert operators(matches("Clip", X, min=-0.5, max=1.0, opset=6)) == ["clip"]
    assert operators(matches("Clip", X, const(0.0))) == ["nn.relu"]
    assert operators(matches("Clip", X, const(0.5))) == ["maximum"]
    assert operators(matches("Clip", X, None, const(0.5))) == ["minimum"]
    assert operators(matches("Clip", X)) == []


def test_clip_without_real_bounds_is_relu(matches, operators):
    largest = np.finfo("float32").max
    assert operators(matches("Clip", X, const(0.0), const(largest))) == ["nn.relu"]


def test_clip_with_bounds_at_run_time(matches):
    matches("Clip", X, np.float32(-0.5), np.float32(0.5))


def test_clip_of_integers_and_crossed_bounds(matches):
    matches("Clip", INTS, const(np.array(-1, "int64")), const(np.array(5, "int64")))
    matches("Clip", X, const(1.0), const(-1.0))
