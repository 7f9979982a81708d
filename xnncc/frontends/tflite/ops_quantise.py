"""Between real and stored numbers, and functions of one stored number, which are tables of 256 entries."""

from __future__ import annotations

import numpy as np
from tvm import relax, te, tirx
from tvm.relax import Expr

from ..network import constant
from ..refused import Refused
from .fixed_point import (
    activation_range,
    limits,
    multipliers,
    quantisation_of,
    rescaled_by_reals,
    scale_of,
    scaled,
    zero_of,
)
from .flow import TO_NHWC, Flow
from .integer_kernels import i64
from .interpret import run_operator
from .interpret_integer import TABLED
from .op import Op
from .ops_integer import rescale
from .ops_window import resize_options, tabled_resize
from .registry import converter, integer_converter
from .windows import linear_taps_10bit

R = relax.op


@integer_converter("QUANTIZE")
def requantise(n: Op) -> Flow:
    """From one scale to another; from real numbers, ``quantise_reals``."""
    if not n.tensor().is_quantised:
        return quantise_reals(n)
    if n.dtype() in ("int8", "uint8"):
        numbers = _all_numbers(n).astype("int64") - zero_of(n.tensor())
        by = multipliers(np.array([scale_of(n.tensor()) / scale_of(n.out())]))
        bounds = limits(n.out().dtype)
        return _looked_up(n, np.clip(scaled(numbers, by) + zero_of(n.out()), *bounds).astype(n.out().dtype))
    by = multipliers(np.array([scale_of(n.tensor()) / scale_of(n.out())]))
    return Flow(n.emit(rescale(n, 0, by)), n.is_planar())


def quantise_reals(n: Op) -> Flow:
    """zero + x / scale, half away from zero, within the dtype."""
    q, dtype = quantisation_of(n.out()), n.out().dtype
    if not q.is_per_tensor:
        raise Refused("a scale for each channel is supported for constants only")
    low, high = (float(v) for v in limits(dtype))
    x = n.planar() if n.is_planar() else n.expr()

    def compute(source: te.Tensor) -> te.Tensor:
        def element(*i: tirx.Var) -> tirx.Expr:
            ratio = source(*i) / tirx.const(float(q.scale[0]), "float32")
            half = tirx.const(0.5, "float32")
            size = tirx.floor(tirx.abs(ratio) + half)
            y = tirx.Select(ratio < 0, -size, size) + tirx.const(float(q.zero_point[0]), "float32")
            limited = tirx.max(tirx.min(y, tirx.const(high, "float32")), tirx.const(low, "float32"))
            return limited.astype("int32").astype(dtype)

        return te.compute(source.shape, element, name="quantise")

    return Flow(n.emit(n.build.call_te(compute, x, name="quantise")), n.is_planar())


@integer_converter("DEQUANTIZE")
def dequantise(n: Op) -> Flow:
    """(stored - zero) * scale."""
    q = quantisation_of(n.tensor())
    if not q.is_per_tensor:
        raise Refused("a scale for each channel is supported for constants only")
    x = n.planar() if n.is_planar() else n.expr()
    real = R.astype(R.subtract(R.astype(x, "int32"), constant(np.asarray(zero_of(n.tensor()), "int32"))), "float32")
    return Flow(n.emit(R.multiply(real, constant(np.asarray(q.scale[0], "float32")))), n.is_planar())


@converter("DEQUANTIZE")
def widen(n: Op) -> Flow:
    """float16 to float32."""
    is_planar = n.is_planar()
    return Flow(n.emit(R.astype(n.planar() if is_planar else n.expr(), "float32")), is_planar)


@converter("QUANTIZE")
def _quantise_without_scale(n: Op) -> Flow:
    raise Refused("its output has no scale")


@integer_converter(*TABLED)
def tabled(n: Op) -> Flow:
    """The function of all 256 stored numbers, as the interpreter computes it, becomes a table."""
    if n.dtype() not in ("int8", "uint8"):
        raise Refused(f"it is not supported on quantised {n.dtype()}", "Supported: int8 and uint8.")
    return _looked_up(n, run_operator(n.graph, n.op, [_all_numbers(n)])[0])


def _all_numbers(n: Op, index: int = 0) -> np.ndarray:
    """Return the 256 numbers that an 8-bit operand can hold."""
    low, high = limits(n.dtype(index))
    return np.arange(low, high + 1).astype(n.dtype(index))


def _looked_up(n: Op, table: np.ndarray, operand: int = 0) -> Flow:
    low, _ = limits(n.dtype(operand))
    x = n.planar(operand) if n.is_planar(operand) else n.expr(operand)
    index = n.emit(R.astype(x, "int32"))
    if low:
        index = n.emit(R.add(index, constant(np.asarray(-low, "int32"))))
    return Flow(n.emit(R.take(constant(table), index, 0, mode="clip")), n.is_planar(operand))


@integer_converter("CONCATENATION")
def concatenate(n: Op) -> Flow:
    """Parts in another scale than the output's are brought to it first."""
    axis, count = n.axis(n.option("axis")), range(len(n))
    is_planar = n.rank() == 4 and all(n.is_planar(i) for i in count)
    parts = [_in_output_scale(n, i, is_planar) for i in count]
    y = n.emit(R.concat(parts, TO_NHWC[axis] if is_planar else axis))
    low, high = activation_range(n.activation, n.out())
    if (low, high) != limits(n.out().dtype):
        dtype = n.out().dtype
        y = n.emit(R.maximum(R.minimum(y, constant(np.asarray(high, dtype))), constant(np.asarray(low, dtype))))
    return Flow(y, is_planar)


def _in_output_scale(n: Op, index: int, is_planar: bool) -> Expr:
    source = n.tensor(index)
    if quantisation_of(source).equals(n.out().quantisation):
        return n.planar(index) if is_planar else n.expr(index)
    part = _looked_up(n, rescaled_by_reals(_all_numbers(n, index), source, n.out()), index)
    return part.planar(n.build) if is_planar else part.logical(n.build)


@integer_converter("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")
def compare(n: Op) -> Flow:
    """What the stored numbers stand for is compared."""
    (a, b), is_planar = n.alike(0, 1)
    parts = []
    for i, x in ((0, a), (1, b)):
        zero = constant(np.asarray(zero_of(n.tensor(i)), "int32"))
        real = R.astype(R.subtract(R.astype(x, "int32"), zero), "float32")
        parts.append(n.emit(R.multiply(real, constant(np.asarray(scale_of(n.tensor(i)), "float32")))))
    function = {"EQUAL": R.equal, "NOT_EQUAL": R.not_equal, "LESS": R.less, "LESS_EQUAL": R.less_equal,
                "GREATER": R.greater, "GREATER_EQUAL": R.greater_equal}[n.kind]  # fmt: skip
    return Flow(n.emit(function(*parts)), is_planar)


@integer_converter("RESIZE_BILINEAR")
def resize_bilinear(n: Op) -> Flow:
    """Weights of 10 bits for each axis; the sum of 20 fractional bits is rounded half away from zero."""
    h, w, flags = resize_options(n)
    _, ih, iw, _ = n.shape()
    taps = (linear_taps_10bit(ih, h, *flags), linear_taps_10bit(iw, w, *flags))
    total = n.emit(tabled_resize(n, n.planar(), taps, "int32"))
    dtype = n.out().dtype

    def compute(x: te.Tensor) -> te.Tensor:
        def element(*i: tirx.Var) -> tirx.Expr:
            v = x(*i).astype("int64")
            rounded = (tirx.abs(v) + i64(1 << 19)) >> i64(20)
            return tirx.Select(v < i64(0), i64(0) - rounded, rounded).astype(dtype)

        return te.compute(x.shape, element, name="s8_resize")

    return Flow(n.emit(n.build.call_te(compute, total, name="s8_resize")), is_planar=True)
