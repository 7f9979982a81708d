"""How a pending convolution becomes kernels: packs its weights once its constants are folded, and emits one algorithm.

emitter(walk, source, window, ...) -> emit;  emit(pending weights and bias) -> the kernel's output
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from tvm import relax

from ..ir.tiles import side_by_side
from ..kernels import conv2d, conv2d_filter, depthwise, strassen, winograd
from ..kernels.spatial import Window
from .choose_conv import choose_algorithm, direct_pixels, winograd_m
from .choose_strassen import strassen_pieces
from .layout_walk import OPAQUE, OUT_FUSABLE, Pending, Value, Walk, constant, shape_of
from .stored_weights import packed_weights

FIRST_LAYER_CHANNELS = 4  # up to this many input channels a convolution reads plain pixels

Emitter = Callable[[Pending], relax.Expr]  # -> the kernel's output


def blocks_for(channels: int, lanes: int) -> int:
    """Return the channel blocks of an output: an odd large count becomes even, so that two fit one register tile."""
    n = -(-channels // lanes)
    return n + 1 if n > 12 and n % 2 else n


def depthwise_emitter(walk: Walk, source: Value, win: Window) -> Emitter:
    """Each channel by its own window."""
    blocks = shape_of(source.expr)[1]

    def emit(p: Pending) -> relax.Expr:
        pack = lambda w: depthwise.pack_depthwise_weights(w, walk.lanes, blocks)  # noqa: E731
        fn = lambda x, w, b: depthwise.f32_depthwise(x, w, b, win)  # noqa: E731
        return _emit_conv(walk, fn, source, packed_weights(walk, p, pack, blocks), p.bias, blocks, "depthwise")

    return emit


def filter_emitter(walk: Walk, source: Value, win: Window) -> Emitter:
    """Few channels of long windows; the only convolution whose output is plain."""

    def emit(p: Pending) -> relax.Expr:
        packed = constant(walk.coded.follow(p.weights, lambda w: conv2d_filter.pack_filter_weights(w, walk.lanes)))
        fn = lambda x, w, b: conv2d_filter.f32_conv2d_filter(x, w, b, win)  # noqa: E731
        return walk.emit(fn, source.expr, packed, constant(p.bias), hint="conv2d_filter", pattern=OUT_FUSABLE)

    return emit


def first_emitter(walk: Walk, source: Value, win: Window) -> Emitter:
    """A plain image of few channels; by lanes of a pixel where the machine multiplies by them."""

    def emit(p: Pending) -> relax.Expr:
        blocks = blocks_for(len(p.weights), walk.lanes)
        machine = walk.machine
        # The pixels under a row of the window want registers: fewer than 32 are too few.
        by_lane = machine.multiplies_by_lane and machine.registers >= 32 and p.weights.shape[1] <= walk.lanes
        beside = next(d for d in (4, 2, 1) if blocks % d == 0) if by_lane else side_by_side(blocks, *win.out, machine)
        packed = packed_conv_weights(walk, p, blocks, beside, p.weights.shape[1])
        fn = lambda x, w, b: conv2d.f32_conv2d_first(x, w, b, win, by_lane)  # noqa: E731
        return _emit_conv(walk, fn, source, packed, p.bias, blocks, "conv2d")

    return emit


def packed_emitter(walk: Walk, source: Value, win: Window, groups: int, out: tuple[int, ...]) -> Emitter:
    """Return the emitter of the algorithm that a record or the model chooses; only one ungrouped image has a choice."""
    c, o = source.shape[1], out[1]
    blocks = blocks_for(o, walk.lanes) // groups
    if groups > 1 or out[0] > 1:
        return _direct_emitter(walk, source, win, groups, direct_pixels("direct", win, blocks, walk.machine))
    chosen = choose_algorithm(win, c, o, blocks, walk.machine, walk.exact, walk.algorithms)
    walk.convolutions[walk.name] = chosen
    if m := winograd_m(chosen.algorithm):
        return _winograd_emitter(walk, source, win, m)
    if chosen.algorithm == "strassen":
        return _strassen_emitter(walk, source, win)
    return _direct_emitter(walk, source, win, 1, direct_pixels(chosen.algorithm, win, blocks, walk.machine))


def _direct_emitter(walk: Walk, source: Value, win: Window, groups: int, pixels: int) -> Emitter:
    def emit(p: Pending) -> relax.Expr:
        blocks = blocks_for(len(p.weights), walk.lanes)
        image = (1, pixels) if win.is_pointwise else win.out
        beside = side_by_side(blocks // groups, *image, walk.machine)
        packed = _packed_direct(walk, source, p, blocks, beside, groups)
        fn = lambda x, w, b: conv2d.f32_conv2d(x, w, b, win, groups, pixels)  # noqa: E731
        return _emit_conv(walk, fn, source, packed, p.bias, blocks, "conv2d")

    return emit


def _winograd_emitter(walk: Walk, source: Value, win: Window, m: int) -> Emitter:
    """The package holds the 3x3 kernels; a kernel that reads nothing but weights transforms them once, at open."""

    def emit(p: Pending) -> relax.Expr:
        blocks = blocks_for(len(p.weights), walk.lanes)
        tiles = -(-win.out[0] // m) * -(-win.out[1] // m)
        packed = _packed_direct(walk, source, p, blocks, side_by_side(blocks, 1, tiles, walk.machine))
        transform = lambda w: winograd.transform_weights(w, m)  # noqa: E731
        u = walk.emit(transform, packed, hint="winograd_weights", pattern=OPAQUE, name="weights")
        fn = lambda x, w, b: winograd.f32_conv2d_winograd(x, w, b, win, m)  # noqa: E731
        return _emit_conv(walk, fn, source, u, p.bias, blocks, "winograd")

    return emit


def _strassen_emitter(walk: Walk, source: Value, win: Window) -> Emitter:
    """The package holds the plain weights, as with Winograd's."""

    def emit(p: Pending) -> relax.Expr:
        blocks = blocks_for(len(p.weights), walk.lanes)
        split = strassen_pieces(win.out[0] * win.out[1], source.shape[1], walk.machine)
        beside = side_by_side(blocks // 2, 1, split[1], walk.machine)
        packed = _packed_direct(walk, source, p, blocks, beside)
        s = walk.emit(strassen.transform_conv_weights, packed, hint="strassen_weights", pattern=OPAQUE, name="weights")
        fn = lambda x, s, b: strassen.f32_conv2d_strassen(x, s, b, *split)  # noqa: E731
        return _emit_conv(walk, fn, source, s, p.bias, blocks, "strassen")

    return emit


def _packed_direct(walk: Walk, source: Value, p: Pending, blocks: int, beside: int, groups: int = 1) -> relax.Expr:
    channels = shape_of(source.expr)[1] * walk.lanes if groups == 1 else 0
    return packed_conv_weights(walk, p, blocks, beside, walk.lanes, channels)


def packed_conv_weights(
    walk: Walk, p: Pending, blocks: int, beside: int, in_channels: int, channels: int = 0
) -> relax.Expr:
    """Return the weights, ``beside`` of ``blocks`` output blocks side by side, zeros up to ``channels`` inputs."""

    def pack(w: np.ndarray) -> np.ndarray:
        return conv2d.pack_conv_weights(pad_inputs(w, channels), beside * walk.lanes, blocks // beside, in_channels)

    return packed_weights(walk, p, pack, blocks, beside)


def _emit_conv(
    walk: Walk, fn: Callable, source: Value, weights: relax.Expr, bias: np.ndarray, blocks: int, hint: str
) -> relax.Expr:
    b = packed_bias(walk, bias, blocks)
    return walk.emit(fn, source.expr, weights, b, hint=hint, pattern=OUT_FUSABLE)


def packed_bias(walk: Walk, bias: np.ndarray, blocks: int) -> relax.Expr:
    """Return the bias as [blocks, v]."""
    return constant(walk.coded.follow(bias, lambda b: conv2d.pack_vector(b, walk.lanes, blocks)))


def pad_inputs(w: np.ndarray, channels: int) -> np.ndarray:
    """Return ``w`` with zero input channels up to ``channels``, the whole blocks of its packed input."""
    return np.pad(w, ((0, 0), (0, channels - w.shape[1]), (0, 0), (0, 0))) if channels > w.shape[1] else w
