"""TFLite's integer arithmetic: real factors as a 32-bit multiplier and a shift, rounded as its reference kernels do.

``tensorflow/lite/kernels/internal/common.h`` (MultiplyByQuantizedMultiplier, double rounding) and
``quantization_util.cc`` (QuantizeMultiplier, CalculateActivationRangeQuantized), with gemmlowp's
SaturatingRoundingDoublingHighMul and RoundingDivideByPOT.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .model import Quantisation, Tensor


@dataclass(frozen=True, eq=False)
class Multipliers:
    """``real`` factors as multiplier * 2**(shift - 31); arrays of one element for each channel."""

    multiplier: np.ndarray  # [n] int64 in [0, 2**31)
    shift: np.ndarray  # [n] int64, the exponent; positive is to the left

    @property
    def factor(self) -> np.ndarray:
        """The multiplier with a shift to the left in it: at most 2**62."""
        return self.multiplier << np.maximum(self.shift, 0)

    @property
    def right(self) -> np.ndarray:
        """The rounding shift to the right that follows."""
        return np.maximum(-self.shift, 0)


def multipliers(real: np.ndarray) -> Multipliers:
    """Return fixed-point forms of non-negative ``real`` [n] float64."""
    mantissa, exponent = np.frexp(np.asarray(real, "float64").reshape(-1))
    fixed = np.floor(mantissa * 2.0**31 + 0.5).astype("int64")
    exponent = exponent.astype("int64") + (fixed == 2**31)
    fixed = np.where(fixed == 2**31, 2**30, fixed)
    is_tiny = exponent < -31
    return Multipliers(np.where(is_tiny, 0, fixed), np.where(is_tiny, 0, np.minimum(exponent, 30)))


def scaled(x: np.ndarray, by: Multipliers) -> np.ndarray:
    """Return integers ``x`` [..., n or 1] times the factors, rounded twice as TFLite does; int64.

    (a * b + 2**30) >> 31 is SaturatingRoundingDoublingHighMul for both signs; the second rounding is half away
    from zero, where a shift of 0 changes nothing.
    """
    high = (x.astype("int64") * by.factor + 2**30) >> 31
    half = (np.int64(1) << by.right) >> 1
    return (high + half + ((high >> 63) & -(by.right > 0).astype("int64"))) >> by.right


def limits(dtype: str) -> tuple[int, int]:
    """Return the smallest and largest number of an integer dtype."""
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def activation_range(activation: str, output: Tensor) -> tuple[int, int]:
    """Return the bounds of a quantised output after a fused activation."""
    low, high = limits(output.dtype)
    if activation in ("RELU", "RELU6"):
        low = max(low, stored(0.0, output))
    if activation == "RELU6":
        high = min(high, stored(6.0, output))
    if activation == "RELU_N1_TO_1":
        low, high = max(low, stored(-1.0, output)), min(high, stored(1.0, output))
    return low, high


def stored(real: float, tensor: Tensor) -> int:
    """Return the stored number next to ``real``, not limited to the dtype."""
    scale, zero = scale_of(tensor), zero_of(tensor)
    return zero + int(math.copysign(math.floor(abs(real / scale) + 0.5), real))


def scale_of(tensor: Tensor) -> float:
    """Return the one scale of a tensor."""
    return float(quantisation_of(tensor).scale[0])


def zero_of(tensor: Tensor) -> int:
    """Return the one zero point of a tensor."""
    return int(quantisation_of(tensor).zero_point[0])


def quantisation_of(tensor: Tensor) -> Quantisation:
    """Return a quantised tensor's parameters."""
    assert tensor.quantisation is not None
    return tensor.quantisation


def quantise(real: np.ndarray, tensor: Tensor) -> np.ndarray:
    """Return real numbers as ``tensor`` stores them, half away from zero."""
    q = quantisation_of(tensor)
    low, high = limits(tensor.dtype)
    ratio = np.asarray(real, "float32") / q.scale[0]
    rounded = np.copysign(np.floor(np.abs(ratio) + np.float32(0.5)), ratio)
    return np.clip(np.nan_to_num(rounded) + q.zero_point[0], low, high).astype(tensor.dtype)


def rescaled_by_reals(x: np.ndarray, source: Tensor, out: Tensor) -> np.ndarray:
    """Return stored numbers of ``source`` as ``out`` stores them, scaled in float32 as LiteRT's CONCATENATION does."""
    if quantisation_of(source).equals(out.quantisation):
        return x
    scale = np.float32(scale_of(source)) * (np.float32(1) / np.float32(scale_of(out)))
    ratio = x.astype("float32") * scale - np.float32(zero_of(source)) * scale
    rounded = np.copysign(np.floor(np.abs(ratio) + np.float32(0.5)), ratio) + zero_of(out)
    return np.clip(rounded, *limits(out.dtype)).astype(out.dtype)


def dequantise(x: np.ndarray, tensor: Tensor) -> np.ndarray:
    """Return the real numbers that ``x`` stands for; float32."""
    q = quantisation_of(tensor)
    shape = [1] * x.ndim
    if q.scale.size > 1:
        shape[q.axis] = -1
    return ((x.astype("int32") - q.zero_point.reshape(shape)) * q.scale.reshape(shape)).astype("float32")
