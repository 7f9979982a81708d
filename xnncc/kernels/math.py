"""Elementary functions as polynomials, because ``tirx.exp`` and friends become one libm call for each lane.

Every function takes and returns a float32 expression and vectorises to plain multiplies and adds.
"""

from __future__ import annotations

from tvm import tirx
from tvm.tirx import Expr


def f32(value: float) -> Expr:
    """Return a float32 constant."""
    return tirx.const(value, "float32")


def horner(x: Expr, coefficients: tuple[float, ...]) -> Expr:
    """Return the polynomial of ``x`` with ``coefficients``, highest power first."""
    acc = f32(coefficients[0])
    for c in coefficients[1:]:
        acc = acc * x + f32(c)
    return acc


def exp(x: Expr) -> Expr:
    """Return e**x as 2**n * p(r); relative error about 2e-7 on [-87, 88], 0 below -87.7, clamped above 88.

    Cephes' expf (Moshier 1992): n = round(x / ln 2), r = x - n ln 2 in two parts, a polynomial of degree 5 in r.
    """
    x = tirx.Select(x > f32(88.0), f32(88.0), tirx.Select(x < f32(-88.0), f32(-88.0), x))  # a NaN stays one
    n = tirx.floor(x * f32(1.44269504) + f32(0.5))
    r = x - n * f32(0.693359375) - n * f32(-2.12194440e-4)
    p = horner(
        r, (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
    )
    scale = tirx.reinterpret("float32", (tirx.Cast("int32", n) + 127) << 23)
    return (p * r * r + r + f32(1.0)) * scale


def sigmoid(x: Expr) -> Expr:
    """Return 1 / (1 + e**-x)."""
    return f32(1.0) / (f32(1.0) + exp(-x))


def tanh(x: Expr) -> Expr:
    """Return tanh(x) as an odd rational function of degree 13/6; error below 4e-7 (the minimax fit used by Eigen)."""
    x = tirx.max(tirx.min(x, f32(7.90531110763549805)), f32(-7.90531110763549805))
    s = x * x
    alpha = (
        -2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
        1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03,
    )  # fmt: skip
    beta = (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)
    return x * horner(s, alpha) / horner(s, beta)


def erf(x: Expr) -> Expr:
    """Return erf(x) as an odd rational function of degree 13/8 on [-4, 4]; error below 4e-7 (Eigen's minimax fit)."""
    x = tirx.max(tirx.min(x, f32(4.0)), f32(-4.0))
    s = x * x
    alpha = (
        -2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
        -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02,
    )  # fmt: skip
    beta = (
        -1.45660718464996e-05,
        -2.13374055278905e-04,
        -1.68282697438203e-03,
        -7.37332916720468e-03,
        -1.42647390514189e-02,
    )
    return x * horner(s, alpha) / horner(s, beta)


def pick(index: Expr, values: list[Expr]) -> Expr:
    """Return values[index]; loops over ``index`` are unrolled, so one arm is left of this."""
    chosen = values[-1]
    for k in range(len(values) - 2, -1, -1):
        chosen = tirx.if_then_else(index == k, values[k], chosen)
    return chosen
