"""Quantised operators in numpy, in the integer arithmetic of LiteRT's reference kernels.

Each wraps the operator on real numbers: it takes over when the operator's tensors are quantised.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import interpret_float as real
from . import interpret_layout as layout
from .fixed_point import (
    activation_range,
    dequantise,
    limits,
    multipliers,
    quantisation_of,
    quantise,
    rescaled_by_reals,
    scale_of,
    scaled,
    zero_of,
)
from .interpret import Array, Evaluator, Step
from .windows import linear_taps_10bit


def _or_real(quantised: Evaluator, fallback: dict[str, Evaluator] = real.EVALUATORS) -> Evaluator:
    return lambda s: (quantised if s.outputs[0].is_quantised else fallback[s.op.kind])(s)


def _centred(s: Step, index: int) -> Array:
    tensor = s.source(index)
    q = quantisation_of(tensor)
    shape = [1] * len(tensor.shape)
    if q.scale.size > 1:
        shape[q.axis] = -1
    return s.x[index].astype("int64") - q.zero_point.reshape(shape)


def _finished(s: Step, acc: Array, source: int, weights: int, bias: int) -> Array:
    """Return accumulators [..., O] as the output stores them."""
    if len(s.x) > bias and s.x[bias] is not None:
        acc = acc + s.x[bias].astype("int64")
    scale = scale_of(s.source(source)) * quantisation_of(s.source(weights)).scale.astype("float64")
    return _stored(s, scaled(acc, multipliers(scale / scale_of(s.outputs[0]))))


def _stored(s: Step, y: Array) -> Array:
    out = s.outputs[0]
    activation = real.activation_of(s) if "activation" in s.op.options else "NONE"
    return np.clip(y + zero_of(out), *activation_range(activation, out)).astype(out.dtype)


def _conv(s: Step) -> Array:
    axes = real.window_axes(s, s.x[1].shape[1:3])
    x, w = _centred(s, 0).astype("float64"), _centred(s, 1).astype("float64")  # exact: sums stay below 2**53
    function = real.convolve if s.op.kind == "CONV_2D" else real.depthwise
    return _finished(s, function(x, w, *axes).astype("int64"), 0, 1, 2)


def _transpose_conv(s: Step) -> Array:
    stride, padding = (s.option("stride_h"), s.option("stride_w")), real.PADDINGS[s.option("padding")]
    acc = real.convolve_transposed(s, _centred(s, 2), _centred(s, 1), stride, padding)
    return _finished(s, acc, 2, 1, 3)


def _fully_connected(s: Step) -> Array:
    acc = _centred(s, 0).reshape(-1, s.x[1].shape[1]) @ _centred(s, 1).T
    return _finished(s, acc, 0, 1, 2).reshape(s.outputs[0].shape)


def _add(s: Step) -> Array:
    """ADD and SUB: both operands to a common scale with 20 more bits."""
    scales = [scale_of(s.source(i)) for i in (0, 1)]
    common = 2 * max(scales)
    a, b = (scaled(_centred(s, i) << 20, multipliers(np.array([scales[i] / common]))) for i in (0, 1))
    total = a + b if s.op.kind == "ADD" else a - b
    return _stored(s, scaled(total, multipliers(np.array([common / (2**20 * scale_of(s.outputs[0]))]))))


def _mul(s: Step) -> Array:
    factor = scale_of(s.source(0)) * scale_of(s.source(1)) / scale_of(s.outputs[0])
    return _stored(s, scaled(_centred(s, 0) * _centred(s, 1), multipliers(np.array([factor]))))


def _divided(total: Array, count: Array) -> Array:
    """Return total / count, half away from zero."""
    return np.where(total > 0, (total + count // 2) // count, -((-total + count // 2) // count))


def _pool(s: Step) -> Array:
    rows, columns = real.window_axes(s, (s.option("filter_h"), s.option("filter_w")))
    bounds = activation_range(real.activation_of(s), s.outputs[0])
    if s.op.kind == "MAX_POOL_2D":
        low = limits(s.outputs[0].dtype)[0]
        return np.clip(real.patches(s.x[0], rows, columns, low).max((3, 4)), *bounds)
    total = real.patches(s.x[0].astype("int64"), rows, columns, 0).sum((3, 4))
    counts = real.patches(np.ones(s.x[0].shape, "int64")[:1], rows, columns, 0).sum((3, 4))
    return np.clip(_divided(total, counts), *bounds)


def _mean(s: Step) -> Array:
    axes = tuple(sorted({int(a) % s.x[0].ndim for a in np.asarray(s.x[1]).reshape(-1)}))
    total = _centred(s, 0).sum(axes, keepdims=bool(s.option("keep_dims")))
    count = int(np.prod([s.x[0].shape[a] for a in axes])) if s.op.kind == "MEAN" else 1
    factor = scale_of(s.source()) / (scale_of(s.outputs[0]) * count)
    return _stored(s, scaled(total, multipliers(np.array([factor]))))


def _rescaled(s: Step, index: int) -> Array:
    """Return input ``index`` in the output's scale and zero point."""
    source, out = s.source(index), s.outputs[0]
    if quantisation_of(source).equals(out.quantisation) and source.dtype == out.dtype:
        return s.x[index]
    factor = multipliers(np.array([scale_of(source) / scale_of(out)]))
    return np.clip(scaled(_centred(s, index), factor) + zero_of(out), *limits(out.dtype)).astype(out.dtype)


def _concatenate(s: Step) -> Array:
    parts = [rescaled_by_reals(x, s.source(i), s.outputs[0]) for i, x in enumerate(s.x)]
    joined = np.concatenate(parts, axis=s.option("axis"))
    return np.clip(joined, *activation_range(real.activation_of(s), s.outputs[0]))


def _resize_bilinear(s: Step) -> Array:
    flags = (bool(s.option("align_corners")), bool(s.option("half_pixel_centers")))
    (h, w), (_, ih, iw, _) = (int(v) for v in s.x[1]), s.x[0].shape
    y = real.resized(s.x[0].astype("int64"), linear_taps_10bit(ih, h, *flags), linear_taps_10bit(iw, w, *flags))
    return np.sign(y) * ((np.abs(y) + (1 << 19)) >> 20)


def _softmax(s: Step) -> Array:
    """Exponentials with 23 fractional bits and one integer division; outputs are 256ths."""
    x = s.x[0].astype("int64")
    below = x.max(-1, keepdims=True) - x
    table = np.floor(np.exp(-np.arange(256) * scale_of(s.source()) * s.option("beta")) * 2.0**23 + 0.5).astype("int64")
    e = table[below]
    total = e.sum(-1, keepdims=True)
    return _stored(s, (e * 512 + total) // (2 * total))


def _prelu(s: Step) -> Array:
    x, slope, out = _centred(s, 0), _centred(s, 1), scale_of(s.outputs[0])
    above = scaled(x, multipliers(np.array([scale_of(s.source(0)) / out])))
    below = scaled(x * slope, multipliers(np.array([scale_of(s.source(0)) * scale_of(s.source(1)) / out])))
    return _stored(s, np.where(x >= 0, above, below))


def through_reals(s: Step) -> Any:
    """Return the operator on real numbers between dequantised input and quantised output: for one-operand
    functions, where LiteRT looks up tables made the same way."""
    operands = [dequantise(x, t) if t is not None and t.is_quantised else x for x, t in zip(s.x, s.inputs, strict=True)]
    return quantise(real.EVALUATORS[s.op.kind](Step(s.op, operands, s.inputs, s.outputs)), s.outputs[0])


def _quantise(s: Step) -> Array:
    return _rescaled(s, 0) if s.source().is_quantised else quantise(s.x[0], s.outputs[0])


def _dequantise(s: Step) -> Array:
    return dequantise(s.x[0], s.source()) if s.source().is_quantised else s.x[0].astype("float32")


def _compare(s: Step) -> Array:
    """Comparisons of quantised operands are of what they stand for."""
    a, b = (dequantise(s.x[i], s.source(i)) if s.source(i).is_quantised else s.x[i] for i in (0, 1))
    return real.EVALUATORS[s.op.kind](Step(s.op, [a, b], s.inputs, s.outputs))


# Functions of one operand: tables of 256 entries, rounded once from real numbers.
TABLED = ("LOGISTIC", "TANH", "HARD_SWISH", "LEAKY_RELU", "ELU", "RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "ABS",
          "NEG", "SQUARE", "SQRT", "RSQRT", "EXP", "LOG", "GELU")  # fmt: skip
COMPARED = ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")

EVALUATORS: dict[str, Evaluator] = {
    **{kind: _or_real(through_reals) for kind in TABLED},
    **dict.fromkeys(COMPARED, _compare),
    "CONV_2D": _or_real(_conv), "DEPTHWISE_CONV_2D": _or_real(_conv), "TRANSPOSE_CONV": _or_real(_transpose_conv),
    "FULLY_CONNECTED": _or_real(_fully_connected), "ADD": _or_real(_add), "SUB": _or_real(_add),
    "MUL": _or_real(_mul), "AVERAGE_POOL_2D": _or_real(_pool), "MAX_POOL_2D": _or_real(_pool),
    "MEAN": _or_real(_mean), "SOFTMAX": _or_real(_softmax), "PRELU": _or_real(_prelu), "SUM": _or_real(_mean),
    "CONCATENATION": _or_real(_concatenate),
    "RESIZE_BILINEAR": _or_real(_resize_bilinear), "QUANTIZE": _quantise, "DEQUANTIZE": _dequantise,
}  # fmt: skip
assert not set(EVALUATORS) & set(layout.EVALUATORS)
