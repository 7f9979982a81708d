"""Quantised operators of com.microsoft: bytes in, one computation in float32 or exact integers, bytes out.

Those that are no sums are computed on the values that the bytes stand for, and rounded once: half to even, as
onnxruntime does it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from tvm import relax
from tvm.relax import Expr

from ..refused import Refused
from .node import Node
from .ops_activation import softmax
from .ops_integer import requantised, saturated, scale_of, shifted
from .ops_pool import average_pool
from .registry import converter

R = relax.op


def _real(n: Node, first: int) -> Expr:
    """Return the float32 that input ``first`` stands for; its scale and zero point follow it."""
    x = R.astype(n.expr(first), "int32")
    if n.has(first + 2):
        x = R.subtract(x, R.astype(n.reshaped(n.expr(first + 2), []), "int32"))
    return R.multiply(R.astype(x, "float32"), scale_of(n, first + 1))


def _quantised(n: Node, y: Expr, scale: int) -> Expr:
    """Return float32 ``y`` in steps of scale ``scale``; the zero point follows it."""
    return saturated(n, R.round(R.divide(y, scale_of(n, scale))), scale + 1)


def _binary(function: Callable[[Expr, Expr], Expr]) -> Callable[[Node], Expr]:
    return lambda n: _quantised(n, function(_real(n, 0), _real(n, 3)), 6)


converter("com.microsoft.QLinearAdd")(_binary(R.add))
converter("com.microsoft.QLinearMul")(_binary(R.multiply))


@converter("com.microsoft.QLinearSigmoid")
def qlinear_sigmoid(n: Node) -> Expr:
    return _quantised(n, R.sigmoid(_real(n, 0)), 3)


@converter("com.microsoft.QLinearLeakyRelu")
def qlinear_leaky_relu(n: Node) -> Expr:
    return _quantised(n, R.nn.leakyrelu(_real(n, 0), float(n.attr("alpha", 0.01))), 3)


@converter("com.microsoft.QLinearGlobalAveragePool")
def qlinear_global_average_pool(n: Node) -> Expr:
    """The sum is exact; what it is divided by goes into the scale, as onnxruntime has it."""
    _refuse_channels_last(n)
    total = R.sum(shifted(n, 0, 2), list(range(2, n.rank())), keepdims=True)
    pixels = n.scalar(math.prod(n.shape()[2:]), "float32")
    return requantised(n, total, R.divide(scale_of(n, 1), R.multiply(scale_of(n, 3), pixels)), 4)


@converter("com.microsoft.QLinearAveragePool")
def qlinear_average_pool(n: Node) -> Expr:
    _refuse_channels_last(n)
    return _quantised(n, average_pool(n.on([n.emit(_real(n, 0))])), 3)


@converter("com.microsoft.QLinearSoftmax")
def qlinear_softmax(n: Node) -> Expr:
    """``opset`` says whose Softmax it is: up to 12 all axes from ``axis`` on are normalised together."""
    real = n.on([n.emit(_real(n, 0))], opset=int(n.attr("opset", 13)))
    return _quantised(n, softmax(real), 3)


@converter("com.microsoft.QLinearConcat")
def qlinear_concat(n: Node) -> Expr:
    """Inputs: y_scale, y_zero, then tensor, scale and zero point of each part."""
    parts = [n.emit(_quantised(n, _real(n, first), 0)) for first in range(2, len(n), 3)]
    if not parts:
        raise Refused("it has no parts")
    return R.concat(parts, n.axis(int(n.attr("axis", 0)), n.rank(2)))


def _refuse_channels_last(n: Node) -> None:
    if n.attr("channels_last", 0):
        raise Refused("channels_last is not supported", "Export with NCHW.")


@converter("com.microsoft.MatMulIntegerToFloat")
def matmul_integer_to_float(n: Node) -> Expr:
    """Inputs: a, b, a_scale, b_scale, a_zero, b_zero, bias; scales of b and its zero points may be per column."""
    total = R.matmul(shifted(n, 0, 4, -2), shifted(n, 1, 5, -1), out_dtype="int32")
    y = R.multiply(R.astype(total, "float32"), R.multiply(n.expr(2), n.expr(3)))
    return R.add(y, n.expr(6)) if n.has(6) else y


@converter("com.microsoft.DynamicQuantizeMatMul")
def dynamic_quantise_matmul(n: Node) -> Expr:
    """a: float32, quantised here to uint8 over its range and zero; b: bytes, b_scale, b_zero, bias."""
    a, zero = n.emit(n.expr(0)), n.scalar(0.0)
    low, high = n.emit(R.minimum(R.min(a), zero)), n.emit(R.maximum(R.max(a), zero))
    scale = n.emit(R.divide(R.subtract(high, low), n.scalar(255.0)))
    scale = n.emit(R.where(R.equal(scale, zero), n.scalar(1.0), scale))
    start = n.emit(R.clip(R.round(R.divide(R.negative(low), scale)), 0.0, 255.0))
    steps = R.clip(R.add(R.round(R.divide(a, scale)), start), 0.0, 255.0)
    whole = n.emit(R.astype(R.subtract(steps, start), "int32"))
    total = R.matmul(whole, shifted(n, 1, 3, -1), out_dtype="int32")
    y = R.multiply(R.astype(total, "float32"), R.multiply(scale, n.expr(2)))
    return R.add(y, n.expr(4)) if n.has(4) else y


@converter("com.microsoft.MatMulNBits")
def matmul_n_bits(n: Node) -> Expr:
    """a: [.., K] times weights of 4 or 8 bits [N, blocks, bytes], with a scale and a zero point for each block along K.

    The weights stay whole numbers of one byte in the file; the product is one of floats, as the operator is defined.
    """
    n.ignore("accuracy_level")  # how onnxruntime may round, not what is meant
    depth, outputs, bits = (int(n.attr(name, 0)) for name in ("K", "N", "bits"))
    block = int(n.attr("block_size", 0))
    bits = bits or 4
    if bits not in (4, 8) or block < 1 or n.has(4):
        raise Refused(f"{bits} bits in blocks of {block} are not supported", "Supported: 4 and 8 bits, without g_idx.")
    blocks = -(-depth // block)
    codes = _unpacked(n.const(1, "weights"), bits)[: outputs * blocks * block].reshape(outputs, blocks, block)
    zeros = np.full((outputs, blocks, 1), 1 << (bits - 1), "uint8")
    if n.has(3):
        rows = _unpacked(n.const(3, "zero points").reshape(outputs, -1), bits).reshape(outputs, -1)
        zeros = rows[:, :blocks, None]
    steps = codes.astype("int16") - zeros
    wide = "int8" if np.abs(steps).max(initial=0) < 128 else "int16"
    scales = n.const(2, "scales").reshape(outputs, blocks, 1)
    weights = R.multiply(R.astype(n.build.constant(steps.astype(wide)), "float32"), n.build.constant(scales))
    weights = n.emit(n.reshaped(weights, [outputs, blocks * block]))
    if blocks * block > depth:
        weights = n.emit(R.strided_slice(weights, [1], [0], [depth], [1]))
    y = R.matmul(n.expr(0), n.emit(R.permute_dims(weights, [1, 0])))
    return R.add(y, n.expr(5)) if n.has(5) else y


def _unpacked(packed: np.ndarray, bits: int) -> np.ndarray:
    """Return the codes in ``packed`` bytes, flat; of two in a byte the low one comes first."""
    if packed.dtype != "uint8":
        raise Refused(f"packed weights have dtype {packed.dtype}", "Supported: uint8.")
    if bits == 8:
        return packed.reshape(-1)
    return np.stack([packed & 15, packed >> 4], axis=-1).reshape(-1)
