"""Layers that compute element by element, channel by channel, or reduce: the rest of Caffe's arithmetic."""

from __future__ import annotations

import math

import numpy as np

from .formulas import Array, formula
from .net import Layer


def _wide(xs: list[Array]) -> Array:
    return xs[0].astype("float64")


@formula("ReLU")
def relu(layer: Layer, xs: list[Array]) -> Array:
    return np.maximum(_wide(xs), 0) + layer.params("relu_param").number("negative_slope", 0.0) * np.minimum(xs[0], 0)


@formula("ReLU6")
def relu6(layer: Layer, xs: list[Array]) -> Array:
    return np.minimum(np.maximum(xs[0], 0), 6)


@formula("PReLU")
def prelu(layer: Layer, xs: list[Array]) -> Array:
    slope = layer.blobs[0].reshape(1, -1, *[1] * (xs[0].ndim - 2))
    return np.maximum(_wide(xs), 0) + slope * np.minimum(xs[0], 0)


@formula("ELU")
def elu(layer: Layer, xs: list[Array]) -> Array:
    alpha = layer.params("elu_param").number("alpha", 1.0)
    return np.maximum(_wide(xs), 0) + alpha * np.expm1(np.minimum(_wide(xs), 0))


@formula("Sigmoid")
def sigmoid(layer: Layer, xs: list[Array]) -> Array:
    return 0.5 * np.tanh(0.5 * _wide(xs)) + 0.5


@formula("TanH")
def tanh(layer: Layer, xs: list[Array]) -> Array:
    return np.tanh(_wide(xs))


@formula("AbsVal")
def absolute(layer: Layer, xs: list[Array]) -> Array:
    return np.abs(xs[0])


@formula("BNLL")
def bnll(layer: Layer, xs: list[Array]) -> Array:
    return np.logaddexp(0, _wide(xs))


@formula("Mish")
def mish(layer: Layer, xs: list[Array]) -> Array:
    return _wide(xs) * np.tanh(np.logaddexp(0, _wide(xs)))


@formula("Swish")
def swish(layer: Layer, xs: list[Array]) -> Array:
    return _wide(xs) / (1 + np.exp(-layer.params("swish_param").number("beta", 1.0) * _wide(xs)))


@formula("HSigmoid")
def hard_sigmoid(layer: Layer, xs: list[Array]) -> Array:
    return np.minimum(np.maximum(_wide(xs) + 3, 0), 6) / 6


@formula("HardSwish")
def hard_swish(layer: Layer, xs: list[Array]) -> Array:
    return _wide(xs) * np.minimum(np.maximum(_wide(xs) + 3, 0), 6) / 6


@formula("Clip")
def clip(layer: Layer, xs: list[Array]) -> Array:
    p = layer.params("clip_param")
    return np.minimum(np.maximum(xs[0], p.number("min", 0.0)), p.number("max", 0.0))


@formula("Threshold")
def threshold(layer: Layer, xs: list[Array]) -> Array:
    return np.where(xs[0] > np.float32(layer.params("threshold_param").number("threshold", 0.0)), 1.0, 0.0)


@formula("Dropout")
def dropout(layer: Layer, xs: list[Array]) -> Array:
    p = layer.params("dropout_param")
    return xs[0] if p.flag("scale_train", True) else xs[0] * (1 - p.number("dropout_ratio", 0.5))


@formula("Power")
def power(layer: Layer, xs: list[Array]) -> Array:
    p = layer.params("power_param")
    inner = p.number("shift", 0.0) + p.number("scale", 1.0) * _wide(xs)
    return np.power(inner, p.number("power", 1.0))


@formula("Exp")
def exponential(layer: Layer, xs: list[Array]) -> Array:
    p = layer.params("exp_param")
    base = p.number("base", -1.0)
    inner = p.number("shift", 0.0) + p.number("scale", 1.0) * _wide(xs)
    return np.power(math.e if base == -1 else base, inner)


@formula("Log")
def logarithm(layer: Layer, xs: list[Array]) -> Array:
    p = layer.params("log_param")
    base = p.number("base", -1.0)
    return np.log(p.number("shift", 0.0) + p.number("scale", 1.0) * _wide(xs)) / (1 if base == -1 else math.log(base))


@formula("BatchNorm")
def batch_norm(layer: Layer, xs: list[Array]) -> Array:
    mean, variance, count = (blob.astype("float64").reshape(-1) for blob in layer.blobs)
    factor = 0 if count[0] == 0 else 1 / count[0]
    eps = layer.params("batch_norm_param").number("eps", 1e-5)
    x = np.moveaxis(_wide(xs), min(1, xs[0].ndim - 1), -1)
    return np.moveaxis((x - mean * factor) / np.sqrt(variance * factor + eps), -1, min(1, xs[0].ndim - 1))


def _at_axis(values: Array, axis: int, rank: int) -> Array:
    axis %= rank
    return values.reshape(values.shape + (1,) * (rank - axis - values.ndim))


def _covered(layer: Layer, field: str, index: int, x: Array) -> Array:
    p = layer.params(field)
    axis, count = p.whole("axis", 1, -9) % x.ndim, p.whole("num_axes", 1, -1)
    shape = x.shape[axis:] if count == -1 else x.shape[axis : axis + count]
    return _at_axis(layer.blobs[index].reshape(shape), axis, x.ndim)


@formula("Scale")
def scale(layer: Layer, xs: list[Array]) -> Array:
    p, x = layer.params("scale_param"), _wide(xs)
    if len(xs) == 1:
        y = x * _covered(layer, "scale_param", 0, x)
        return y + _covered(layer, "scale_param", 1, x) if p.flag("bias_term", False) else y
    axis = p.whole("axis", 1, -9)
    y = x * _at_axis(xs[1], axis, x.ndim)
    return y + _at_axis(layer.blobs[0].reshape(xs[1].shape), axis, x.ndim) if p.flag("bias_term", False) else y


@formula("Bias")
def bias(layer: Layer, xs: list[Array]) -> Array:
    x = _wide(xs)
    if len(xs) == 2:
        return x + _at_axis(xs[1], layer.params("bias_param").whole("axis", 1, -9), x.ndim)
    return x + _covered(layer, "bias_param", 0, x)


@formula("MVN")
def mean_variance(layer: Layer, xs: list[Array]) -> Array:
    p, x = layer.params("mvn_param"), _wide(xs)
    rows = x.reshape(len(x) if p.flag("across_channels", False) else len(x) * x.shape[1], -1)
    centred = rows - rows.mean(1, keepdims=True)
    if p.flag("normalize_variance", True):
        centred = centred / (np.sqrt((centred**2).mean(1, keepdims=True)) + p.number("eps", 1e-9))
    return centred.reshape(x.shape)


@formula("Normalize")
def normalize(layer: Layer, xs: list[Array]) -> Array:
    p, x = layer.params("norm_param"), _wide(xs)
    axes = (1, 2, 3) if p.flag("across_spatial", True) else (1,)
    norm = np.sqrt((x**2).sum(axes, keepdims=True) + p.number("eps", 1e-10))
    return x / norm * layer.blobs[0].reshape(1, -1, 1, 1)


@formula("Eltwise")
def eltwise(layer: Layer, xs: list[Array]) -> Array:
    p = layer.params("eltwise_param")
    operation = p.choice(
        "operation", "SUM", {"0": "PROD", "1": "SUM", "2": "MAX", "PROD": "PROD", "SUM": "SUM", "MAX": "MAX"}
    )
    stacked = np.stack(xs).astype("float64")
    if operation == "SUM":
        return np.tensordot(np.array(p.numbers("coeff") or [1.0] * len(xs)), stacked, 1)
    return stacked.prod(0) if operation == "PROD" else stacked.max(0)


@formula("Axpy")
def axpy(layer: Layer, xs: list[Array]) -> Array:
    return xs[0].reshape(*xs[1].shape[:2], 1, 1).astype("float64") * xs[1] + xs[2]


@formula("InnerProduct")
def inner_product(layer: Layer, xs: list[Array]) -> Array:
    p, x = layer.params("inner_product_param"), _wide(xs)
    axis, outputs = p.whole("axis", 1, -9) % x.ndim, p.whole("num_output", 0)
    rows = x.reshape(*x.shape[:axis], -1)
    w = layer.blobs[0].astype("float64")
    w = w.reshape(-1, outputs).T if p.flag("transpose", False) else w.reshape(outputs, -1)
    y = np.einsum("...k,ok->...o", rows, w)
    return y + layer.blobs[1].reshape(-1) if p.flag("bias_term", True) else y


@formula("Embed")
def embed(layer: Layer, xs: list[Array]) -> Array:
    p = layer.params("embed_param")
    rows = layer.blobs[0].reshape(p.whole("input_dim", 0), p.whole("num_output", 0))
    y = rows[np.clip(xs[0].astype(int), 0, len(rows) - 1)]
    return y + layer.blobs[1].reshape(-1) if p.flag("bias_term", True) else y


@formula("Softmax")
def softmax(layer: Layer, xs: list[Array]) -> Array:
    axis = layer.params("softmax_param").whole("axis", 1, -9)
    e = np.exp(_wide(xs) - xs[0].max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@formula("Reduction")
def reduction(layer: Layer, xs: list[Array]) -> Array:
    p, x = layer.params("reduction_param"), _wide(xs)
    axis = p.whole("axis", 0, -9) % x.ndim
    rows = x.reshape(*x.shape[:axis], -1)
    words = {"1": "SUM", "2": "ASUM", "3": "SUMSQ", "4": "MEAN"}
    operation = p.choice("operation", "SUM", {**words, **{w: w for w in words.values()}})
    rows = {"ASUM": np.abs(rows), "SUMSQ": rows**2}.get(operation, rows)
    return (rows.mean(-1) if operation == "MEAN" else rows.sum(-1)) * p.number("coeff", 1.0)


@formula("ArgMax")
def arg_max(layer: Layer, xs: list[Array]) -> Array:
    p, x = layer.params("argmax_param"), xs[0]
    k, with_values = p.whole("top_k", 1), p.flag("out_max_val", False)
    rows = np.moveaxis(x, p.whole("axis", 0, -9), -1) if p.has("axis") else x.reshape(len(x), -1)
    size = rows.shape[-1]
    places = np.broadcast_to(np.arange(size), rows.shape)
    order = np.lexsort((places, rows), axis=-1)[..., ::-1][..., :k]  # pairs (value, place), largest first
    values = np.take_along_axis(rows, order, -1)
    if p.has("axis"):
        return np.moveaxis(values if with_values else order, -1, p.whole("axis", 0, -9))
    tail = (1,) * max(x.ndim - 3, 0)
    both = [order, values] if with_values else [order]
    return np.stack(both, 1).reshape(len(x), len(both), k, *tail)
