"""Matrix products by Strassen's seven: weights [O, K] times inputs [K, P], each halved along both of its axes.

    x -> T [pieces, 7, CB/2, P/2, ci];  T, S [7, OB/2/g, CB/2, ci, g*v] -> Q [pieces, 7, OB/2, P/2, v];  Q, b -> y

A pointwise convolution has x [1, CB, P, v] and y [1, OB, P, v], ci = v; rows times a matrix have x [P, K] and
y [P, OB*v], CB = 2 and ci = K/2. P is split into ``pieces`` of two halves each; inputs beyond P repeat the last.
g blocks of weights stand side by side as in ``conv2d.py``.
An eighth of the multiplications is saved for additions of whole vectors; ``transform_*_weights`` makes the 7/4 as
many weights once, when the package is opened.

Winograd's form of Strassen's algorithm, 7 products and 15 sums: Winograd 1971, "On multiplication of 2 x 2 matrices";
Huss-Lederman and others 1996, "Implementation of Strassen's algorithm for matrix multiplication", section 2.
Error of a float32 product whose values have rms 1, against float64: at most three times that of direct sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm import te, tirx
from tvm.tirx import Expr

from . import rule
from .conv2d import beside
from .math import pick

# Seven rows each: sums of the quadrants 11, 12, 21, 22 of the weights and of the inputs that are multiplied.
WEIGHT_SUMS = (
    (1, 0, 0, 0), (0, 1, 0, 0), (1, 1, -1, -1), (0, 0, 0, 1), (0, 0, 1, 1), (-1, 0, 1, 1), (1, 0, -1, 0),
)  # fmt: skip
INPUT_SUMS = (
    (1, 0, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1), (1, -1, -1, 1), (-1, 1, 0, 0), (1, -1, 0, 1), (0, -1, 0, 1),
)  # fmt: skip

Quadrant = Callable[[int, int], Expr]  # (half of the first axis, half of the second) -> value


def transform_conv_weights(w: te.Tensor) -> te.Tensor:
    """Return S of packed pointwise weights [OB/g, CB, 1, 1, v, g*v]."""
    ob, cb, _, _, ci, v = (int(d) for d in w.shape)
    return _weight_sums((ob // 2, cb // 2, ci, v), lambda o, c, i, j: w[o, c, 0, 0, i, j])


def transform_rows_weights(w: te.Tensor) -> te.Tensor:
    """Return S of the packed matrix [OB/g, K, g*v]."""
    ob, k, v = (int(d) for d in w.shape)
    return _weight_sums((ob // 2, 1, k // 2, v), lambda o, c, i, j: w[o, c * (k // 2) + i, j])


def f32_conv2d_strassen(x: te.Tensor, s: te.Tensor, b: te.Tensor, pieces: int, half: int) -> te.Tensor:
    """Return the pointwise convolution of one packed image, ``pieces`` pieces of two times ``half`` pixels."""
    _, cb, pixels, v = (int(d) for d in x.shape)
    ob = int(b.shape[0])

    def read(c: Expr, p: Expr, i: Expr) -> Expr:
        return x[0, c, _clamped(p, pieces * 2 * half, pixels), i]

    sums = _sums(_products(read, s, (cb // 2, v), (ob // 2, v), pieces, half, pixels))
    at = lambda o, p, i: _at(sums, o, p, i, ob, half)  # noqa: E731
    return te.compute((1, ob, pixels, v), lambda _, o, p, i: at(o, p, i) + b[o, i], "bias")


def f32_gemm_strassen(x: te.Tensor, s: te.Tensor, b: te.Tensor, pieces: int, half: int) -> te.Tensor:
    """Return the rows ``x`` [P, K] times the packed matrix, ``pieces`` pieces of two times ``half`` rows."""
    rows, k = (int(d) for d in x.shape)
    ob, v = (int(d) for d in b.shape)

    def read(c: Expr, p: Expr, i: Expr) -> Expr:
        return x[_clamped(p, pieces * 2 * half, rows), c * (k // 2) + i]

    sums = _sums(_products(read, s, (1, k // 2), (ob // 2, v), pieces, half, rows))
    at = lambda o, p, i: _at(sums, o, p, i, ob, half)  # noqa: E731
    return te.compute((rows, ob * v), lambda t, j: at(j // v, t, j % v) + b[j // v, j % v], "bias")


def _weight_sums(shape: tuple[int, ...], w: Callable[..., Expr]) -> te.Tensor:
    o_half, c_half = shape[:2]

    def quadrant(o: Expr, c: Expr, i: Expr, j: Expr) -> Quadrant:
        return lambda row, column: w(o + row * o_half, c + column * c_half, i, j)

    return te.compute(
        (7, *shape),
        lambda e, o, c, i, j: pick(e, [_sum(row, quadrant(o, c, i, j)) for row in WEIGHT_SUMS]),
        "strassen_weights",
        attrs=rule("strassen_weights"),
    )


def _products(
    read: Callable[[Expr, Expr, Expr], Expr],
    s: te.Tensor,
    channels: tuple[int, int],
    outputs: tuple[int, int],
    pieces: int,
    half: int,
    pixels: int,
) -> te.Tensor:
    """Return Q; ``read(c, p, i)`` is channel i of input block c at pixel p."""
    (c_half, ci), (o_half, v) = channels, outputs

    def quadrant(piece: Expr, c: Expr, t: Expr, i: Expr) -> Quadrant:
        return lambda row, column: read(c + row * c_half, piece * (2 * half) + column * half + t, i)

    inputs = te.compute(
        (pieces, 7, c_half, half, ci),
        lambda p, e, c, t, i: pick(e, [_sum(row, quadrant(p, c, t, i)) for row in INPUT_SUMS]),
        "inputs",
    )
    co, ic = te.reduce_axis((0, c_half), "co"), te.reduce_axis((0, ci), "ci")

    def product(p: Expr, e: Expr, o: Expr, t: Expr, i: Expr) -> Expr:
        block, lane = beside(s, o, i, v)
        return te.sum(inputs[p, e, co, t, ic] * s[e, block, co, ic, lane], axis=[co, ic])

    return te.compute(
        (pieces, 7, o_half, half, v),
        product,
        "products",
        attrs=rule("strassen", pieces=pieces, half=half, pixels=pixels, ob=o_half, cb=c_half, ic=c_half * ci),
    )


def _sums(q: te.Tensor) -> te.Tensor:
    """Return [pieces, 2, OB/2, 2, P/2, v], the quadrants of the product."""
    pieces, _, o_half, half, v = (int(d) for d in q.shape)

    def value(piece: Expr, row: Expr, o: Expr, column: Expr, t: Expr, i: Expr) -> Expr:
        p1, p2, p3, p4, p5, p6, p7 = (q[piece, e, o, t, i] for e in range(7))
        u2 = p1 + p6
        u3 = u2 + p7
        return pick(row * 2 + column, [p1 + p2, u2 + p5 + p3, u3 - p4, u3 + p5])

    return te.compute((pieces, 2, o_half, 2, half, v), value, "sums")


def _at(sums: te.Tensor, o: Expr, p: Expr, i: Expr, blocks: int, half: int) -> Expr:
    """Return the product's value of output block ``o`` at pixel ``p``, lane ``i``."""
    o_half = blocks // 2
    return sums[p // (2 * half), o // o_half, o % o_half, p % (2 * half) // half, p % half, i]


def _clamped(p: Expr, computed: int, pixels: int) -> Expr:
    return p if computed == pixels else tirx.min(p, pixels - 1)


def _sum(signs: Sequence[int], quadrant: Quadrant) -> Expr:
    """Return the quadrants with their signs: those to be added from the last one on, then those to be subtracted."""
    quadrants = [quadrant(index // 2, index % 2) for index in range(4)]
    added = [q for q, sign in zip(quadrants, signs, strict=True) if sign > 0]
    total = added[-1]
    for q in reversed(added[:-1]):
        total = total + q
    for q in (q for q, sign in zip(quadrants, signs, strict=True) if sign < 0):
        total = total - q
    return total
