"""Layouts of convolutions and matrix products with constant weights; folding constants into pending ones."""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd, prod

import numpy as np
import tvm
from tvm import relax

from ..ir.tiles import padded_blocks, side_by_side
from ..kernels import conv2d, matmul, packing, strassen
from ..kernels.spatial import Window
from .choose_strassen import is_strassen, strassen_pays, strassen_pieces
from .conv_emitters import (
    FIRST_LAYER_CHANNELS,
    blocks_for,
    depthwise_emitter,
    filter_emitter,
    first_emitter,
    packed_bias,
    packed_emitter,
    pad_inputs,
)
from .layout_walk import INJECTIVE, OPAQUE, OUT_FUSABLE, Pending, Value, Walk, constant, per_channel, shape_of
from .stored_weights import Stored, packed_weights

LEAST_TAPS = 64  # from so many in a row on, the lanes may be taps
DENSE_GROUPS = 4  # up to this many ragged groups are cheaper as one convolution with zeros than as plain loops


def ints(values: Iterable) -> tuple[int, ...]:
    """Return an attribute's array of integers."""
    return tuple(int(v) for v in values)


def pair(values: Iterable) -> tuple[int, int]:
    """Return an attribute's (height, width)."""
    height, width = ints(values)
    return height, width


def sides(values: Iterable) -> tuple[int, int, int, int]:
    """Return an attribute's (top, left, bottom, right)."""
    top, left, bottom, right = ints(values)
    return top, left, bottom, right


def conv2d_handler(walk: Walk, call: tvm.ir.Call) -> Value | None:
    """Packed convolution, depthwise, grouped by whole blocks, or a first layer; None when it is none of these."""
    attrs, x, w = call.attrs, walk.value(call.args[0]), walk.value(call.args[1])
    if w.const is None or x.const is not None or w.dtype != "float32" or attrs.data_layout != "NCHW":
        return None
    out = shape_of(call)
    win = Window(
        image=pair(x.shape[2:]),
        kernel=pair(w.shape[2:]),
        stride=pair(attrs.strides),
        padding=sides(attrs.padding),
        out=pair(out[2:]),
        dilation=pair(attrs.dilation),
    )
    return linear_conv(walk, x, w.const, win, int(attrs.groups), out, w.stored)


def conv2d_transpose_handler(walk: Walk, call: tvm.ir.Call) -> Value | None:
    """A transposed convolution is a convolution of the spread-out input with the flipped kernel (Dumoulin and Visin
    2016, "A guide to convolution arithmetic", 4). Stride = kernel without padding needs no spreading: a 1x1
    convolution makes all phases, which are then shuffled into place."""
    attrs, x, w = call.attrs, walk.value(call.args[0]), walk.value(call.args[1])
    if w.const is None or w.dtype != "float32" or attrs.data_layout != "NCHW" or attrs.kernel_layout != "IOHW":
        return None
    out, groups = shape_of(call), int(attrs.groups)
    (sh, sw), (dh, dw) = ints(attrs.strides), ints(attrs.dilation)
    top, left, bottom, right = ints(attrs.padding)
    c, og, kh, kw = w.shape
    whole = (kh, kw) == (sh, sw) and out[2:] == (x.shape[2] * sh, x.shape[3] * sw)
    if whole and groups == 1 and not any((top, left, bottom, right)) and (dh, dw) == (1, 1):
        return _phases(walk, x, w.const, out)

    def flip(a: np.ndarray) -> np.ndarray:
        """Return IOHW weights as OIHW, upside down."""
        a = a[:, :, ::-1, ::-1].reshape(groups, c // groups, og, kh, kw)
        return np.ascontiguousarray(a.transpose(0, 2, 1, 3, 4).reshape(groups * og, c // groups, kh, kw))

    win = Window(
        image=pair(x.shape[2:]),
        kernel=(kh, kw),
        stride=(1, 1),
        padding=((kh - 1) * dh - top, (kw - 1) * dw - left, 0, 0),
        out=pair(out[2:]),
        dilation=(dh, dw),
        spread=(sh, sw),
    )
    if win.padding[0] < 0 or win.padding[1] < 0:
        return None
    return linear_conv(walk, x, walk.coded.follow(w.const, flip), win, groups, out)


def linear_conv(
    walk: Walk,
    x: Value,
    w: np.ndarray,
    win: Window,
    groups: int,
    out: tuple[int, ...],
    stored: Stored | None = None,
) -> Value | None:
    """Return the pending convolution of ``x`` with OIHW ``w``."""
    v = walk.lanes
    c, o = x.shape[1], out[1]
    if groups > 1 and (c != groups or o != groups) and (gcd(c // groups, o // groups) % v or blocks_for(o, v) * v != o):
        if groups > DENSE_GROUPS:
            walk.note(f"{walk.name}: {groups} groups of {c // groups} channels are not whole blocks of {v}")
            return None
        split = groups
        w, groups, stored = walk.coded.follow(w, lambda a: _dense(a, split)), 1, None
    walk.settle(x)
    is_first = x.image is None and c <= FIRST_LAYER_CHANNELS and groups == 1 and win.spread == (1, 1)
    is_filter = is_first and win.kernel[1] >= LEAST_TAPS and 2 * o <= v and win.dilation[1] == 1
    source = x if is_first else walk.packed(x)
    if groups > 1 and c == groups == o:
        emit = depthwise_emitter(walk, source, win)
    elif is_filter:
        emit = filter_emitter(walk, source, win)
    elif is_first:
        emit = first_emitter(walk, source, win)
    else:
        emit = packed_emitter(walk, source, win, groups, out)
    pending = Pending(w.astype("float32"), np.zeros(o, "float32"), emit, (walk.name,), stored=stored)
    return Value(out, image=None if is_filter else out[1:], pending=pending, name=walk.name)


def _dense(w: np.ndarray, groups: int) -> np.ndarray:
    """Return grouped OIHW weights as ungrouped ones, zeros between the groups."""
    o, cg, kh, kw = w.shape
    full = np.zeros((o, cg * groups, kh, kw), w.dtype)
    for g in range(groups):
        rows = slice(g * o // groups, (g + 1) * o // groups)
        full[rows, g * cg : (g + 1) * cg] = w[rows]
    return full


def _phases(walk: Walk, x: Value, w: np.ndarray, out: tuple[int, ...]) -> Value:
    """Return the transposed convolution whose windows do not overlap; w [C, O, KH, KW]."""
    v = walk.lanes
    c, o, kh, kw = w.shape
    source = walk.packed(x)
    h, wd = x.shape[2:]
    blocks = -(-o // v)
    beside = side_by_side(kh * kw * blocks, 1, h * wd, walk.machine)
    win = Window((h, wd), (1, 1), (1, 1), (0, 0, 0, 0), (h, wd))

    def pack(w: np.ndarray) -> np.ndarray:
        full = np.zeros((kh, kw, blocks * v, c), w.dtype)
        full[:, :, :o] = w.transpose(2, 3, 0, 1)
        full = full.reshape(kh * kw * blocks * v, c, 1, 1)
        full = pad_inputs(full, shape_of(source.expr)[1] * v)
        return conv2d.pack_conv_weights(full, beside * v, kh * kw * blocks // beside, v)

    def emit(p: Pending) -> relax.Expr:
        """Weights [O, C, KH, KW]."""
        packed_w = walk.coded.follow(p.weights, pack)
        b = constant(np.tile(conv2d.pack_vector(p.bias, v, blocks), (kh * kw, 1)))
        phases = walk.emit(
            lambda x, w, b: conv2d.f32_conv2d(x, w, b, win), source.expr, constant(packed_w), b,
            hint="conv2d", pattern=OUT_FUSABLE, name="phases",
        )  # fmt: skip
        shuffle = lambda t: packing.pixel_shuffle(t, (h, wd), (kh, kw), blocks)  # noqa: E731
        return walk.emit(shuffle, phases, hint="pixel_shuffle", pattern=INJECTIVE)

    oihw = walk.coded.follow(w, lambda a: a.transpose(1, 0, 2, 3))
    pending = Pending(oihw.astype("float32"), np.zeros(o, "float32"), emit, (walk.name,))
    return Value(out, image=out[1:], pending=pending, name=walk.name)


def batch_norm_handler(walk: Walk, call: tvm.ir.Call) -> list[Value] | None:
    """Fold inference-time batch norm into a pending convolution; None when there is none."""
    x = walk.value(call.args[0])
    if x.pending is None or x.pending.last or not walk.used_once(call.args[0]) or call.attrs.training:
        return None
    consts = [c for a in call.args[1:5] if (c := walk.value(a).const) is not None]
    if len(consts) != 4:
        return None
    gamma, beta, mean, var = consts
    k = gamma / np.sqrt(var + np.float32(call.attrs.epsilon))
    folded = x.pending.scaled(k).shifted(beta - mean * k).named(walk.name)
    folded_value = Value(x.shape, image=x.image, pending=folded, name=walk.name)
    return [folded_value, walk.value(call.args[3]), walk.value(call.args[4])]  # running mean and variance stay


def fold_constant(walk: Walk, op: str, call: tvm.ir.Call) -> Value | None:
    """Return pending ``x + c``, ``x - c``, ``x * c`` or ``x / c`` with the constant folded in, or None."""
    x, c = call.args
    if walk.value(x).const is not None:
        if op not in ("relax.add", "relax.multiply"):
            return None
        x, c = c, x
    v, const = walk.value(x), walk.value(c).const
    if v.pending is None or const is None or not walk.used_once(x) or const.ndim > len(v.shape):
        return None
    vector = per_channel(const, v.shape, len(v.shape) - 1 if v.pending.last else 1)
    if vector is None:
        return None
    if vector.size == const.size:
        vector = walk.coded.follow(const, lambda a: a.reshape(-1))
    pending = {
        "relax.add": lambda p: p.shifted(vector),
        "relax.subtract": lambda p: p.shifted(-vector),
        "relax.multiply": lambda p: p.scaled(vector),
        "relax.divide": lambda p: p.scaled(1 / vector),
    }[op](v.pending)
    return Value(v.shape, image=v.image, pending=pending.named(walk.name), name=walk.name)


def matmul_handler(walk: Walk, call: tvm.ir.Call) -> Value | None:
    """Rows times constant weights, or two activations by batch; None for broadcasts between batches."""
    x, w = walk.value(call.args[0]), walk.value(call.args[1])
    if x.dtype != "float32" or w.dtype != "float32" or len(x.shape) < 2 or len(w.shape) < 2:
        return None
    out = shape_of(call)
    if w.const is not None and x.const is None and prod(w.shape[:-2]) == 1:
        stored = w.stored and w.stored.rearranged(lambda a: a.reshape(w.shape[-2:])) if len(w.shape) > 2 else w.stored
        matrix = walk.coded.follow(w.const, lambda a: a.reshape(w.shape[-2:]))
        return _weights_matmul(walk, x, matrix, out, stored)
    batch = prod(x.shape[:-2])
    if x.shape[:-2] != w.shape[:-2] and batch * prod(w.shape[:-2]) != 1:
        return None
    a = walk.reshaped(walk.plain(x), (batch, *x.shape[-2:]))
    b = walk.reshaped(walk.plain(w), (batch, *w.shape[-2:]))
    beside = padded_blocks(-(-out[-1] // walk.lanes), out[-2], walk.machine)
    fn = lambda x, y: matmul.f32_bmm(x, y, walk.lanes, beside)  # noqa: E731
    y = walk.emit(fn, a, b, hint="bmm", pattern=OUT_FUSABLE)
    return Value(out, expr=walk.reshaped(y, out), name=walk.name)


def _emit_gemm(walk: Walk, x: relax.Expr, p: Pending, n: int, name: str | None) -> relax.Expr:
    """Return rows times ``n`` columns of packed weights, by Strassen's products where they are cheaper."""
    (rows, k), v = shape_of(x), walk.lanes
    blocks = -(-n // v)
    is_whole = k % (2 * v) == 0 and is_strassen(rows, 2, blocks)
    is_strassens = is_whole and not walk.exact and strassen_pays(rows, k, blocks * v, walk.machine)
    split = strassen_pieces(rows, k, walk.machine)
    tiled = (blocks // 2, 1, split[1]) if is_strassens else (blocks, 1, rows)
    beside = side_by_side(*tiled, walk.machine)
    w = packed_weights(walk, p, lambda m: matmul.pack_matmul_weights(m, beside * v), blocks, beside)
    b = packed_bias(walk, p.bias, blocks)
    if not is_strassens:
        return walk.emit(matmul.f32_gemm, x, w, b, hint="gemm", pattern=OUT_FUSABLE, name=name)
    s = walk.emit(strassen.transform_rows_weights, w, hint="strassen_weights", pattern=OPAQUE, name="weights")
    fn = lambda x, s, b: strassen.f32_gemm_strassen(x, s, b, *split)  # noqa: E731
    return walk.emit(fn, x, s, b, hint="strassen", pattern=OUT_FUSABLE, name=name)


def _weights_matmul(walk: Walk, x: Value, w: np.ndarray, out: tuple[int, ...], stored: Stored | None) -> Value:
    v = walk.lanes
    k, n = w.shape
    rows = prod(x.shape[:-1])
    a = walk.reshaped(walk.plain(x), (rows, k))

    def emit(p: Pending) -> relax.Expr:
        if rows == 1:
            packed_w = packed_weights(walk, p, lambda m: matmul.pack_matmul_weights(m, v), -(-n // v))
            b = packed_bias(walk, p.bias, -(-n // v))
            y = walk.emit(lambda x, w, b: matmul.f32_gemv(x, w, b, n), a, packed_w, b, hint="gemv", pattern=OUT_FUSABLE)
        else:
            name = "padded" if n % v else None  # more columns than the tensor has
            y = _emit_gemm(walk, a, p, n, name)
            if n % v:
                y = walk.emit(lambda t: packing.crop_columns(t, n), y, hint="crop", pattern=INJECTIVE)
        return walk.reshaped(y, out)

    pending = Pending(w.astype("float32"), np.zeros(n, "float32"), emit, (walk.name,), last=True, stored=stored)
    return Value(out, pending=pending, name=walk.name)
