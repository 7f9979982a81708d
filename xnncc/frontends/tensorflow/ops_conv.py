"""Convolutions and batch norm. Images become NCHW for a convolution and go back; ``CancelTransposes`` joins chains."""

from __future__ import annotations

from tvm import relax
from tvm.relax import Expr

from ..refused import Refused
from .node import Node
from .registry import converter
from .windows import pads_of, reach_of

R = relax.op


def _weights(n: Node, index: int, axes: tuple[int, ...]) -> Expr:
    """Return [KH, KW, I, O] weights with the axes in another order; constants are turned at import."""
    if n.rank(index) != 4:
        raise Refused(f"weights {list(n.shape(index))} have not four dimensions")
    if n.is_const(index):
        return n.build.derived(n.const(index, "weights"), axes, lambda w: w.transpose(axes))
    return R.permute_dims(n.expr(index), list(axes))


@converter("Conv2D")
def conv2d(n: Node) -> Expr:
    """w: [KH, KW, C/G, O]."""
    x, kh, kw, per_group, outs = n.image(0), *_sizes(n, 1)
    channels = n.shape()[1] if n.is_nchw else n.shape()[3]
    if per_group < 1 or channels % per_group or outs % (channels // per_group):
        raise Refused(f"weights {list(n.shape(1))} do not fit input {list(n.shape())}")
    strides, dilations = n.pair("strides"), n.pair("dilations")
    pads = pads_of(n, reach_of((kh, kw), dilations), strides)
    groups = channels // per_group
    y = R.nn.conv2d(x, _weights(n, 1, (3, 2, 0, 1)), strides, pads, dilations, groups)
    return n.image_result(y)


def _sizes(n: Node, index: int) -> tuple[int, int, int, int]:
    if n.rank(index) != 4:
        raise Refused(f"weights {list(n.shape(index))} have not four dimensions")
    kh, kw, second, last = n.shape(index)
    return kh, kw, second, last


@converter("DepthwiseConv2dNative")
def depthwise_conv2d(n: Node) -> Expr:
    """w: [KH, KW, C, M]; output channel c * M + m."""
    kh, kw, channels, times = _sizes(n, 1)
    if channels != (n.shape()[1] if n.is_nchw else n.shape()[3]):
        raise Refused(f"weights {list(n.shape(1))} do not fit input {list(n.shape())}")
    strides, dilations = n.pair("strides"), n.pair("dilations")
    pads = pads_of(n, reach_of((kh, kw), dilations), strides)
    shape = (channels * times, 1, kh, kw)
    if n.is_const(1):
        turned = n.build.derived(n.const(1, "weights"), shape, lambda w: w.transpose(2, 3, 0, 1).reshape(shape))
    else:
        turned = n.reshaped(R.permute_dims(n.expr(1), [2, 3, 0, 1]), shape)
    return n.image_result(R.nn.conv2d(n.image(0), turned, strides, pads, dilations, channels))


@converter("Conv2DBackpropInput")
def conv2d_transpose(n: Node) -> Expr:
    """Inputs: size of the result, w [KH, KW, O, C], x. The pads are those of the convolution that it turns around."""
    sizes = n.ints(0, "input_sizes")
    kh, kw, outs, channels = _sizes(n, 1)
    strides, dilations = n.pair("strides"), n.pair("dilations")
    if dilations != (1, 1):
        raise Refused(f"dilations {list(dilations)} are not supported", "Supported: 1.")
    if len(sizes) == 2:  # only height and width
        sizes = [n.shape(2)[0], *sizes, outs] if not n.is_nchw else [n.shape(2)[0], outs, *sizes]
    at = (2, 3) if n.is_nchw else (1, 2)
    given = n.shape(2)
    if len(sizes) != 4 or len(given) != 4 or given[1 if n.is_nchw else 3] != channels:
        raise Refused(f"input_sizes {sizes} and weights {list(n.shape(1))} do not fit input {list(given)}")
    top, left, bottom, right = pads_of(n, (kh, kw), strides, (sizes[at[0]], sizes[at[1]]))
    spare = [
        sizes[axis] + before + after - ((given[axis] - 1) * stride + k)
        for axis, before, after, stride, k in zip(at, (top, left), (bottom, right), strides, (kh, kw), strict=True)
    ]
    if min(spare) < 0 or any(s >= stride and s for s, stride in zip(spare, strides, strict=True)):
        raise Refused(f"input_sizes {sizes} do not belong to input {list(given)} with strides {list(strides)}")
    weights = _weights(n, 1, (3, 2, 0, 1))
    y = R.nn.conv2d_transpose(n.image(2), weights, strides, (top, left, bottom, right), spare)
    return n.image_result(y)


@converter("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def batch_norm(n: Node) -> list[Expr | None]:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset = x * a + b, which later folds into a convolution."""
    if n.attr("is_training", True):
        raise Refused("is_training is set", "Freeze the network for inference (training=False).")
    scale, offset, mean, variance = (n.const(i, w).astype("float64") for i, w in _BATCH_NORM_INPUTS)
    a = scale / (variance + n.attr("epsilon", 1e-4)) ** 0.5
    b = offset - mean * a
    shape = (-1, 1, 1) if n.is_nchw else (-1,)
    a, b = (n.build.constant(v.astype("float32").reshape(shape)) for v in (a, b))
    return [R.add(R.multiply(n.expr(0), a), b)]


_BATCH_NORM_INPUTS = ((1, "scale"), (2, "offset"), (3, "mean"), (4, "variance"))
