"""Layouts of pooling, global means, padding, resizing, concatenation and splitting of images."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import tvm
from tvm import relax, topi

from ..kernels import packing, pool, softmax
from ..kernels.spatial import Window
from .layout_linear import ints, pair, sides
from .layout_walk import INJECTIVE, OPAQUE, OUT_FUSABLE, Value, Walk, shape_of


def max_pool_handler(walk: Walk, call: tvm.ir.Call) -> Value | None:
    """Packed maximum of each window."""
    return _pool(walk, call, is_max=True)


def avg_pool_handler(walk: Walk, call: tvm.ir.Call) -> Value | None:
    """Packed mean of each window; dilated ones are left to TVM."""
    return _pool(walk, call, is_max=False) if ints(call.attrs.dilation) == (1, 1) else None


def _pool(walk: Walk, call: tvm.ir.Call, is_max: bool) -> Value | None:
    attrs, x = call.attrs, walk.value(call.args[0])
    if x.dtype != "float32" or attrs.layout != "NCHW":
        return None
    x = walk.packed(x)
    out = shape_of(call)
    win = Window(
        image=pair(x.shape[2:]),
        kernel=pair(attrs.pool_size),
        stride=pair(attrs.strides),
        padding=sides(attrs.padding),
        out=pair(out[2:]),
        dilation=pair(attrs.dilation),
    )
    counts = bool(attrs.count_include_pad)
    y = walk.emit(lambda t: pool.f32_pool2d(t, win, is_max, counts), x.expr, hint="pool", pattern=OUT_FUSABLE)
    return walk.packed_result(y, out)


def mean_handler(walk: Walk, call: tvm.ir.Call) -> Value | None:
    """The mean of whole images; other means are left to TVM."""
    return _global(walk, call, pool.f32_global_mean)


def max_handler(walk: Walk, call: tvm.ir.Call) -> Value | None:
    """The maximum of whole images; other maxima are left to TVM."""
    return _global(walk, call, pool.global_max)


def _global(walk: Walk, call: tvm.ir.Call, kernel: Callable) -> Value | None:
    x = walk.value(call.args[0])
    walk.settle(x)
    axes = sorted(a % 4 for a in ints(call.attrs.axis)) if call.attrs.axis is not None else []
    if x.image is None or axes != [2, 3]:
        return None
    n, c = x.shape[:2]
    y = walk.packed_result(walk.emit(kernel, x.expr, hint="global_pool", pattern=OUT_FUSABLE), (n, c, 1, 1))
    if call.attrs.keepdims:
        return y
    return Value((n, c), expr=walk.reshaped(walk.plain(y), (n, c)), name=walk.name)


def pad_handler(walk: Walk, call: tvm.ir.Call) -> Value | None:
    """Pads of the image axes in packed form; others are left to TVM."""
    attrs, x = call.attrs, walk.value(call.args[0])
    walk.settle(x)
    widths = ints(attrs.pad_width)
    mode = str(attrs.pad_mode)
    if (
        x.image is None
        or len(widths) != 8
        or any(widths[:4])
        or min(widths) < 0
        or mode not in ("constant", "reflect", "edge")
    ):
        return None
    top, bottom, left, right = widths[4:]
    image, fill = (x.shape[2], x.shape[3]), float(attrs.pad_value) if attrs.pad_value is not None else 0.0
    fn = lambda t: packing.pad_image(t, image, (top, left, bottom, right), mode, fill)  # noqa: E731
    return walk.packed_result(walk.emit(fn, x.expr, hint="pad_image", pattern=INJECTIVE), shape_of(call))


def resize_handler(walk: Walk, call: tvm.ir.Call) -> Value | None:
    """Nearest upsampling by whole factors in packed form: every coordinate convention then agrees."""
    attrs, x = call.attrs, walk.value(call.args[0])
    walk.settle(x)
    out = shape_of(call)
    if x.image is None or attrs.layout != "NCHW" or attrs.method != "nearest_neighbor":
        return None
    (h, w), (oh, ow) = x.shape[2:], out[2:]
    if oh % h or ow % w or attrs.coordinate_transformation_mode == "align_corners":
        return None
    fn = lambda t: packing.upsample_nearest(t, (h, w), (oh // h, ow // w))  # noqa: E731
    return walk.packed_result(walk.emit(fn, x.expr, hint="upsample", pattern=INJECTIVE), out)


def concat_handler(walk: Walk, call: tvm.ir.Call) -> Value | None:
    """Joined along the outermost axis that is not 1, parts are views of one buffer; otherwise they are copied."""
    parts = [walk.settle(walk.value(p)) for p in call.args[0].fields]
    out = shape_of(call)
    axis = int(call.attrs.axis) % len(out)
    if len(out) == 4 and axis == 1 and any(p.image for p in parts) and all(p.dtype == "float32" for p in parts):
        return _concat_packed(walk, parts, out)
    exprs = [walk.plain(p) for p in parts]
    if prod(out[:axis]) == 1:
        return Value(out, parts[0].dtype, expr=_views(walk, exprs, axis), name=walk.name)
    joined = walk.emit(lambda *t: topi.concatenate(t, axis), *exprs, hint="concat", pattern=INJECTIVE)
    return Value(out, parts[0].dtype, expr=joined, name=walk.name)


def _concat_packed(walk: Walk, parts: list[Value], out: tuple[int, ...]) -> Value:
    packed = [walk.packed(p) for p in parts]
    whole = all(shape_of(p.expr)[1] * walk.lanes == p.shape[1] for p in packed)
    if whole and out[0] == 1:
        return walk.packed_result(_views(walk, [p.expr for p in packed], 1), out)
    channels = [p.shape[1] for p in packed]
    fn = lambda *t: packing.concat_channels(list(t), channels)  # noqa: E731
    return walk.packed_result(walk.emit(fn, *[p.expr for p in packed], hint="concat", pattern=INJECTIVE), out)


def _views(walk: Walk, exprs: list[relax.Expr], axis: int) -> relax.Expr:
    """Leave a concatenation to the memory planner, which lets each part be written into its place."""
    return walk.relax_op(relax.op.concat([walk.own_memory(e) for e in exprs], axis=axis))


def split_handler(walk: Walk, call: tvm.ir.Call) -> list[Value] | None:
    """Channels of a packed image cut at block borders."""
    x = walk.settle(walk.value(call.args[0]))
    fields = call.ty.fields
    shapes = [tuple(int(d) for d in f.shape) for f in fields]
    v = walk.lanes
    if x.image is None or int(call.attrs.axis) % 4 != 1 or any(s[1] % v for s in shapes):
        return None
    out, start = [], 0
    for shape in shapes:
        count = shape[1] // v
        fn = lambda t, a=start, n=count: packing.slice_blocks(t, a, n)  # noqa: E731
        out.append(walk.packed_result(walk.emit(fn, x.expr, hint="slice", pattern=INJECTIVE), shape))
        start += count
    return out


def softmax_handler(walk: Walk, call: tvm.ir.Call) -> Value | None:
    """Softmax along the last axis with the polynomial exp; other axes are left to TVM."""
    x = walk.value(call.args[0])
    axis = int(call.attrs.axis)
    if x.dtype != "float32" or axis not in (-1, len(x.shape) - 1) or len(x.shape) < 2:
        return None
    fn = lambda t: softmax.f32_softmax(t, walk.lanes)  # noqa: E731
    y = walk.emit(fn, walk.plain(x), hint="softmax", pattern=OPAQUE)
    return Value(x.shape, expr=y, name=walk.name)
