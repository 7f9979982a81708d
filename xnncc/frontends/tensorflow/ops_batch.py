"""SpaceToBatchND and BatchToSpaceND; around a convolution they are TensorFlow's old way of writing a dilation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tvm import relax
from tvm.relax import Expr

from ..network import shape_of
from ..refused import Refused
from .node import Made, Node
from .ops_conv import conv2d, depthwise_conv2d
from .registry import converter

R = relax.op

_CONVOLUTIONS = {"Conv2D": conv2d, "DepthwiseConv2dNative": depthwise_conv2d}


@converter("SpaceToBatchND")
def space_to_batch(n: Node) -> Expr:
    """[N, H, W, ...] -> [(b1 b2 N), H / b1, W / b2, ...]."""
    block, pads = n.ints(1, "block_shape"), n.const(2, "paddings")
    m = len(block)
    if pads.shape != (m, 2) or m >= n.rank() or min(block, default=1) < 1 or pads.min(initial=0) < 0:
        raise Refused(f"block_shape {block} and paddings {pads.tolist()} do not fit input {list(n.shape())}")
    widths = [0, 0, *[int(w) for w in pads.reshape(-1)], *[0] * (2 * (n.rank() - m - 1))]
    x = n.emit(R.nn.pad(n.expr(0), widths)) if any(widths) else n.expr(0)
    shape = shape_of(x)
    if any(shape[i + 1] % b for i, b in enumerate(block)):
        raise Refused(f"{list(shape)} cannot be cut into blocks of {block}")
    parts = [shape[0]]
    for size, b in zip(shape[1:], block, strict=False):
        parts += [size // b, b]
    parts += shape[m + 1 :]
    order = [*range(2, 2 * m + 1, 2), 0, *range(1, 2 * m + 1, 2), *range(2 * m + 1, len(parts))]
    small = [size // b for size, b in zip(shape[1:], block, strict=False)]
    moved = R.permute_dims(n.reshaped(x, parts), order)
    return n.reshaped(moved, [shape[0] * int(np.prod(block)), *small, *shape[m + 1 :]])


@converter("BatchToSpaceND")
def batch_to_space(n: Node) -> Expr:
    """[(b1 b2 N), H, W, ...] -> [N, H b1, W b2, ...], then cropped."""
    block, crops = n.ints(1, "block_shape"), n.const(2, "crops")
    m, shape = len(block), n.shape()
    if crops.shape != (m, 2) or m >= n.rank() or min(block, default=1) < 1 or shape[0] % int(np.prod(block)):
        raise Refused(f"block_shape {block} and crops {crops.tolist()} do not fit input {list(shape)}")
    dilated = _dilated_convolution(n, block, crops)
    if dilated is not None:
        return dilated
    batch = shape[0] // int(np.prod(block))
    order = [m]
    for i in range(m):
        order += [m + 1 + i, i]
    order += range(2 * m + 1, m + len(shape))
    moved = R.permute_dims(n.reshaped(n.expr(0), [*block, batch, *shape[1:]]), order)
    large = [size * b for size, b in zip(shape[1:], block, strict=False)]
    x = n.emit(n.reshaped(moved, [batch, *large, *shape[m + 1 :]]))
    return _cropped(x, [(int(b), int(a)) for b, a in crops])


def _cropped(x: Expr, crops: list[tuple[int, int]]) -> Expr:
    axes = [axis for axis, pair in enumerate(crops, 1) if any(pair)]
    if not axes:
        return x
    begin = [crops[axis - 1][0] for axis in axes]
    end = [shape_of(x)[axis] - crops[axis - 1][1] for axis in axes]
    return R.strided_slice(x, axes, begin, end, [1] * len(axes))


def _dilated_convolution(n: Node, block: list[int], crops: np.ndarray) -> Expr | None:
    """Return SpaceToBatchND -> VALID convolution -> BatchToSpaceND as one convolution with a dilation."""
    conv = n.made(0)
    if conv is None or conv.operation.kind not in _CONVOLUTIONS or len(block) != 2 or n.attr("data_format") == "NCHW":
        return None
    if not _is_plain(conv):
        return None
    spread = n._made(conv.operation.inputs[0])
    if spread is None or spread.operation.kind != "SpaceToBatchND":
        return None
    blocks, pads = spread.values[1], spread.values[2]
    if not isinstance(blocks, np.ndarray) or not isinstance(pads, np.ndarray) or blocks.tolist() != block:
        return None
    attributes = {
        **conv.operation.attributes,
        "dilations": [1, *block, 1],
        "padding": "EXPLICIT",
        "explicit_paddings": [0, 0, *[int(p) for p in pads.reshape(-1)], 0, 0],
    }
    whole = Node(
        replace(conv.operation, attributes=attributes), [spread.values[0], *conv.values[1:]], n.build, n._made, n.warn
    )
    y = n.emit(_CONVOLUTIONS[conv.operation.kind](whole))
    return _cropped(y, [(int(b), int(a)) for b, a in crops])


def _is_plain(conv: Made) -> bool:
    """Return whether a convolution has no pads, strides or dilations of its own, so that a block may become one."""
    o = conv.operation
    ones = all(value == 1 for name in ("strides", "dilations") for value in o.attr(name) or [1])
    return o.attr("padding") == "VALID" and ones and o.attr("data_format", "NHWC") == "NHWC"
