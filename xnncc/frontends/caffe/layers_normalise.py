"""BatchNorm, Scale, Bias, LRN, MVN, Normalize. x: [N, C, spatial...]."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tvm import relax
from tvm.relax import Expr

from ..channel_affine import channel_affine
from ..refused import Refused
from .node import Node
from .params import Params
from .refused import Broken
from .registry import converter

R = relax.op


@converter("BatchNorm")
def batch_norm(n: Node) -> Expr:
    """(x - mean) / sqrt(variance + eps), both stored as sums that a third blob says how to divide."""
    n.need(1)
    p = n.params("batch_norm_param")
    p.ignore("moving_average_fraction")
    if not p.flag("use_global_stats", True):
        raise Refused("use_global_stats is false: it would normalise by its own input", "Set it to true.")
    if n.rank() < 1:
        raise Broken("its input has no dimensions")
    channels = n.shape()[1] if n.rank() > 1 else 1
    mean = n.blob(0, (channels,), "mean").astype("float64")
    variance = n.blob(1, (channels,), "variance").astype("float64")
    total = float(n.blob(2, (1,), "scale factor").reshape(()))
    factor = 1 / total if total else 0.0
    a = 1 / np.sqrt(variance * factor + p.number("eps", 1e-5))
    if not np.isfinite(a).all():
        raise Broken("its variance is negative, or zero without an eps")
    return _folded(n, a, -mean * factor * a)


def _folded(n: Node, a: np.ndarray, b: np.ndarray) -> Expr:
    return channel_affine(n.build, n.expr(), a, b, is_read_once=n.only_used_here())


@converter("Scale")
def scale(n: Node) -> Expr:
    """x * scale + bias; the scale is a blob of weights or a second input."""
    n.need(1, 2)
    p = n.params("scale_param")
    axis = n.axis(p.whole("axis", 1, -8))
    has_bias = p.flag("bias_term", False)
    if len(n) == 2:
        p.ignore("num_axes")
        wanted = n.shape(1)
        _check_fits(n, wanted, axis)
        y = R.multiply(n.expr(), n.reshaped(n.expr(1), _spread(wanted, axis, n.rank())))
        return R.add(y, _constant(n, n.blob(0, wanted, "bias"), axis)) if has_bias else y
    wanted = _covered(n, p, axis)
    gamma = n.blob(0, wanted, "scale")
    beta = n.blob(1, wanted, "bias") if has_bias else np.zeros(wanted, "float32")
    if axis == 1 and len(wanted) == 1:
        return _folded(n, gamma.astype("float64"), beta.astype("float64"))
    y = R.multiply(n.expr(), _constant(n, gamma, axis))
    return R.add(y, _constant(n, beta, axis)) if has_bias else y


@converter("Bias")
def bias(n: Node) -> Expr:
    """x + bias; the bias is a blob of weights or a second input."""
    n.need(1, 2)
    p = n.params("bias_param")
    axis = n.axis(p.whole("axis", 1, -8))
    if len(n) == 2:
        p.ignore("num_axes")
        _check_fits(n, n.shape(1), axis)
        return R.add(n.expr(), n.reshaped(n.expr(1), _spread(n.shape(1), axis, n.rank())))
    wanted = _covered(n, p, axis)
    beta = n.blob(0, wanted, "bias")
    if axis == 1 and len(wanted) == 1:
        return _folded(n, np.ones(wanted), beta.astype("float64"))
    return R.add(n.expr(), _constant(n, beta, axis))


def _covered(n: Node, p: Params, axis: int) -> tuple[int, ...]:
    """Return the shape of a blob that covers ``num_axes`` dimensions from ``axis`` on."""
    count = p.whole("num_axes", 1, -1)
    end = n.rank() if count == -1 else axis + count
    if end > n.rank():
        raise Broken(f"{p.name} num_axes {count} from axis {axis} is beyond input {list(n.shape())}")
    return n.shape()[axis:end]


def _check_fits(n: Node, shape: Sequence[int], axis: int) -> None:
    if tuple(shape) != n.shape()[axis : axis + len(shape)]:
        raise Broken(f"its second input {list(shape)} does not fit {list(n.shape())} from axis {axis} on")


def _spread(shape: Sequence[int], axis: int, rank: int) -> list[int]:
    return [1] * axis + list(shape) + [1] * (rank - axis - len(shape))


def _constant(n: Node, blob: np.ndarray, axis: int) -> Expr:
    return n.build.constant(blob.reshape(_spread(blob.shape, axis, n.rank())))


@converter("LRN")
def local_response_norm(n: Node) -> Expr:
    """x * (k + alpha / count * sum of squares nearby) ^ -beta; nearby: across channels, or within each."""
    n.need(1)
    p = n.params("lrn_param")
    size, k = p.whole("local_size", 5, 1), p.number("k", 1.0)
    alpha, beta = p.number("alpha", 1.0), p.number("beta", 0.75)
    regions = {"0": "ACROSS_CHANNELS", "1": "WITHIN_CHANNEL"}
    region = p.choice("norm_region", "ACROSS_CHANNELS", {**regions, **{v: v for v in regions.values()}})
    if size % 2 == 0:
        raise Broken(f"{p.name} local_size {size} is not odd")
    if n.rank() != 4:
        raise Refused(f"input {list(n.shape())} is not supported", "Supported: [N, C, H, W].")
    x = n.expr()
    squares = n.emit(R.multiply(x, x))
    if region == "WITHIN_CHANNEL":
        pad = size // 2
        mean = R.nn.avg_pool2d(squares, (size, size), (1, 1), (pad, pad, pad, pad), count_include_pad=True)
        inner = R.add(R.multiply(mean, n.scalar(alpha)), n.scalar(1.0))  # Caffe leaves k out here
    else:
        batch, channels, height, width = n.shape()
        distance = np.arange(channels)[None, :] - np.arange(channels)[:, None]
        band = ((np.abs(distance) <= size // 2) * (alpha / size)).astype("float32")
        flat = n.reshaped(squares, (batch, channels, height * width))
        inner = R.add(n.reshaped(R.matmul(n.build.constant(band), flat), n.shape()), n.scalar(k))
    return R.divide(x, R.power(inner, n.scalar(beta)))


@converter("MVN")
def mean_variance_norm(n: Node) -> Expr:
    """(x - mean) / (deviation + eps), for each channel or over all of them. The eps is added to the root."""
    n.need(1)
    p = n.params("mvn_param")
    if n.rank() != 4:
        raise Refused(f"input {list(n.shape())} is not supported", "Supported: [N, C, H, W].")
    axes = [1, 2, 3] if p.flag("across_channels", False) else [2, 3]
    x = n.expr()
    difference = n.emit(R.subtract(x, R.mean(x, axes, keepdims=True)))
    eps = p.number("eps", 1e-9)
    if not p.flag("normalize_variance", True):
        return difference
    deviation = R.sqrt(R.mean(R.multiply(difference, difference), axes, keepdims=True))
    return R.divide(difference, R.add(deviation, n.scalar(eps)))


@converter("Normalize")
def normalize(n: Node) -> Expr:
    """x / sqrt(sum of squares + eps) * scale (SSD), the sum over channels at each place or over all of an image."""
    n.need(1)
    p = n.params("norm_param")
    if n.rank() != 4:
        raise Refused(f"input {list(n.shape())} is not supported", "Supported: [N, C, H, W].")
    channels = n.shape()[1]
    shared = p.flag("channel_shared", True)
    gamma = n.blob(0, (1,) if shared else (channels,), "scale").reshape(() if shared else (1, channels, 1, 1))
    axes = [1, 2, 3] if p.flag("across_spatial", True) else [1]
    x = n.expr()
    total = R.add(R.sum(R.multiply(x, x), axes, keepdims=True), n.scalar(p.number("eps", 1e-10)))
    return R.multiply(R.divide(x, R.sqrt(total)), n.build.constant(gamma))
